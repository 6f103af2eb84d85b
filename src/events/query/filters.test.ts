import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Clock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log/log.ts'
import { createRecorder } from '../change.ts'
import { type Event, noAttribution, type Verdict } from '../event.ts'
import type { EventType } from '../event-types.ts'
import { mergeOnce } from '../log/merge-segments.ts'
import { expandRecord, type LogRecord } from '../log/record.ts'
import { emptyTestDatabases, openTestDatabases, type TestDatabases, testEvent, testOwner } from '../testing/ledger.ts'
import { conditionsOf, type EventFilters } from './filters.ts'
import { orders, readEventPage } from './query.ts'

const now = Date.parse('2026-01-01T12:00:00Z')
const clock: Clock = { now: () => now, monotonic: () => now }
let databases: TestDatabases
beforeAll(async () => {
  databases = await openTestDatabases()
})
afterAll(() => databases.remove())
beforeEach(() => emptyTestDatabases(databases))

const record = (events: readonly Event[]) =>
  createRecorder({ ...databases, announce: () => undefined, clock, log: silentLog }).append(events)

const ids = ['01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-000000000002'] as const

interface Asked {
  filters: EventFilters
  teams: readonly string[]
  limit: number
  order: (typeof orders)[number]
}

async function readPages(asked: Asked, cursor: string | undefined, between: () => Promise<void>) {
  const { filters, teams, limit, order } = asked
  const seen: string[] = []
  for (;;) {
    const conditions = await conditionsOf(databases.ledger, filters, {
      principal: testOwner,
      visibility: { teams, ownTokens: [] },
    })
    const options = { filters: { since: '1d', ...filters }, since: now - 86_400_000, conditions, clock }
    const page = await readEventPage(databases.ledger, { ...options, order, limit, cursor })
    expect(page.events.length).toBeLessThanOrEqual(limit)
    seen.push(...page.events.map(({ event_id }) => event_id))
    if (page.next_cursor === null) return { seen, follow: page.follow }
    cursor = page.next_cursor
    await between()
  }
}

const anyEvent = fc
  .record({
    minutes: fc.integer({ min: 0, max: 5 }),
    type: fc.constantFrom<EventType>('gateway.request.outcome', 'decision', 'token.created'),
    verdict: fc.constantFrom<Verdict>('allow', 'deny'),
    reason: fc.constantFrom('ok', 'policy.terms'),
    model: fc.constantFrom('gpt-4o', 'claude', null),
    request: fc.constantFrom('one', 'two'),
    which: fc.constantFrom(0, 1),
    team: fc.constantFrom('team-a', 'team-b'),
    status: fc.constantFrom(200, 404, null),
    cost: fc.constantFrom(null, 0.25, 0.1),
    attempts: fc.integer({ min: 0, max: 2 }),
  })
  .map(({ attempts, ...given }): LogRecord => {
    const { minutes, type, verdict, reason, model, request, which, team, status, cost } = given
    const event = testEvent({
      event_type: type,
      verdict,
      reason_code: reason,
      request_id: request,
      exchange_id: ids[which],
      timestamp: new Date(now - minutes * 60_000).toISOString(),
      details: {
        ...(model !== null && { model }),
        ...{ status, latency_ms: minutes * 100, provider: `provider-${which}` },
        policy_results: [{ policy_id: ids[which] }],
      },
      event_attribution: {
        ...noAttribution,
        team_id: team,
        token_id: ids[which] ?? null,
        gateway_id: ids[which] ?? null,
        user_id: ids[1 - which] ?? null,
        session_id: `session-${which}`,
        ...(which === 0 && { client: 'codex' }),
      },
      ...(cost !== null && {
        event_cost_attribution: {
          ...{ currency: 'USD', cost, estimated: false, input_tokens: 1, output_tokens: 2, cached_input_tokens: null },
          ...{ reasoning_tokens: null, provider: 'p', model: 'm', price_source: null, spend_owner: null },
        },
      }),
    })
    if (attempts === 0 || type !== 'gateway.request.outcome') return event
    const attempt = { event_id: '', verdict: 'allow' as const, reason_code: 'ok', details: { model: 'gpt-4o' } }
    return { ...event, attempts: Array.from({ length: attempts }, () => attempt) }
  })

const anyFilters: fc.Arbitrary<EventFilters> = fc.record(
  {
    event_type: fc.constantFrom('gateway.request.outcome', 'token.created'),
    gateway_id: fc.constantFrom(...ids),
    verdict: fc.constantFrom('allow', 'deny'),
    until: fc.integer({ min: -2, max: 5 }).map((minutes) => new Date(now - minutes * 60_000).toISOString()),
    request_id: fc.constantFrom('one', 'none'),
    exchange_id: fc.constantFrom(...ids),
    session_id: fc.constantFrom('session-0', 'none'),
    client: fc.constantFrom('codex', 'none'),
    token_id: fc.constantFrom(...ids),
    token: fc.constantFrom(...ids),
    user_id: fc.constantFrom(...ids),
    policy: fc.constantFrom(...ids),
    model: fc.constantFrom('gpt-4o', 'other'),
    provider: fc.constantFrom('provider-0', 'none'),
    reason_code: fc.constantFrom('ok', 'policy.terms'),
    reason_text: fc.constantFrom('TERM', 'ok'),
    status: fc.constantFrom('2xx', '4xx'),
    min_cost: fc.constantFrom('0', '0.2', '0.25'),
    min_latency_ms: fc.constantFrom('0', '200'),
  },
  { requiredKeys: [] },
)

