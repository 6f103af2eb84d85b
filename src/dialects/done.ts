/** The data that ends a stream of the chat and completions languages. */
export const done = '[DONE]'

const beginsDone = /^\s*\[DONE\]/

/** Whether a frame ends the stream: some clients stop at data that begins so, whatever follows, or after white space. */
export const isDone = (data: string): boolean => data === done || beginsDone.test(data)
