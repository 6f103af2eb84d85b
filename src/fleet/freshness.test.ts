import { expect, test } from 'bun:test'
import { Freshness, instant } from './freshness.ts'

const clock = { wall: 1_000_000, ticks: 50, now: () => clock.wall, monotonic: () => clock.ticks }

test('age is by whichever clock says more', () => {
  const freshness = new Freshness(clock, null)
  expect(freshness.age()).toBe(Number.POSITIVE_INFINITY)
  freshness.freshAt(instant(clock))
  clock.wall += 10
  clock.ticks += 700
  expect(freshness.age()).toBe(700)
  clock.wall += 5000
  expect(freshness.age()).toBe(5010)
})

test('an answer that comes late does not make older what is known already', () => {
  const freshness = new Freshness(clock, null)
  const early = instant(clock)
  clock.ticks += 100
  clock.wall += 100
  freshness.freshAt(instant(clock))
  freshness.freshAt(early)
  expect(freshness.age()).toBe(0)
})

test('a restart counts from the instant that was kept, unless the clock has gone back behind it', () => {
  expect(new Freshness(clock, clock.wall - 42).age()).toBe(42)
  expect(new Freshness(clock, clock.wall + 42).age()).toBe(Number.POSITIVE_INFINITY)
})
