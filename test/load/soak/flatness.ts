/**
 * Whether a figure stays as it is, told from samples taken at even distances. Its slope is the middle one of the slopes
 * between all pairs of samples (Theil and Sen), which a few outliers do not move; what it would have grown by that
 * slope over the whole time is held against what it may.
 */
import { median } from '../generator/timing.ts'

export interface Flatness {
  /** The middle value. */
  typical: number
  /** By its slope, from the first sample to the last. */
  growth: number
  allowed: number
  flat: boolean
}

export interface Allowance {
  /** Of the middle value. */
  share: number
  /** At least so much, in the figure's own unit. */
  least: number
}

export function flatnessOf(samples: readonly number[], { share, least }: Allowance): Flatness {
  const slopes = samples.flatMap((first, from) =>
    samples.slice(from + 1).map((second, distance) => (second - first) / (distance + 1)),
  )
  const typical = median(samples)
  const growth = slopes.length === 0 ? 0 : median(slopes) * (samples.length - 1)
  const allowed = Math.max(least, typical * share)
  return { typical, growth, allowed, flat: growth <= allowed }
}
