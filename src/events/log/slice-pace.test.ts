import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { SlicePace } from './slice-pace.ts'

const clock = { monotonic: () => 0 }

/** One slice that takes so long. */
const slice = (pace: SlicePace, events: number, milliseconds: number): Promise<void> =>
  pace.write(events, 0, async ({ held }) => held?.(milliseconds))

/** Slices on a machine that takes `fixedMs` for each and `eventMs` for each of its events; how long each took. */
async function slices(pace: SlicePace, count: number, { fixedMs, eventMs }: { fixedMs: number; eventMs: number }) {
  const times: number[] = []
  for (let index = 0; index < count; index += 1) {
    times.push(fixedMs + pace.events * eventMs)
    await slice(pace, pace.events, fixedMs + pace.events * eventMs)
  }
  return times
}

test('on any machine slices come to take no longer than the target, and not much less', async () => {
  const machine = fc.record({
    fixedMs: fc.double({ min: 0, max: 1, noNaN: true }),
    eventMs: fc.double({ min: 0.001, max: 0.045, noNaN: true }),
  })
  await fc.assert(
    fc.asyncProperty(machine, machine, async (before, after) => {
      const pace = new SlicePace(clock)
      await slices(pace, 30, before)
      const settled = (await slices(pace, 60, after)).slice(30)
      expect(Math.max(...settled)).toBeLessThanOrEqual(2.5)
      // What is left over once it is as large as a batch is no fault of its own.
      if (pace.events < 500) expect(Math.min(...settled)).toBeGreaterThanOrEqual(1.875)
    }),
  )
})

test('on a disk that is always slow slices have the minimum size', async () => {
  const pace = new SlicePace(clock)
  await slices(pace, 20, { fixedMs: 30, eventMs: 0.01 })
  expect(pace.events).toBe(32)
})

test('one slow write halves the next slice at most, and the rest of a batch does not count', async () => {
  const pace = new SlicePace(clock)
  await slice(pace, 64, 2)
  expect(pace.events).toBe(64)
  await slice(pace, 3, 0.1)
  await slice(pace, 3, 900)
  expect(pace.events).toBe(64)
  await slice(pace, 64, 900)
  expect(pace.events).toBe(32)
})

test('writes slices one after the other, also after a failure, and does not count their waiting time', async () => {
  const pace = new SlicePace(clock)
  const steps: string[] = []
  const written = (name: string) =>
    pace.write(64, 0, async ({ held }) => {
      steps.push(`${name} begins`)
      await Bun.sleep(1)
      held?.(2)
      steps.push(`${name} ends`)
      if (name === 'two') throw new Error('locked')
    })
  const ends = await Promise.allSettled(['one', 'two', 'three'].map(written))
  expect(ends.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(steps).toEqual(['one', 'two', 'three'].flatMap((name) => [`${name} begins`, `${name} ends`]))
  expect(pace.events).toBe(64)
})
