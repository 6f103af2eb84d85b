/** Returns the result of the work, or null if it takes longer than the given milliseconds; the work continues. */
export async function inTime<Result>(work: Promise<Result>, milliseconds: number): Promise<Result | null> {
  const { promise: late, resolve } = Promise.withResolvers<null>()
  const timer = setTimeout(() => resolve(null), milliseconds)
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
