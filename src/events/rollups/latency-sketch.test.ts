import { expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  bucketOf,
  countBuckets,
  type LatencySketch,
  mergeSketch,
  quantilesOf,
  relativeError,
} from './latency-sketch.ts'

const sketchOf = (durations: readonly number[]): LatencySketch => {
  const sketch: LatencySketch = {}
  countBuckets(sketch, durations.map(bucketOf))
  return sketch
}
const durations = fc.array(fc.double({ min: 1, max: 86_400_000, noNaN: true }), { minLength: 1, maxLength: 300 })
/** Quantiles are given to four digits. */
const rounding = 0.0005

test('a quantile is off by at most the relative error', () => {
  fc.assert(
    fc.property(durations, (sample) => {
      const sorted = sample.toSorted((left, right) => left - right)
      const quantiles = quantilesOf(sketchOf(sample))
      for (const [name, share] of [
        ['p50', 0.5],
        ['p95', 0.95],
        ['p99', 0.99],
      ] as const) {
        const exact = sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN
        const off = Math.abs((quantiles?.[name] ?? Number.NaN) - exact) / exact
        expect(off).toBeLessThanOrEqual(relativeError + rounding)
      }
    }),
  )
})

test('merged sketches equal the sketch of the whole, in any order', () => {
  fc.assert(
    fc.property(fc.array(durations, { maxLength: 5 }), (parts) => {
      const forwards: LatencySketch = {}
      const backwards: LatencySketch = {}
      for (const part of parts) mergeSketch(forwards, sketchOf(part))
      for (const part of parts.toReversed()) mergeSketch(backwards, sketchOf(part))
      expect(forwards).toEqual(sketchOf(parts.flat()))
      expect(backwards).toEqual(forwards)
    }),
  )
})

test('has a bounded number of buckets for any values', () => {
  const sketch = sketchOf([0, 0.3, 1, 1e12, Number.MAX_VALUE])
  expect(Object.keys(sketch).map(Number)).toEqual([0, expect.any(Number)])
  expect(Math.max(...Object.keys(sketch).map(Number))).toBeLessThan(185)
  expect(quantilesOf(sketch)?.p50).toBeCloseTo(1, 0)
})

test('an empty sketch has no quantiles', () => {
  expect(quantilesOf({})).toBeNull()
})
