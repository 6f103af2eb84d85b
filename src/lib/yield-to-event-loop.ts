/** Lets other waiting work run; the native database driver also frees its buffers only then. */
export const yieldToEventLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
