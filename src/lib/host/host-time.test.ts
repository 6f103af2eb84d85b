import { expect, test } from 'bun:test'
import { systemClock } from '../clock.ts'
import { hostTime } from './host-time.ts'

test('two processes of one host read the same time, though each counts from its own start', () => {
  const uptime = { now: 100_000 }
  const first = hostTime({ now: () => 0, monotonic: () => uptime.now - 70_000 }, () => uptime.now)
  const second = hostTime({ now: () => 0, monotonic: () => uptime.now - 99_000 }, () => uptime.now)
  expect([first(), second()]).toEqual([100_000, 100_000])
})

test('time in which the host slept counts', () => {
  let slept = 0
  let monotonic = 0
  const time = hostTime({ now: () => 0, monotonic: () => monotonic }, () => monotonic + slept)
  expect(time()).toBe(0)
  slept = 30_000
  monotonic = 1000
  expect(time()).toBe(31_000)
})

test('host time never goes back', () => {
  const time = hostTime(systemClock)
  const first = time()
  expect(time()).toBeGreaterThanOrEqual(first)
})
