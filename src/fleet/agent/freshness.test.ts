import { expect, test } from 'bun:test'
import { Freshness, instant } from './freshness.ts'

const clock = { wall: 1_000_000, ticks: 50, now: () => clock.wall, monotonic: () => clock.ticks }

const head = (version: number, nonce = `n${version}`, history = 'h') => ({ version, nonce, history })

test('takes the larger age of the wall clock and the monotonic clock', () => {
  const freshness = new Freshness(clock, null)
  expect(freshness.age()).toBe(Number.POSITIVE_INFINITY)
  freshness.heard(head(1), instant(clock), head(1))
  clock.wall += 10
  clock.ticks += 700
  expect(freshness.age()).toBe(700)
  clock.wall += 5000
  expect(freshness.age()).toBe(5010)
})

test('a late answer does not lower the known freshness', () => {
  const freshness = new Freshness(clock, null)
  const early = instant(clock)
  clock.ticks += 100
  clock.wall += 100
  freshness.heard(head(1), instant(clock), head(1))
  freshness.heard(head(1), early, head(1))
  expect(freshness.age()).toBe(0)
})

test('a restart counts from the kept instant, unless the clock went back before it', () => {
  expect(new Freshness(clock, clock.wall - 42).age()).toBe(42)
  expect(new Freshness(clock, clock.wall + 42).age()).toBe(Number.POSITIVE_INFINITY)
})

test('freshness counts from the request once the state has reached the answered head', () => {
  const freshness = new Freshness(clock, null)
  freshness.heard(head(1), instant(clock), head(1))
  clock.ticks += 100
  expect(freshness.heard(head(5), instant(clock), head(1))).toBe(false)
  clock.ticks += 100
  expect(freshness.heard(head(9), instant(clock), head(4))).toBe(false)
  expect([freshness.age(), freshness.behind]).toEqual([200, true])
  expect(freshness.read(head(4))).toBe(false)
  expect(freshness.read(head(5))).toBe(true)
  expect([freshness.age(), freshness.behind]).toEqual([100, false])
})

test('does not wait for versions that a restored primary has lost', () => {
  const freshness = new Freshness(clock, null)
  freshness.heard(head(8), instant(clock), head(1))
  freshness.heard(head(3), instant(clock), head(1))
  expect(freshness.read(head(3))).toBe(true)
  freshness.heard(head(5), instant(clock), head(4))
  freshness.heard(head(5, 'another'), instant(clock), head(4))
  expect(freshness.read(head(5))).toBe(false)
  freshness.heard(head(1, 'n1', 'another'), instant(clock), head(5))
  expect(freshness.read(head(6))).toBe(false)
})
