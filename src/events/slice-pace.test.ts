import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { SlicePace } from './slice-pace.ts'

/** Slices on a machine that takes `fixedMs` for each and `eventMs` for each of its events. */
function slices(pace: SlicePace, count: number, { fixedMs, eventMs }: { fixedMs: number; eventMs: number }): number[] {
  return Array.from({ length: count }, () => {
    const milliseconds = fixedMs + pace.events * eventMs
    pace.took(pace.events, milliseconds)
    return milliseconds
  })
}

test('whatever the machine, slices come to take no longer than the target, and not less than half for nothing', () => {
  const machine = fc.record({
    fixedMs: fc.double({ min: 0, max: 2, noNaN: true }),
    eventMs: fc.double({ min: 0.001, max: 0.09, noNaN: true }),
  })
  fc.assert(
    fc.property(machine, machine, (before, now) => {
      const pace = new SlicePace()
      slices(pace, 30, before)
      const settled = slices(pace, 60, now).slice(30)
      expect(Math.max(...settled)).toBeLessThanOrEqual(5)
      // What is left over once it is as large as a batch is no fault of its own.
      if (pace.events < 500) expect(Math.min(...settled)).toBeGreaterThanOrEqual(2.5)
    }),
  )
})

test('a disk that is slow whatever it is given gets slices of the least size, no smaller ones', () => {
  const pace = new SlicePace()
  slices(pace, 20, { fixedMs: 30, eventMs: 0.01 })
  expect(pace.events).toBe(32)
})

test('one hiccup halves the next slice at most, and the rest of a batch says nothing', () => {
  const pace = new SlicePace()
  pace.took(64, 4)
  expect(pace.events).toBe(64)
  pace.took(3, 0.1)
  pace.took(3, 900)
  expect(pace.events).toBe(64)
  pace.took(64, 900)
  expect(pace.events).toBe(32)
})
