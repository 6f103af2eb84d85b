import { expect, test } from 'bun:test'
import { eventSchema, noAttribution } from '../event.ts'
import { expandRecord, facetNames, facetValues, type LogRecord, visitFacets } from './record.ts'
import { eventsOfRecord } from './record-events.ts'

const [outcomeId, attemptId, decisionId] = [1, 2, 3].map((digit) => `0190a0c0-0000-7000-8000-00000000000${digit}`)
const at = Date.parse('2026-01-01T00:00:00.000Z')

const record: LogRecord = {
  ...{ event_id: outcomeId ?? '', event_type: 'gateway.request.outcome', request_id: 'r', verdict: 'block' },
  ...{ timestamp: new Date(at).toISOString(), reason_code: 'policy.pii', config_version: 7 },
  event_attribution: { ...noAttribution, team_id: 'team' },
  ...{ exchange_id: outcomeId, trace_id: 't', config_id: 'c', environment: 'staging', prompt_hash: 'h' },
  ...{ details: { model: 'm', attempts: 1 }, metadata: { a: 'b' }, prompt_redacted: 'text', settlements: [] },
  event_cost_attribution: {
    ...{ currency: 'USD', cost: 1, estimated: false, input_tokens: 1, output_tokens: 2, cached_input_tokens: null },
    ...{ reasoning_tokens: null, provider: 'p', model: 'm', price_source: null, spend_owner: null },
  },
  attempts: [{ event_id: attemptId ?? '', verdict: 'allow', reason_code: 'ok', details: { attempt: 1 } }],
  decisions: [{ event_id: decisionId ?? '', verdict: 'block', reason_code: 'policy.pii', details: { escalation: {} } }],
}

test('attempts and decisions share every member of their outcome but those of the outcome alone', () => {
  const members = Object.keys(eventSchema.shape)
  expect(
    Object.keys(record)
      .filter((name) => members.includes(name))
      .toSorted(),
  ).toEqual(members.toSorted())
  const own = ['metadata', 'prompt_hash', 'event_cost_attribution', 'settlements']
  const [attempt, decision, outcome] = expandRecord(record)
  const shared = members.filter((name) => !own.includes(name))
  expect(Object.keys(decision ?? {}).toSorted()).toEqual(shared.toSorted())
  expect(Object.keys(attempt ?? {}).toSorted()).toEqual(shared.filter((name) => name !== 'prompt_redacted').toSorted())
  const { attempts: _attempts, decisions: _decisions, ...whole } = record
  expect(outcome).toEqual(whole)
  expect(attempt).toMatchObject({ event_id: attemptId, event_type: 'gateway.provider.attempt', environment: 'staging' })
  expect(decision).toMatchObject({ event_id: decisionId, event_type: 'decision', verdict: 'block', trace_id: 't' })
})

test("an outcome's JSON is its part of the record's text, wherever its attempts stand", () => {
  const { attempts, decisions, ...outcome } = record
  const texts = [
    JSON.stringify(record),
    JSON.stringify({ attempts, decisions, ...outcome }),
    JSON.stringify({ ...outcome, details: { ...outcome.details, attempts, decisions } }),
    JSON.stringify(record).replace('"team"', '"t\\u0065am"'),
    JSON.stringify(record, null, 1),
    JSON.stringify({ ...outcome, attempts }),
  ]
  for (const text of texts) {
    const shown = eventsOfRecord({ text, at, quarantine: undefined })
    for (const { event, json } of shown)
      if (json !== undefined) expect(JSON.parse(json)).toEqual(JSON.parse(JSON.stringify(event)))
  }
  const [first] = texts
  expect(eventsOfRecord({ text: first ?? '', at, quarantine: undefined }).at(-1)?.json).toBe(JSON.stringify(outcome))
})

test('the facets of a record are those of its events, each value once for each event', () => {
  const results = ['two', 'one', 'two', 7].map((policy_id) => ({ policy_id }))
  const details = { model: 'm', provider: 'p', status: 200, policy_id: 'one', policy_results: [...results, null] }
  const counts = (visited: readonly (readonly [string, unknown, number])[]) => {
    const sums = new Map<string, number>()
    for (const [facet, value, events] of visited) {
      if (typeof value === 'string') sums.set(`${facet}=${value}`, (sums.get(`${facet}=${value}`) ?? 0) + events)
    }
    return Object.fromEntries([...sums].toSorted())
  }
  const whole: LogRecord = { ...record, details }
  const visited: [string, unknown, number][] = []
  visitFacets(whole, (...each) => visited.push(each))
  const ofEvents = expandRecord(whole).flatMap((event) =>
    facetNames.flatMap((facet) => facetValues(event, facet).map((value) => [facet, value, 1] as const)),
  )
  expect(counts(visited)).toEqual(counts(ofEvents))
  expect(counts(visited)).toMatchObject({
    'team=team': 3,
    'policy=one': 1,
    'policy=two': 1,
    'status=2xx': 1,
    'type=decision': 1,
  })
})
