import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Clock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log/log.ts'
import { createRecorder } from '../change.ts'
import { type Event, noAttribution, type Verdict } from '../event.ts'
import type { EventType } from '../event-types.ts'
import { emptyTestDatabases, openTestDatabases, type TestDatabases, testEvent } from '../testing/ledger.ts'
import type { EventFilters } from './filters.ts'
import { readEventPage } from './query.ts'

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

const visibility = { teams: ['team-a'], ownTokens: [] } as const
const ids = ['01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-000000000002'] as const

/** All pages of a query, with something new arriving between any two. */
async function pages(
  { filters, teams, limit }: { filters: EventFilters; teams: readonly string[]; limit: number },
  arriving: () => Event,
): Promise<string[]> {
  const seen: string[] = []
  let cursor: string | undefined
  do {
    const options = {
      ...{ filters: { since: '1d', ...filters }, since: now - 86_400_000, limit, cursor },
      visibility: { teams, ownTokens: [] },
    }
    const page = await readEventPage(databases.ledger, options)
    seen.push(...page.events.map(({ event_id }) => event_id))
    cursor = page.next_cursor ?? undefined
    await record([arriving()])
  } while (cursor !== undefined)
  return seen
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
  })
  .map(({ minutes, type, verdict, reason, model, request, which, team }) =>
    testEvent({
      event_type: type,
      verdict,
      reason_code: reason,
      request_id: request,
      exchange_id: ids[which],
      timestamp: new Date(now - minutes * 60_000).toISOString(),
      details: model === null ? {} : { model },
      event_attribution: {
        ...noAttribution,
        team_id: team,
        token_id: ids[which] ?? null,
        gateway_id: ids[which] ?? null,
      },
    }),
  )

const anyFilters: fc.Arbitrary<EventFilters> = fc.record(
  {
    event_type: fc.constantFrom('gateway.request.outcome', 'token.created'),
    gateway_id: fc.constantFrom(...ids),
    verdict: fc.constantFrom('allow', 'deny'),
    until: fc.integer({ min: -2, max: 5 }).map((minutes) => new Date(now - minutes * 60_000).toISOString()),
    request_id: fc.constantFrom('one', 'none'),
    exchange_id: fc.constantFrom(...ids),
    token_id: fc.constantFrom(...ids),
    model: fc.constantFrom('gpt-4o', 'other'),
    reason_code: fc.constantFrom('ok', 'policy.terms'),
  },
  { requiredKeys: [] },
)

function matches(event: Event, teams: readonly string[], { until, model, ...filters }: EventFilters): boolean {
  const { token_id, gateway_id, team_id } = event.event_attribution
  const has: Record<string, unknown> = { ...event, token_id, gateway_id }
  return (
    teams.includes(team_id ?? '') &&
    (until === undefined || event.timestamp < until) &&
    (model === undefined || event.details?.model === model) &&
    Object.entries(filters).every(([name, value]) => has[name] === value)
  )
}

test('any combination of filters pages through exactly the matching events, while others arrive', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyEvent, { maxLength: 25 }),
      anyFilters,
      fc.constantFrom(['team-a'], ['team-a', 'team-b'], ['team-c', 'team-a', 'team-d']),
      fc.integer({ min: 1, max: 4 }),
      async (events, filters, teams, limit) => {
        await emptyTestDatabases(databases)
        // An id may be recorded once, and shrinking would have it twice.
        const fresh = events.map((event) => ({ ...event, event_id: Bun.randomUUIDv7() }))
        await record(fresh)
        const wanted = fresh.filter((event) => matches(event, teams, filters)).map(({ event_id }) => event_id)
        const template = fresh[0] ?? testEvent()
        const seen = await pages({ filters, teams, limit }, () => ({ ...template, event_id: Bun.randomUUIDv7() }))
        expect(seen).toEqual(wanted.toReversed())
      },
    ),
    { numRuns: 100 },
  )
})

test('uses an index for the most selective condition and no other', async () => {
  const used = async (filters: EventFilters): Promise<string> => {
    const plans: string[] = []
    const ledger = {
      ...databases.ledger,
      async read<Shape>(sql: string, args: (string | number | null)[] = []): Promise<Shape[]> {
        const steps = await databases.ledger.read<{ detail: string }>(`explain query plan ${sql}`, args)
        plans.push(...steps.map(({ detail }) => detail))
        return await databases.ledger.read<Shape>(sql, args)
      },
    }
    const options = { filters: { since: '1d', ...filters }, since: 0, limit: 10, cursor: undefined, visibility }
    await readEventPage(ledger, options)
    expect(plans.join()).not.toContain('TEMP B-TREE')
    return /INDEX (events_\w+)/.exec(plans.at(-1) ?? '')?.[1] ?? 'none'
  }
  expect(await used({})).toBe('events_team')
  expect(await used({ verdict: 'allow', gateway_id: ids[0] })).toBe('events_team')
  expect(await used({ verdict: 'deny' })).toBe('events_refused_team')
  expect(await used({ verdict: 'deny', gateway_id: ids[0] })).toBe('events_refused_team')
  expect(await used({ verdict: 'deny', token_id: ids[0] })).toBe('events_refused_token')
  expect(await used({ verdict: 'allow', event_type: 'token.created' })).toBe('events_type')
  expect(await used({ verdict: 'deny', reason_code: 'policy.terms' })).toBe('events_reason')
  expect(await used({ model: 'gpt-4o', verdict: 'allow' })).toBe('events_model')
  expect(await used({ model: 'gpt-4o', verdict: 'deny' })).toBe('events_refused_model')
  expect(await used({ model: 'gpt-4o', verdict: 'deny', token_id: ids[0] })).toBe('events_refused_token')
  expect(await used({ model: 'gpt-4o', token_id: ids[0] })).toBe('events_token')
  expect(await used({ request_id: 'one', token_id: ids[0] })).toBe('events_request')
  expect(await used({ exchange_id: ids[0], request_id: 'one' })).toBe('events_exchange')
})
