const form = /^[A-Za-z0-9._:-]{1,128}$/

/** Whether a text may be a request id: it is written unchanged into headers, logs and events. */
export const isRequestId = (text: string): boolean => form.test(text)
