const form = /^[A-Za-z0-9._:-]{1,128}$/

/** Whether a text may serve as the id of a request: it stands in headers, logs and events as it is. */
export const isRequestId = (text: string): boolean => form.test(text)
