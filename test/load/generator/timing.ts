/** What many measured values say. */

/** The value that this share of the sorted values does not exceed. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

export const median = (values: readonly number[]): number => percentile(values, 0.5)

/** Milliseconds of each round of some work, one after the other. */
export async function timesOf(rounds: number, work: (round: number) => Promise<unknown>): Promise<number[]> {
  const times: number[] = []
  for (let round = 0; round < rounds; round++) {
    const startedAt = performance.now()
    await work(round)
    times.push(performance.now() - startedAt)
  }
  return times
}
