import { expect, test } from 'bun:test'
import { nobody } from '../events/event.ts'
import { testEvent } from '../events/test-ledger.ts'
import { UnknownCallers } from './outbox-refusals.ts'

const unknown = (reason = 'invalid_api_token') => testEvent({ verdict: 'deny', reason_code: reason })

function callers() {
  const clock = { now: 0 }
  const limit = new UnknownCallers(() => clock.now, { eachSecond: 3, summaryMs: 10_000 })
  const admit = (event = unknown(), scarce = false) => limit.admit([event], () => scarce)
  return { clock, admit, sum: (isEnd = false) => limit.sum(isEnd)?.details ?? null, limit }
}

test('a few refusals of unknown callers are recorded as they are', () => {
  const { admit, sum } = callers()
  const event = unknown()
  expect(admit(event)).toEqual([event])
  expect(sum(true)).toBeNull()
})

test('a flood of them becomes an event in a while that says how many there were, and why', () => {
  const { clock, admit, sum, limit } = callers()
  const reasonOf = (index: number) => (index % 2 === 0 ? 'missing_api_key' : 'invalid_api_token')
  const flood = () => Array.from({ length: 1000 }, (_, index) => admit(unknown(reasonOf(index)))).flat()
  expect(flood()).toHaveLength(3)
  expect(limit.sum(false)).toMatchObject({
    ...{ event_type: 'auth.refused', reason_code: 'refusals.summed', request_id: null },
    details: { refused: { missing_api_key: 498, invalid_api_token: 499 } },
  })
  clock.now = 9999
  expect(flood()).toHaveLength(3)
  expect(sum()).toBeNull()
  clock.now = 10_000
  expect(sum()).toEqual({ refused: { missing_api_key: 498, invalid_api_token: 499 } })
  expect(sum()).toBeNull()
})

test('at the end those that are left are summed, however soon', () => {
  const { admit, sum } = callers()
  admit(unknown(), true)
  expect(sum()).toEqual({ refused: { invalid_api_token: 1 } })
  admit(unknown(), true)
  expect(sum()).toBeNull()
  expect(sum(true)).toEqual({ refused: { invalid_api_token: 1 } })
})

test('while room is scarce only such sums are recorded', () => {
  const { admit, sum } = callers()
  expect(admit(unknown(), true)).toEqual([])
  expect(sum()).toEqual({ refused: { invalid_api_token: 1 } })
})

test('whoever is known is always recorded', () => {
  const { admit } = callers()
  const known = testEvent({ event_attribution: { ...nobody, token_id: 'token' } })
  for (let index = 0; index < 50; index++) expect(admit(known, true)).toEqual([known])
})
