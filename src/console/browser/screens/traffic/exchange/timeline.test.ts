import { expect, test } from 'bun:test'
import { type Event, noAttribution } from '../../../../../events/event.ts'
import { timelineOf } from './timeline.ts'

const event = (event_type: Event['event_type'], details: Event['details'], more: Partial<Event> = {}): Event => ({
  ...{ event_id: crypto.randomUUID(), event_type, request_id: null, verdict: 'allow', reason_code: 'ok' },
  ...{ timestamp: '2026-01-01T00:00:00.000Z', config_version: 1, event_attribution: noAttribution, details },
  ...more,
})
const policy = (stage: string, latency_ms: number) => ({
  ...{
    policy_id: 'p',
    kind: 'pii',
    stage,
    mode: 'enforce',
    verdict: 'allow',
    reason_code: 'ok',
    latency_ms,
    targets: [],
  },
})

test('puts the parts of a request in the order in which they happened', () => {
  const outcome = event(
    'gateway.request.outcome',
    {
      ...{ latency_ms: 900, first_token_ms: 400 },
      policy_results: [policy('pre_request', 2), policy('pre_request', 3), policy('pre_response', 1)],
    },
    { settlements: [{ account: 'a', amount: 1 }] },
  )
  const attempt = (number: number, start_ms: number, latency_ms: number) =>
    event('gateway.provider.attempt', { attempt: number, start_ms, latency_ms })
  const steps = timelineOf(outcome, [attempt(2, 310, 590), outcome, attempt(1, 9, 300)])
  expect(steps.map(({ kind, at, took }) => [kind, at, took])).toEqual([
    ['received', 0, null],
    ['policy', 0, 2],
    ['policy', 2, 3],
    ['reserved', 5, 4],
    ['attempt', 9, 300],
    ['attempt', 310, 590],
    ['first token', 400, null],
    ['policy', null, 1],
    ['end', 900, null],
  ])
})

test('a request that was refused before it was sent has no attempts and no reservation', () => {
  const outcome = event('gateway.request.outcome', { latency_ms: 1, first_token_ms: null })
  expect(timelineOf(outcome, [outcome]).map(({ kind }) => kind)).toEqual(['received', 'end'])
})
