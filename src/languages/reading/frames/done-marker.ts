/** The data that ends a stream of the chat and completions languages. */
export const done = '[DONE]'

export const doneFrame = `data: ${done}\n\n`

const beginsDone = /^\s*\[DONE\]/

/** Whether a frame's data ends the stream: some clients stop where it begins so, after white space too. */
export const isDone = (data: string): boolean => data === done || beginsDone.test(data)
