/** Limits of tokens a minute: what a request takes before anybody knows what it uses. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { attempt, tokens, world } from '../testing/rates.ts'
import { slotMinuteMs } from './rate.ts'
import type { RateDemand } from './rates.ts'

test('a request that may exceed the rest takes what is left, one at a time, and its excess is paid later', async () => {
  const inside = world(1000)
  inside.start('a')
  const want: RateDemand = { account: tokens, slots: 1010, least: 11, limit: 1000 }
  const passed: number[] = []
  const made = Array.from({ length: 100 }, () => attempt(inside, 'a', [want], passed))
  await inside.until(inside.now + 3000)
  expect(passed).toHaveLength(1)
  made[0]?.ticket?.correct(3500)
  for (const minute of [1, 2, 3]) {
    const early = attempt(inside, 'a', [want], passed)
    await inside.until(inside.now + 500)
    expect([minute, early.refused?.reason]).toEqual([minute, 'used'])
    for (let second = 0; second < 60; second++) {
      inside.workers.get('a')?.tick()
      await inside.until(inside.now + 1000)
    }
  }
  const half: RateDemand = { account: tokens, slots: 500, least: 500, limit: 1000 }
  const more = attempt(inside, 'a', [{ ...half, slots: 501, least: 501 }], passed)
  await inside.until(inside.now + 3000)
  const paid = attempt(inside, 'a', [half], passed)
  await inside.until(inside.now + 3000)
  expect([more.ticket, paid.refused]).toEqual([null, null])
})

test('requests without an output limit use the whole minute one after another', async () => {
  const inside = world(1000)
  inside.start('a')
  const want: RateDemand = { account: tokens, slots: 800, least: 10, limit: 1000 }
  for (let index = 0; index < 10; index++) {
    const made = attempt(inside, 'a', [want], [])
    await inside.until(inside.now + 100)
    expect(made.refused).toBeNull()
    made.ticket?.correct(99)
  }
  const last = attempt(inside, 'a', [want], [])
  await inside.until(inside.now + 100)
  expect(last.ticket).not.toBeNull()
})

test('in any minute the tokens are at most the limit plus what requests used above their reservation', async () => {
  const limit = 100
  const requests = fc.array(
    fc.record({
      wait: fc.integer({ min: 0, max: 20_000 }),
      input: fc.integer({ min: 1, max: 40 }),
      most: fc.integer({ min: 1, max: 300 }),
      isBounded: fc.boolean(),
      used: fc.double({ min: 0, max: 1, noNaN: true }),
      takes: fc.integer({ min: 0, max: 90_000 }),
      restarts: fc.constantFrom(false, false, false, true),
    }),
    { minLength: 5, maxLength: 40 },
  )
  await fc.assert(
    fc.asyncProperty(requests, async (list) => {
      const inside = world(limit)
      inside.start('a')
      const tick = () => {
        inside.workers.get('a')?.tick()
        inside.at(inside.now + 1000, tick)
      }
      tick()
      const begun = inside.now
      const booked: { at: number; slots: number; beyond: number }[] = []
      for (const { wait, input, most, isBounded, used, takes, restarts } of list) {
        await inside.until(inside.now + wait)
        if (restarts) inside.start('a')
        const process = inside.workers.get('a')
        const slots = input + most
        const least = isBounded && slots <= limit ? slots : input
        const made = attempt(inside, 'a', [{ account: tokens, slots, least, limit }], [])
        await inside.until(inside.now + 10)
        const { ticket } = made
        if (ticket === null) continue
        const taken = ticket.uses()[0]?.[2] ?? 0
        const actual = Math.round(input + used * most)
        const record = { at: inside.now, slots: taken, beyond: Math.max(0, actual - taken) }
        booked.push(record)
        inside.at(inside.now + takes, () => {
          // Where the process was killed, all that was taken counts.
          if (inside.workers.get('a') !== process) return
          inside.record('a', ticket.correct(actual))
          record.slots = Math.min(taken, actual)
        })
      }
      await inside.until(inside.now + 100_000)
      for (const { at } of booked) {
        const minute = booked.filter((each) => each.at >= at && each.at < at + slotMinuteMs)
        expect(minute.reduce((sum, { slots }) => sum + slots, 0)).toBeLessThanOrEqual(limit)
      }
      // Over the whole, what was used beyond is paid: but for the last request, and what a kill forgives, no more passes.
      if (list.some(({ restarts }) => restarts)) return
      const minutes = Math.ceil((inside.now - begun) / slotMinuteMs)
      const all = booked.reduce((sum, { slots, beyond }) => sum + slots + beyond, 0)
      const largest = Math.max(0, ...booked.map(({ beyond }) => beyond))
      expect(all).toBeLessThanOrEqual(limit * (minutes + 1) + largest)
    }),
    { numRuns: 60 },
  )
}, 60_000)
