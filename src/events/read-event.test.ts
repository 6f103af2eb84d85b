import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { attributionSchema, costAttributionSchema, eventSchema, settlementSchema } from './event.ts'
import { isPlainEvent, readEvent } from './read-event.ts'

const id = '01a2018e-546b-74d8-b7c6-2eb6f1d597ce'

/** With everything that an event may have. */
const whole = {
  event_id: id,
  event_type: 'gateway.request.outcome',
  request_id: 'request-1',
  timestamp: '2026-11-22T04:40:34.668Z',
  verdict: 'allow',
  reason_code: 'ok',
  config_version: 18,
  event_attribution: {
    ...{ token_id: id, team_id: null, user_id: null, gateway_id: id },
    ...{ oauth_client_id: null, session_id: null, key_class: 'durable', client: 'codex' },
    ...{ workload_identity_id: '01990000-0000-7000-8000-00000000aa01', workload_subject: 'app' },
    dimensions: { customer: 'acme' },
  },
  exchange_id: id,
  trace_id: 'a'.repeat(32),
  config_id: id,
  environment: 'production',
  details: { model: 'm', policy_results: [{ policy_id: id, targets: [] }] },
  metadata: { project: 'p' },
  prompt_redacted: 'text',
  prompt_hash: 'k:h',
  event_cost_attribution: {
    ...{ currency: 'USD', cost: 0.000018, estimated: false },
    ...{ input_tokens: 11, output_tokens: 7, cached_input_tokens: null, reasoning_tokens: null },
    ...{ provider: 'openai', model: 'm', price_source: 'operator', spend_owner: null },
  },
  settlements: [
    { account: `token/${id}/requests`, amount: 1 },
    { account: `token/${id}/money`, amount: 18_000 },
  ],
}

test('reads an event with every field that the schema knows, at every level', () => {
  for (const [said, schema] of [
    [whole, eventSchema],
    [whole.event_attribution, attributionSchema],
    [whole.event_cost_attribution, costAttributionSchema],
    ...whole.settlements.map((each) => [each, settlementSchema] as const),
  ] as const) {
    expect(Object.keys(said).sort()).toEqual(Object.keys(schema.shape).sort())
  }
})

/** Where in an event something may stand otherwise. */
const places = fc.constantFrom<readonly string[]>(
  ...Object.keys(whole).map((name) => [name]),
  ...Object.keys(whole.event_attribution).map((name) => ['event_attribution', name]),
  ...Object.keys(whole.event_cost_attribution).map((name) => ['event_cost_attribution', name]),
  ...['0', '1', '2', 'length'].map((name) => ['settlements', name]),
  ...['account', 'amount', 'other'].map((name) => ['settlements', '1', name]),
  ...['other', '__proto__', 'toString'].flatMap((name) => [
    [name],
    ['details', name],
    ['metadata', name],
    ['event_attribution', name],
    ['event_cost_attribution', name],
  ]),
)

const values = fc.oneof(
  fc.constantFrom<unknown>(
    ...[
      null,
      true,
      0,
      -0,
      -1,
      1.5,
      2 ** 53,
      1e300,
      '',
      'USD',
      'EUR',
      'allow',
      'decision',
      'constructor',
      [],
      {},
      ['a'],
    ],
    ...[id.toUpperCase(), id.slice(1), `${id}\n`, '00000000-0000-0000-0000-000000000000', { a: 'b' }, { a: 1 }],
    ...['2026-02-29T00:00:00Z', '2024-02-29T00:00:00Z', '2026-11-22T04:40:34+00:00', '2026-11-22T04:40Z'],
    ...['2026-11-22T24:00:00Z', '2026-11-22', '2026-11-22T04:40:34.123456Z', { account: 'a', amount: 1 }],
  ),
  fc.jsonValue(),
)

const own = { enumerable: true, configurable: true, writable: true }

/** The JSON text of an event with changes; `undefined` takes something away. */
function changed(changes: readonly (readonly [readonly string[], unknown])[]): string {
  const event = structuredClone<unknown>(whole)
  for (const [path, value] of changes) {
    let at: unknown = event
    for (const name of path.slice(0, -1)) at = Reflect.get(Object(at), name)
    if (typeof at !== 'object' || at === null) continue
    const name = path.at(-1) ?? ''
    if (value === undefined) Reflect.deleteProperty(at, name)
    else if (name === 'length') Reflect.set(at, name, 1)
    // A copy: a later change could write into a value that other cases use too, or make it part of itself.
    else Object.defineProperty(at, name, { ...own, value: structuredClone(value) })
  }
  return JSON.stringify(event)
}

test('reads any modified event exactly as the schema does', () => {
  const change = fc.tuple(places, fc.option(values, { nil: undefined, freq: 3 }))
  fc.assert(
    fc.property(fc.array(change, { maxLength: 3 }), (changes) => {
      const text = changed(changes)
      const { data = null } = eventSchema.safeParse(JSON.parse(text))
      expect(JSON.stringify(sorted(readEvent(JSON.parse(text))))).toBe(JSON.stringify(sorted(data)))
    }),
    { numRuns: 1500 },
  )
})

/** By name at each level: the schema puts what it knows in an order of its own. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1))
  return { of: entries.map(([name, of]) => [name, sorted(of)]) }
}

test('reads events of gateways without the schema, and uses it for missing, additional or other fields', () => {
  expect(isPlainEvent(whole)).toBe(true)
  const { request_id: _, ...missing } = whole
  for (const other of [missing, { ...whole, extra: 1 }, { ...whole, verdict: 'maybe' }, [whole], null, 'event', 7]) {
    expect(isPlainEvent(other)).toBe(false)
  }
  // Of a newer release: read without what this one does not know.
  expect(readEvent({ ...whole, extra: 1 })).toEqual(eventSchema.parse(whole))
})
