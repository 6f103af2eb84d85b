import { expect, test } from 'bun:test'
import { flatnessOf } from './flatness.ts'

const allowance = { share: 0.1, least: 2 }
const samples = (of: (index: number) => number): number[] => Array.from({ length: 50 }, (_, index) => of(index))
const noise = (index: number): number => ((index * 7919) % 11) - 5

test('takes noise and a few outliers as flat', () => {
  expect(flatnessOf(samples(noise), { share: 0, least: 2 }).flat).toBe(true)
  const withOutliers = samples((index) => 100 + noise(index) + (index % 20 === 19 ? 500 : 0))
  expect(flatnessOf(withOutliers, allowance).flat).toBe(true)
})

test('takes growth beyond the share as not flat, despite noise', () => {
  const leak = flatnessOf(
    samples((index) => 100 + index / 2 + noise(index)),
    allowance,
  )
  expect(leak.flat).toBe(false)
  expect(leak.growth).toBeCloseTo(24.5, 0)
})

test('takes a falling series, or too few samples, as flat', () => {
  expect(
    flatnessOf(
      samples((index) => 100 - index),
      allowance,
    ).flat,
  ).toBe(true)
  expect(flatnessOf([1], allowance)).toMatchObject({ flat: true, growth: 0 })
})
