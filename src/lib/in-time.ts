/** Gives what the work gives, or null where that takes longer than so many milliseconds; the work goes on. */
export async function inTime<Result>(work: Promise<Result>, milliseconds: number): Promise<Result | null> {
  const { promise: late, resolve } = Promise.withResolvers<null>()
  const timer = setTimeout(() => resolve(null), milliseconds)
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
