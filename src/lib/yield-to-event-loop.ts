/** Lets everything else that waits have its turn; the native database driver frees what it read only then, too. */
export const yieldToEventLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
