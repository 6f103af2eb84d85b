import { expect, test } from 'bun:test'
import { nobody } from '../events/event.ts'
import { testEvent } from '../events/test-ledger.ts'
import { UnknownCallers } from './outbox-refusals.ts'

const unknown = (reason = 'invalid_api_token') => testEvent({ verdict: 'deny', reason_code: reason })

function callers() {
  const clock = { now: 0 }
  const limit = new UnknownCallers(() => clock.now, { eachSecond: 3, summaryMs: 10_000 })
  return { clock, admit: (event = unknown(), scarce = false) => limit.admit([event], () => scarce) }
}

test('a few refusals of unknown callers are recorded as they are', () => {
  const { admit } = callers()
  const event = unknown()
  expect(admit(event)).toEqual([event])
})

test('a flood of them becomes an event in a while that says how many there were, and why', () => {
  const { clock, admit } = callers()
  const recorded = Array.from({ length: 1000 }, (_, index) =>
    admit(unknown(index % 2 === 0 ? 'missing_api_key' : 'invalid_api_token')),
  ).flat()
  expect(recorded).toHaveLength(4)
  expect(recorded[3]).toMatchObject({ event_type: 'auth.refused', details: { refused: { invalid_api_token: 1 } } })
  clock.now = 10_000
  const [event, summary] = admit()
  expect(event).toMatchObject({ event_type: 'gateway.request.outcome' })
  expect(summary?.details).toEqual({ refused: { missing_api_key: 498, invalid_api_token: 498 } })
})

test('while room is scarce only such sums are recorded', () => {
  const { clock, admit } = callers()
  expect(admit(unknown(), true)).toMatchObject([{ reason_code: 'refusals.summed' }])
  clock.now = 5000
  expect(admit(unknown(), true)).toEqual([])
})

test('whoever is known is always recorded', () => {
  const { admit } = callers()
  const known = testEvent({ event_attribution: { ...nobody, token_id: 'token' } })
  for (let index = 0; index < 50; index++) expect(admit(known, true)).toEqual([known])
})
