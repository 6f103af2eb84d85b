import { expect, test } from 'bun:test'
import { type Event, noAttribution } from '../../events/event.ts'
import { testEvent } from '../../events/testing/ledger.ts'
import { Failure } from '../../failure.ts'
import { UnknownCallers } from './refusals.ts'

const unknown = (reason = 'invalid_api_token') => testEvent({ verdict: 'deny', reason_code: reason })

function callers() {
  const clock = { now: 0 }
  const limit = new UnknownCallers(() => clock.now, { eachSecond: 3, summaryMs: 10_000 })
  const admit = (event = unknown(), scarce = false) => limit.admit(event, () => scarce)
  const sum = async (isEnd = false, full = false): Promise<unknown> => {
    const recorded: Event[] = []
    await limit.sum(1_800_000_000_000, isEnd, async (event) => {
      if (full) throw new Failure('event_outbox_full')
      recorded.push(event)
    })
    return recorded.length === 0 ? null : recorded
  }
  return { clock, admit, sum }
}

const refused = (counts: Record<string, number>) => [expect.objectContaining({ details: { refused: counts } })]

test('records a few refusals of unknown callers one by one', async () => {
  const { admit, sum } = callers()
  const event = unknown()
  expect(admit(event)).toBe(true)
  expect(await sum(true)).toBeNull()
})

test('sums up a flood of refusals into periodic events with counts and reasons', async () => {
  const { clock, admit, sum } = callers()
  const reasonOf = (index: number) => (index % 2 === 0 ? 'missing_api_key' : 'invalid_api_token')
  const flood = () => Array.from({ length: 1000 }, (_, index) => admit(unknown(reasonOf(index)))).filter(Boolean)
  expect(flood()).toHaveLength(3)
  expect(await sum()).toMatchObject([
    {
      ...{ event_type: 'auth.refused', reason_code: 'refusals.summed', request_id: null },
      timestamp: '2027-01-15T08:00:00.000Z',
      details: { refused: { missing_api_key: 498, invalid_api_token: 499 } },
    },
  ])
  clock.now = 9999
  expect(flood()).toHaveLength(3)
  expect(await sum()).toBeNull()
  clock.now = 10_000
  expect(await sum()).toEqual(refused({ missing_api_key: 498, invalid_api_token: 499 }))
  expect(await sum()).toBeNull()
})

test('sums up the remaining refusals at the end, however soon', async () => {
  const { admit, sum } = callers()
  admit(unknown(), true)
  expect(await sum()).toEqual(refused({ invalid_api_token: 1 }))
  admit(unknown(), true)
  expect(await sum()).toBeNull()
  expect(await sum(true)).toEqual(refused({ invalid_api_token: 1 }))
})

test('adds what could not be recorded to the next sum', async () => {
  const { admit, sum } = callers()
  admit(unknown(), true)
  expect(await sum(true, true).catch(({ code }) => code)).toBe('event_outbox_full')
  admit(unknown(), true)
  expect(await sum(true)).toEqual(refused({ invalid_api_token: 2 }))
})

test('records only sums while space is scarce', async () => {
  const { admit, sum } = callers()
  expect(admit(unknown(), true)).toBe(false)
  expect(await sum()).toEqual(refused({ invalid_api_token: 1 }))
})

test('always records a refusal of a known caller', () => {
  const { admit } = callers()
  const known = testEvent({ event_attribution: { ...noAttribution, token_id: 'token' } })
  for (let index = 0; index < 50; index++) expect(admit(known, true)).toBe(true)
})
