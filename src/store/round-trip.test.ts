import { expect, test } from 'bun:test'
import { RoundTrip } from './round-trip.ts'

test("estimates a write's lock time as its duration minus the fastest recent read", async () => {
  let now = 0
  const way = new RoundTrip(() => now)
  const taking = (milliseconds: number) => async () => {
    now += milliseconds
  }
  const heldOf = async (milliseconds: number): Promise<number> => {
    let held = Number.NaN
    await way.beyond(taking(milliseconds), { held: (told) => (held = told) })
    return held
  }
  expect(await heldOf(20)).toBe(0)
  for (const milliseconds of [30, 8, 60]) await way.seen(taking(milliseconds))
  expect(await heldOf(20)).toBeCloseTo(20 - 8 * 1.05)
  expect(await heldOf(5)).toBe(0)
  // The way has become longer: after some reads that is known.
  for (let index = 0; index < 60; index += 1) await way.seen(taking(16))
  expect(await heldOf(20)).toBe(4)
})