function matches(event: Event, teams: readonly string[], filters: EventFilters): boolean {
  const { event_attribution: who, details, event_cost_attribution: cost } = event
  const has: Record<string, unknown> = { ...event, ...who, ...details, token: who.token_id, policy: who.token_id }
  return (
    teams.includes(who.team_id ?? '') &&
    Object.entries(filters).every(([name, value = '']) => {
      if (name === 'until') return event.timestamp < value
      if (name === 'status') return typeof details?.status === 'number' && `${details.status}`[0] === value[0]
      if (name === 'min_cost') return typeof cost?.cost === 'number' && cost.cost >= Number(value)
      if (name === 'min_latency_ms') return Number(details?.latency_ms) >= Number(value)
      if (name === 'reason_text') return event.reason_code.includes(value.toLowerCase())
      return has[name] === value
    })
  )
}

function withNewIds(record: LogRecord): LogRecord {
  const { attempts } = record
  const changed = { ...record, event_id: Bun.randomUUIDv7() }
  if (attempts === undefined) return changed
  return { ...changed, attempts: attempts.map((attempt) => ({ ...attempt, event_id: Bun.randomUUIDv7() })) }
}

const idOf = ({ event_id }: Event) => event_id

test('any filters page and follow through exactly the matching events, while others arrive and segments merge', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(anyEvent, { maxLength: 8 }), { maxLength: 5 }),
      fc.array(anyEvent, { minLength: 1, maxLength: 6 }),
      anyFilters,
      fc.constantFrom(['team-a'], ['team-a', 'team-b'], ['team-c', 'team-a', 'team-d']),
      fc.integer({ min: 1, max: 4 }),
      fc.constantFrom(...orders),
      async (batches, arriving, filters, teams, limit, order) => {
        await emptyTestDatabases(databases)
        // An id may be recorded once, and shrinking would have it twice.
        const fresh = (records: readonly LogRecord[]) => records.map(withNewIds)
        const before = batches.map(fresh)
        for (const batch of before) await record(batch)
        const later: Event[] = []
        const between = async () => {
          const more = fresh(arriving)
          later.push(...more.flatMap(expandRecord))
          await record(more)
          await mergeOnce(databases.ledger, { full: 3, fanIn: 2 })
        }
        const asked = { filters, teams, limit, order }
        const inTime = before
          .flat()
          .flatMap(expandRecord)
          .filter((event) => matches(event, teams, filters))
          .toSorted((one, other) => (one.timestamp < other.timestamp ? -1 : one.timestamp > other.timestamp ? 1 : 0))
        const { seen, follow } = await readPages(asked, undefined, between)
        expect(seen).toEqual((order === 'newest' ? inTime.toReversed() : inTime).map(idOf))
        const wanted = () => later.filter((event) => matches(event, teams, filters)).map(idOf)
        const arrived = await readPages(asked, follow, async () => void (await mergeOnce(databases.ledger)))
        expect(arrived.seen).toEqual(wanted())
        const known = wanted().length
        await between()
        expect((await readPages(asked, arrived.follow, async () => undefined)).seen).toEqual(wanted().slice(known))
      },
    ),
    { numRuns: Number(process.env.LOG_RUNS ?? 150) },
  )
}, 120_000)

test('a page that finds little in a second ends early, with a cursor that goes on there', async () => {
  const attribution = { ...noAttribution, team_id: 't' }
  const filters = { since: '1d', reason_text: 'rare' }
  const caller = { principal: testOwner, visibility: { teams: ['t'], ownTokens: [] } }
  const conditions = await conditionsOf(databases.ledger, filters, caller)
  let time = 0
  const slow = { monotonic: () => (time += 400) }
  const options = { filters, since: 0, limit: 5, conditions, clock: slow }
  const { follow } = await readEventPage(databases.ledger, { ...options, order: 'newest', cursor: undefined })
  for (let minutes = 20; minutes > 0; minutes -= 1) {
    const timestamp = new Date(now - minutes * 60_000).toISOString()
    const reason_code = minutes === 10 ? 'rare' : 'ok'
    await record([testEvent({ timestamp, reason_code, event_attribution: attribution })])
  }
  for (const [order, begun] of [
    ['newest', undefined],
    ['oldest', undefined],
    ['oldest', follow],
  ] as const) {
    const found: string[] = []
    let pages = 0
    let cursor: string | undefined = begun
    do {
      const page = await readEventPage(databases.ledger, { ...options, order, cursor })
      found.push(...page.events.map(({ reason_code }) => reason_code))
      cursor = page.next_cursor ?? undefined
      pages += 1
    } while (cursor !== undefined)
    expect(found).toEqual(['rare'])
    expect(pages).toBeGreaterThan(5)
  }
})

test('finds requests by how their exchange id begins', async () => {
  const [first, other] = ['01900000-aaaa-7000-8000-000000000001', '01900001-aaaa-7000-8000-000000000002'] as const
  const at = new Date(now - 1000).toISOString()
  const event_attribution = { ...noAttribution, team_id: 't' }
  await record(
    [first, other].map((id) => testEvent({ exchange_id: id, event_id: id, timestamp: at, event_attribution })),
  )
  const found = async (exchange_prefix: string) => {
    const asked = { filters: { exchange_prefix }, teams: ['t'], limit: 10, order: 'newest' } as const
    return (await readPages(asked, undefined, async () => undefined)).seen
  }
  expect(await found('01900000')).toEqual([first])
  expect(await found('01900001-aa')).toEqual([other])
  expect(await found('0190000f')).toEqual([])
})
