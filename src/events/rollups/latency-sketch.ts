/**
 * Durations as a few numbers that can be added up: the DDSketch of Masson, Rim and Lee ("DDSketch: A fast and
 * fully-mergeable quantile sketch with relative-error guarantees", PVLDB 12, 2019). A duration x falls into bucket
 * ⌈log γ(x)⌉ with γ = (1 + α) / (1 − α). A quantile is the middle of the bucket with its rank, so it is off by at most
 * α of the true value. Adding two sketches bucket by bucket gives the exact sketch of both.
 *
 * Durations below a millisecond count as one, those above a day as a day, so there are at most 185 buckets.
 */

/** Counts by bucket number. Its JSON is what the ledger keeps. */
export type LatencySketch = Record<string, number>

/** The largest error of a quantile, as a share of the true value. */
export const relativeError = 0.05

const gamma = (1 + relativeError) / (1 - relativeError)
const logGamma = Math.log(gamma)
const longestMilliseconds = 86_400_000

/** The bucket of a duration. */
export const bucketOf = (milliseconds: number): number =>
  Math.ceil(Math.log(Math.min(longestMilliseconds, Math.max(1, milliseconds))) / logGamma)

/** Counts durations given by their buckets. */
export function countBuckets(sketch: LatencySketch, buckets: readonly number[]): void {
  for (const bucket of buckets) sketch[bucket] = (sketch[bucket] ?? 0) + 1
}

/** Parses a sketch from JSON. Invalid counts, from tampering, count as nothing. */
export function readSketch(json: string): LatencySketch {
  if (json === '') return {}
  try {
    const read: unknown = JSON.parse(json)
    const counts = typeof read === 'object' && read !== null ? Object.entries(read) : []
    return Object.fromEntries(
      counts.filter(([bucket, count]) => /^\d{1,3}$/.test(bucket) && count > 0 && count < 2 ** 53),
    )
  } catch {
    // No JSON.
    return {}
  }
}

/** Adds what `from` counted. */
export function mergeSketch(into: LatencySketch, from: LatencySketch): void {
  for (const [bucket, count] of Object.entries(from)) into[bucket] = (into[bucket] ?? 0) + count
}

/** Subtracts what `part` counted, which `from` must include. */
export function subtractSketch(from: LatencySketch, part: LatencySketch): void {
  for (const [bucket, count] of Object.entries(part)) {
    const left = (from[bucket] ?? 0) - count
    if (left > 0) from[bucket] = left
    else delete from[bucket]
  }
}

export interface Quantiles {
  p50: number
  p95: number
  p99: number
}

/** The quantiles in milliseconds, to four digits; null without values. */
export function quantilesOf(sketch: LatencySketch): Quantiles | null {
  const buckets = Object.entries(sketch)
    .map(([bucket, count]) => [Number(bucket), count] as const)
    .sort(([left], [right]) => left - right)
  const total = buckets.reduce((sum, [, count]) => sum + count, 0)
  if (total === 0) return null
  const at = (share: number): number => {
    let left = Math.floor(share * (total - 1))
    const found = buckets.find(([, count]) => {
      left -= count
      return left < 0
    })
    return Number(((2 * gamma ** (found?.[0] ?? 0)) / (gamma + 1)).toPrecision(4))
  }
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) }
}
