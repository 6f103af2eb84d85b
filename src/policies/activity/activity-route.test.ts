import { expect, test } from 'bun:test'
import { sharedAnswers } from './activity-route.ts'

const reply = (examined: number) => ({
  ...{ since: '2026-05-01T00:00:00Z', until: '2026-05-02T00:00:00Z', exact_since: '2026-05-01T00:00:00Z' },
  ...{ examined, complete: true, policies: [] },
})

function counted() {
  let now = 0
  let made = 0
  const shared = sharedAnswers({ now: () => now })
  const make = async () => {
    made += 1
    return reply(made)
  }
  return { shared, make, made: () => made, later: (milliseconds: number) => (now += milliseconds) }
}

test('callers who ask the same at once share one answer', async () => {
  const { shared, make, made } = counted()
  expect(await Promise.all([shared(['24h'], make), shared(['24h'], make)])).toEqual([reply(1), reply(1)])
  expect(made()).toBe(1)
})

test('an answer is made anew after 30 seconds, and for callers who see something else', async () => {
  const { shared, make, later } = counted()
  await shared(['24h', { teams: 'every' }], make)
  expect(await shared(['24h', { teams: ['a'] }], make)).toEqual(reply(2))
  later(30_000)
  expect(await shared(['24h', { teams: 'every' }], make)).toEqual(reply(3))
})

test('a failure is not shared with the next caller', async () => {
  const { shared, make } = counted()
  await expect(shared(['24h'], () => Promise.reject(new Error('no ledger')))).rejects.toThrow('no ledger')
  expect(await shared(['24h'], make)).toEqual(reply(1))
})
