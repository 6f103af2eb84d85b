/** Events over HTTP, as they were written and damaged; long because of every filter, cursor and form. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { createAnswerStore } from '../api/answer-store.ts'
import { sealCursor } from '../api/cursor.ts'
import { testApplication } from '../api/testing/application.ts'
import { permissionsOf } from '../identity/permissions.ts'
import type { Principal } from '../identity/principal.ts'
import type { Clock } from '../lib/clock.ts'
import { silentLog } from '../lib/log/log.ts'
import { createRecorder } from './change.ts'
import { type Event, noAttribution } from './event.ts'
import { exportAnswer } from './export/export.ts'
import { mergeOnce } from './log/merge-segments.ts'
import { readLogHead } from './log/segment-rows.ts'
import { conditionsOfAll, filterValues } from './query/filters.ts'
import { readEventPage } from './query/query.ts'
import { eventRoutes } from './routes.ts'
import {
  emptyTestDatabases,
  openTestDatabases,
  testOwner as owner,
  type TestDatabases,
  testEvent,
  testEventDependencies,
} from './testing/ledger.ts'

const start = Date.parse('2026-01-01T00:00:00Z')
let now = start
const clock: Clock = { now: () => now, monotonic: () => now }
let databases: TestDatabases
let principal: Principal
let server: ReturnType<typeof testApplication>

beforeAll(async () => {
  databases = await openTestDatabases()
  server = testApplication({
    features: [eventRoutes(testEventDependencies(databases, clock))],
    authenticate: async () => principal,
    answers: createAnswerStore({ ledger: databases.ledger, clock, key: new Uint8Array(32) }),
    clock,
  })
})
afterAll(() => databases.remove())
beforeEach(async () => {
  now = start
  principal = owner
  await emptyTestDatabases(databases)
})

const get = (path: string): Promise<Response> => server.handle(new Request(`http://localhost${path}`))
const record = (events: readonly Event[]) =>
  createRecorder({ ...databases, announce: () => undefined, clock, log: silentLog }).append(events)

async function recorded(events: readonly Event[]): Promise<readonly Event[]> {
  await record(events)
  return events
}

/** An event `minutes` before the present. */
const event = (minutes: number, change: Partial<Event> = {}): Event =>
  testEvent({
    timestamp: new Date(now - minutes * 60_000).toISOString(),
    event_attribution: { ...noAttribution, team_id: 'team-a' },
    ...change,
  })

interface Page {
  events: Event[]
  next_cursor: string | null
  follow: string
}
const page = async (query: string): Promise<Page> => JSON.parse(await (await get(`/v1/events?${query}`)).text())

/** What arrived since a cursor was given. */
const arrivals = (query: string, cursor: string): Promise<Event[]> => pages(query, undefined, cursor)

const errorOf = async (response: Response): Promise<unknown> => JSON.parse(await response.text()).error

async function pages(
  query: string,
  between: () => Promise<void> = async () => undefined,
  begun = '',
): Promise<Event[]> {
  const all: Event[] = []
  let cursor: string | null = begun
  while (cursor !== null) {
    const { events, next_cursor }: Page = await page(cursor === '' ? query : `${query}&cursor=${cursor}`)
    all.push(...events)
    cursor = next_cursor
    await between()
  }
  return all
}

describe('GET /v1/events', () => {
  test('gives the events as they were written, newest first', async () => {
    const events = [event(3, { details: { z: 1, a: { deep: [1.5, null] } } }), event(2), event(1)]
    await record(events)
    const follow = expect.any(String)
    expect(await page('since=5m')).toEqual({ events: events.toReversed(), next_cursor: null, follow })
    expect(await page('since=5m&order=oldest')).toEqual({ events, next_cursor: null, follow })
  })

  test('answers an empty page without events', async () => {
    expect(await page('since=5m')).toEqual({ events: [], next_cursor: null, follow: expect.any(String) })
  })

  test('includes the instant of since and nothing before it', async () => {
    await record([event(6), event(5), event(4)])
    expect((await page('since=5m')).events).toHaveLength(2)
    expect((await page(`since=${new Date(now - 4 * 60_000).toISOString()}`)).events).toHaveLength(1)
  })

  test('finds an event that arrived long after it happened', async () => {
    await record([event(100), event(1)])
    now += 3_600_000
    await record([event(61), event(200)])
    expect((await page('since=65m')).events).toHaveLength(2)
    expect((await page('since=1000m')).events).toHaveLength(4)
  })

  test('puts an event that arrived late where its timestamp belongs', async () => {
    const [one, two, three, late] = [event(9), event(5), event(1), event(7)]
    await record([one, two, three])
    await record([late])
    expect(await pages('since=1h&limit=2')).toEqual([three, two, late, one])
    expect(await pages('since=1h&limit=3&order=oldest')).toEqual([one, late, two, three])
  })

  test('filters by type, gateway and verdict', async () => {
    const gateway_id = '01900000-0000-7000-8000-000000000001'
    await record([
      event(3, { verdict: 'deny' }),
      event(2, { event_type: 'decision' }),
      event(1, { event_attribution: { ...noAttribution, team_id: 'team-a', gateway_id } }),
    ])
    expect((await page('since=1h&verdict=deny')).events).toMatchObject([{ verdict: 'deny' }])
    await record([event(0, { verdict: 'block', details: { limit: { id: 'a-budget', kind: 'budget' } } })])
    expect((await page('since=1h&verdict=deny,block')).events).toMatchObject([
      { verdict: 'block' },
      { verdict: 'deny' },
    ])
    expect((await page('since=1h&limit_id=a-budget')).events).toMatchObject([{ verdict: 'block' }])
    expect((await page('since=1h&event_type=decision')).events).toMatchObject([{ event_type: 'decision' }])
    expect((await page(`since=1h&gateway_id=${gateway_id}`)).events).toMatchObject([
      { event_attribution: { gateway_id } },
    ])
    expect((await page('since=1h&verdict=deny&event_type=decision')).events).toEqual([])
  })

  test.each([
    ['', 'since'],
    ['since=yesterday', 'since'],
    ['since=5m&limit=0', 'limit'],
    ['since=5m&limit=101', 'limit'],
    ['since=5m&limit=ten', 'limit'],
    ['since=5m&limit=1e1', 'limit'],
    ['since=5m&verdict=blocked', 'verdict'],
    ['since=5m&event_type=nothing.known', 'event_type'],
    ['since=5m&gateway_id=one', 'gateway_id'],
    ['since=5m&page=2', 'page'],
    ['since=5m&since=6m', 'since'],
    ['since=5m&cursor=nonsense', 'cursor'],
    ['since=5m&order=backwards', 'order'],
    ['since=5m&token=', 'token'],
    ['since=5m&token=nobody', 'token'],
    ['since=5m&token_id=nobody', 'token_id'],
    ['since=5m&user=nobody@example.com', 'user'],
    ['since=5m&user_id=nobody', 'user_id'],
    ['since=5m&team=nobody', 'team'],
    ['since=5m&policy=nothing', 'policy'],
    ['since=5m&provider=', 'provider'],
    ['since=5m&session_id=', 'session_id'],
    ['since=5m&status=200', 'status'],
    ['since=5m&status=6xx', 'status'],
    ['since=5m&min_cost=-1', 'min_cost'],
    ['since=5m&min_cost=1e3', 'min_cost'],
    ['since=5m&min_cost=$1', 'min_cost'],
    ['since=5m&min_latency_ms=1.5', 'min_latency_ms'],
    ['since=5m&min_latency_ms=slow', 'min_latency_ms'],
    ['since=5m&reason_text=', 'reason_text'],
  ])('refuses ?%s and names %s', async (query, param) => {
    const response = await get(`/v1/events?${query}`)
    expect(response.status).toBe(422)
    expect(response.headers.get('x-should-retry')).toBe('false')
    expect(await errorOf(response)).toMatchObject({ param })
  })

  test('refuses a cursor with other filters or another since', async () => {
    await record([event(2), event(1)])
    const { next_cursor } = await page('since=5m&limit=1')
    const others = ['since=6m', 'since=5m&verdict=allow', 'since=5m&event_type=decision', 'since=5m&min_cost=1']
    for (const query of [...others, 'since=5m&order=oldest']) {
      const response = await get(`/v1/events?${query}&cursor=${next_cursor}`)
      expect(response.status).toBe(422)
      expect(await errorOf(response)).toMatchObject({ code: 'invalid_cursor' })
    }
    expect((await page(`since=5m&limit=50&cursor=${next_cursor}`)).events).toHaveLength(1)
  })

  test.each([
    { ceiling: 0 },
    { ceiling: Number.MAX_SAFE_INTEGER + 1 },
    { position: -1 },
    { position: 1.5 },
    { index: -1 },
    { at: 9e15 },
    { at: '1' },
    { since: 9e15 },
    { since: '1' },
    { order: 'arrival' },
    { more: 1 },
  ])('refuses a cursor with %p in it', async (change) => {
    await record([event(2), event(1)])
    const { next_cursor } = await page('since=5m&limit=1')
    const { query: _, ...position } = JSON.parse(Buffer.from(next_cursor ?? '', 'base64url').toString())
    // With the digest that a cursor of this query would have: it is no secret.
    const forged = sealCursor({ ...position, ...change }, ['5m', ...filterValues({})])
    expect(sealCursor(position, ['5m', ...filterValues({})])).toBe(next_cursor ?? '')
    const response = await get(`/v1/events?since=5m&cursor=${forged}`)
    expect(response.status).toBe(422)
    expect(await errorOf(response)).toMatchObject({ code: 'invalid_cursor' })
  })

  test('fixes the instant of a relative since in the cursor', async () => {
    await record([event(5), event(4), event(3)])
    const first = await page('since=5m&limit=2')
    now += 600_000
    expect((await page(`since=5m&limit=2&cursor=${first.next_cursor}`)).events).toHaveLength(1)
  })

  test('needs the permission events:read, and names it', async () => {
    principal = { ...owner, permissions: new Set() }
    const response = await get('/v1/events?since=5m')
    expect(response.status).toBe(403)
    const error = await errorOf(response)
    expect(error).toMatchObject({ code: 'permission_denied', type: 'access_denied' })
    expect(error).toMatchObject({ message: expect.stringContaining('events:read') })
  })

  test('shows a team token its team, a token without team and role its own events, and an unbound owner all', async () => {
    const of = (team_id: string | null) =>
      event(1, { event_attribution: { ...noAttribution, team_id, token_id: `of-${team_id}` } })
    await record([of('team-a'), of('team-b'), of(null)])
    const teams = async () => (await pages('since=5m')).map(({ event_attribution }) => event_attribution.team_id)
    expect(await teams()).toEqual([null, 'team-b', 'team-a'])
    principal = { ...owner, teamId: 'team-a' }
    expect(await teams()).toEqual(['team-a'])
    for (const team of ['team-b', null]) {
      principal = { ...owner, roles: ['member'], tokenId: `of-${team}` }
      expect(await teams()).toEqual([team])
    }
    principal = { ...owner, kind: 'session' }
    expect(await teams()).toEqual([null, 'team-b', 'team-a'])
  })

  test('pages through every event once, with any page size and while events arrive', async () => {
    const minutes = fc.integer({ min: 0, max: 20 })
    await fc.assert(
      fc.asyncProperty(
        fc.array(minutes, { maxLength: 30 }),
        fc.integer({ min: 1, max: 7 }),
        fc.constantFrom('', '&verdict=deny'),
        async (times, limit, filter) => {
          await emptyTestDatabases(databases)
          const events = times.map((time) => event(time, { verdict: time % 2 === 0 ? 'deny' : 'allow' }))
          await record(events)
          const wanted = events
            .filter(
              (one) => Date.parse(one.timestamp) >= now - 10 * 60_000 && (filter === '' || one.verdict === 'deny'),
            )
            .toSorted((one, other) => Date.parse(one.timestamp) - Date.parse(other.timestamp))
          const seen = await pages(`since=10m&limit=${limit}${filter}`, () => record([event(0)]))
          expect(seen).toEqual(wanted.toReversed())
        },
      ),
      { numRuns: Number(process.env.LOG_RUNS ?? 25) },
    )
  })
})

describe('follow', () => {
  test('gives what arrived since the first page, in the order of arrival, and late events too', async () => {
    await record([event(5), event(4), event(3)])
    const first = await page('since=1h&limit=2')
    const second = await page(`since=1h&limit=2&cursor=${first.next_cursor}`)
    expect(second.follow).toBe(first.follow)
    const arrived = [event(1), event(50), event(2), event(4)]
    await record(arrived)
    await record([event(70)])
    expect(await arrivals('since=1h&limit=3', first.follow)).toEqual(arrived)
    const { follow } = await page(`since=1h&cursor=${first.follow}`)
    expect(await page(`since=1h&cursor=${follow}`)).toEqual({ events: [], next_cursor: null, follow })
    const [denied] = await recorded([event(1, { verdict: 'deny' }), event(0)])
    expect((await page(`since=1h&cursor=${follow}`)).events).toHaveLength(2)
    const ofDenials = (await page('since=1h&verdict=deny&limit=1')).follow
    await record([event(1), event(1, { verdict: 'deny' })])
    const after = await page(`since=1h&verdict=deny&limit=1&cursor=${ofDenials}`)
    expect(after.events).toMatchObject([{ verdict: 'deny' }])
    expect(after.events[0]?.event_id).not.toBe(denied?.event_id ?? '')
  })

  test('goes on over segments that were merged meanwhile', async () => {
    const { follow } = await page('since=1h')
    const events = Array.from({ length: 20 }, (_, index) => event(20 - index))
    const seen: Event[] = []
    let cursor = follow
    for (const one of events) {
      await record([one])
      await mergeOnce(databases.ledger, { full: 4, fanIn: 2 })
      if (seen.length % 3 === 1) continue
      const next = await page(`since=1h&cursor=${cursor}`)
      seen.push(...next.events)
      cursor = next.follow
    }
    seen.push(...(await page(`since=1h&cursor=${cursor}`)).events)
    expect(seen).toEqual(events)
  })
})

describe('GET /v1/events/export', () => {
  const exported = async (format: string, since = '1d'): Promise<string> =>
    (await get(`/v1/events/export?since=${since}&format=${format}`)).text()

  test('gives every event of the window as JSON, oldest first', async () => {
    const events = Array.from({ length: 1203 }, (_, index) => event(1300 - index))
    await record([event(3000), ...events])
    expect(JSON.parse(await exported('json'))).toEqual({ events })
  })

  test('reads a page only after the client took the one before, and stops when the client leaves', async () => {
    for (let batch = 0; batch < 20; batch += 1) await record(Array.from({ length: 500 }, () => event(20 - batch)))
    let read = 0
    const ledger = {
      ...databases.ledger,
      async read<Row>(sql: string, args: (string | number | null)[] = []) {
        const rows = await databases.ledger.read<Row>(sql, args)
        if (sql.includes('from event_blocks b')) read += rows.length
        return rows
      },
    }
    const conditions = conditionsOfAll({ teams: 'every', ownTokens: [] })
    const { signal } = new AbortController()
    const { next: ceiling } = await readLogHead(ledger)
    const response = await exportAnswer(ledger, { since: 0, until: null, ceiling, conditions, signal }, 'json')
    const reader = response.body?.getReader()
    await reader?.read()
    await Bun.sleep(5)
    expect(read).toBeLessThan(50)
    await reader?.cancel()
    await Bun.sleep(5)
    expect(read).toBeLessThan(50)
  })

  test('gives the documented columns as quoted CSV, with formulas made harmless', async () => {
    await record([event(1, { event_id: '01900000-0000-7000-8000-000000000001', request_id: '=1+1,"x"' })])
    expect(await exported('csv')).toBe(
      'event_id,timestamp,event_type,request_id,verdict,reason_code,config_version\r\n' +
        `01900000-0000-7000-8000-000000000001,2025-12-31T23:59:00.000Z,gateway.request.outcome,"'=1+1,""x""",allow,ok,1\r\n`,
    )
  })

  test('adds the columns that are asked for to CSV, in their order', async () => {
    const attribution = { ...noAttribution, token_id: 'token', team_id: 'team-a', user_id: 'user' }
    await record([
      event(1, {
        ...{ event_id: '01900000-0000-7000-8000-000000000001', event_attribution: attribution },
        details: {
          ...{ model: 'm,1', provider: 'p', latency_ms: 12 },
          policy_results: [{ policy_id: 'x' }, { policy_id: 'y' }],
        },
        event_cost_attribution: {
          ...{ currency: 'USD', cost: 0.25, estimated: false, input_tokens: 1, output_tokens: 2, provider: 'p' },
          ...{ cached_input_tokens: null, reasoning_tokens: null, model: 'm', price_source: null, spend_owner: null },
        },
      }),
      event(0, { event_id: '01900000-0000-7000-8000-000000000002' }),
    ])
    const every = 'cost,model,token,team,user,provider,tokens,latency,policy'
    const [header, ...rows] = (await exported('csv', `1d&columns=${every}`)).split('\r\n')
    expect(header).toBe(
      'event_id,timestamp,event_type,request_id,verdict,reason_code,config_version,' +
        'cost,model,token_id,team_id,user_id,provider,input_tokens,output_tokens,latency_ms,policy_ids',
    )
    expect(rows[0]).toEndWith(',allow,ok,1,0.25,"m,1",token,team-a,user,p,1,2,12,x y')
    expect(rows[1]).toEndWith(',allow,ok,1,,,,team-a,,,,,,')
  })

  test('gives only the columns that are asked for to CSV, in their order', async () => {
    await record([event(1, { details: { model: 'm' } })])
    expect(await exported('csv', '1d&columns=verdict,model,time&only_columns=true')).toBe(
      'verdict,model,timestamp\r\nallow,m,2025-12-31T23:59:00.000Z\r\n',
    )
  })

  test('gives a usual column that is asked for once, where it was asked for', async () => {
    const [header] = (await exported('csv', '1d&columns=model,verdict')).split('\r\n')
    expect(header).toBe('event_id,timestamp,event_type,request_id,reason_code,config_version,model,verdict')
  })

  test('gives the events that its filters match, until the end of its window', async () => {
    await record([
      event(5, { verdict: 'deny' }),
      event(4),
      event(3, { verdict: 'deny' }),
      event(1, { verdict: 'deny' }),
    ])
    const until = new Date(now - 2 * 60_000).toISOString()
    const { events }: Page = JSON.parse(await exported('json', `1d&verdict=deny&until=${until}`))
    expect(events.map(({ verdict, timestamp }) => [verdict, (now - Date.parse(timestamp)) / 60_000])).toEqual([
      ['deny', 5],
      ['deny', 3],
    ])
  })

  test('breaks off where retention may have removed events that were not read, and only there', async () => {
    for (let batch = 0; batch < 12; batch += 1) await record(Array.from({ length: 400 }, () => event(20 - batch)))
    const removeUntil = (at: number) =>
      databases.ledger.write([{ sql: 'update event_log set removed_until = ?', args: [at] }])
    const conditions = conditionsOfAll({ teams: 'every', ownTokens: [] })
    const { signal } = new AbortController()
    const { next: ceiling } = await readLogHead(databases.ledger)
    const window = { since: 0, until: null, ceiling, conditions, signal }
    const read = async (removed: number) => {
      await removeUntil(0)
      const response = await exportAnswer(databases.ledger, window, 'csv')
      const reader = response.body?.getReader()
      await reader?.read()
      await reader?.read()
      await removeUntil(removed)
      for (;;) if ((await reader?.read())?.done !== false) return 'whole'
    }
    expect(await read(now - 60 * 60_000)).toBe('whole')
    expect(await read(now - 19.5 * 60_000)).toBe('whole')
    expect(read(now - 10 * 60_000)).rejects.toMatchObject({ code: 'export_overtaken' })
    await removeUntil(0)
  })

  test('gives the time of its first event in a header', async () => {
    await record([event(3), event(2)])
    for (const format of ['json', 'csv']) {
      const { headers } = await get(`/v1/events/export?since=1d&format=${format}`)
      expect(headers.get('x-service-first-event-at')).toBe(event(3).timestamp)
    }
  })

  test('is well formed without events', async () => {
    expect(JSON.parse(await exported('json'))).toEqual({ events: [] })
    expect(await exported('csv')).toBe(
      'event_id,timestamp,event_type,request_id,verdict,reason_code,config_version\r\n',
    )
  })

  test('shows the same teams as the query', async () => {
    await record([event(1), event(1, { event_attribution: noAttribution })])
    principal = { ...owner, teamId: 'team-b' }
    expect(JSON.parse(await exported('json'))).toEqual({ events: [] })
  })

  test.each([
    ['since=1d', 'format'],
    ['since=1d&format=xml', 'format'],
    ['format=csv', 'since'],
    ['since=1d&format=csv&columns=', 'columns'],
    ['since=1d&format=csv&columns=model,color', 'columns'],
    ['since=1d&format=csv&columns=model,model', 'columns'],
    ['since=1d&format=json&columns=model', 'columns'],
    ['since=1d&format=csv&only_columns=true', 'only_columns'],
    ['since=1d&format=csv&columns=model&only_columns=yes', 'only_columns'],
    ['since=1d&format=csv&team=nobody', 'team'],
    ['since=1d&format=csv&until=2020-01-01T00:00:00Z', 'until'],
    ['since=1d&format=csv&order=newest', 'order'],
  ])('refuses ?%s and names %s', async (query, param) => {
    const response = await get(`/v1/events/export?${query}`)
    expect(response.status).toBe(422)
    expect(await errorOf(response)).toMatchObject({ param })
  })
})

test('shows one event in place of a block that cannot be read, and pages, exports and follow go on', async () => {
  const { follow } = await page('since=1d')
  const events = Array.from({ length: 6 }, (_, index) => event(6 - index))
  for (const pair of [0, 2, 4]) await record(events.slice(pair, pair + 2))
  const [block] = await databases.ledger.read<{ first_position: number; body: ArrayBuffer }>(
    'select first_position, body from event_blocks order by first_position limit 1 offset 1',
  )
  const bytes = new Uint8Array(block?.body ?? new ArrayBuffer(0))
  bytes[bytes.length - 6] = (bytes[bytes.length - 6] ?? 0) ^ 1
  await databases.ledger.write([
    { sql: 'update event_blocks set body = ? where first_position = ?', args: [bytes, block?.first_position ?? 0] },
  ])
  const damaged: unknown = expect.objectContaining({
    ...{ event_type: 'fleet.event_quarantined', verdict: 'error', reason_code: 'event.damaged' },
    details: { first_position: block?.first_position, records: 2 },
  })
  const [one, two, , , five, six] = events
  const paged: unknown[] = await pages('since=1d&limit=2')
  expect(paged).toEqual([six, five, damaged, two, one])
  const json: { events: unknown[] } = JSON.parse(await (await get('/v1/events/export?since=1d&format=json')).text())
  expect(json.events).toEqual([one, two, damaged, five, six])
  const csv = await (await get('/v1/events/export?since=1d&format=csv')).text()
  expect(csv.split('\r\n')).toHaveLength(7)
  const arrived: unknown[] = await arrivals('since=1d&limit=2', follow)
  expect(arrived).toEqual([one, two, damaged, five, six])
})

test('resolves a name only for a caller that sees its record', async () => {
  await databases.ledger.write([
    { sql: "insert into teams (id, name, created_at) values ('red', 'Red', 1), ('blue', 'Blue', 1)", args: [] },
    {
      sql: `insert into users (id, email, name, role, status, created_at)
        values ('ann', 'ann@example.com', 'Ann', 'member', 'active', 1), ('bob', 'bob@example.com', 'Bob', 'member', 'active', 1)`,
      args: [],
    },
    { sql: "insert into memberships (team_id, user_id, created_at) values ('red', 'ann', 1)", args: [] },
    {
      sql: "insert into policies (id, name, created_at, created_by, version) values ('pii', 'No PII', 1, 'x', 1)",
      args: [],
    },
    ...[
      ['of-red', 'Build', 'red', 'ann'],
      ['of-blue', 'Deploy', 'blue', null],
    ].map((values) => ({
      sql: `insert into tokens (id, name, team_id, user_id, token_prefix, purpose, principal_type, key_class, roles, policy_ids,
          access_policy_ids, metadata_trust, metadata, owner_kind, owner_id, created_at, version)
        values (?, ?, ?, ?, '', '', '', '', '[]', '[]', '[]', '', '{}', '', '', 1, 1)`,
      args: values,
    })),
  ])
  const policy_results = [{ policy_id: 'pii' }]
  await record([
    event(2, { event_attribution: { ...noAttribution, team_id: 'red', token_id: 'of-red', user_id: 'ann' } }),
    event(1, {
      event_attribution: { ...noAttribution, team_id: 'blue', token_id: 'of-blue' },
      details: { policy_results },
    }),
  ])
  const found = async (query: string) => {
    const response = await get(`/v1/events?since=1h&${query}`)
    if (response.status === 422) return JSON.parse(await response.text()).error.param
    return JSON.parse(await response.text()).events.map((each: Event) => each.event_attribution.token_id)
  }
  const asked = [
    'team=Red',
    'team=Blue',
    'token=Build',
    'token=Deploy',
    'user=ann@example.com',
    'user=bob@example.com',
    'policy=No PII',
  ]
  const all = async () => await Promise.all(asked.map(found))
  expect(await all()).toEqual([['of-red'], ['of-blue'], ['of-red'], ['of-blue'], ['of-red'], [], ['of-blue']])
  principal = { ...owner, roles: ['auditor'], permissions: permissionsOf(['auditor']) }
  expect(await all()).toEqual([['of-red'], ['of-blue'], ['of-red'], ['of-blue'], ['of-red'], [], ['of-blue']])
  principal = { ...owner, teamId: 'red' }
  expect(await all()).toEqual([['of-red'], 'team', ['of-red'], 'token', ['of-red'], 'user', []])
  const member = { ...owner, roles: ['member'] as const, permissions: permissionsOf(['member']) }
  principal = { ...member, kind: 'session', tokenId: null, userId: 'ann' }
  expect(await all()).toEqual([['of-red'], 'team', ['of-red'], 'token', ['of-red'], 'user', 'policy'])
  principal = { ...member, tokenId: 'of-blue' }
  expect(await all()).toEqual(['team', 'team', 'token', ['of-blue'], 'user', 'user', 'policy'])
  await databases.ledger.write(
    ['memberships', 'teams', 'users', 'policies', 'tokens'].map((table) => ({ sql: `delete from ${table}`, args: [] })),
  )
})

test('finds the blocks of pages and exports by the index of their times', async () => {
  const asked: { sql: string; args: (string | number | null)[] }[] = []
  const ledger = {
    ...databases.ledger,
    read: <Row>(sql: string, args: (string | number | null)[] = []) => {
      asked.push({ sql, args })
      return databases.ledger.read<Row>(sql, args)
    },
  }
  await record([event(1)])
  const conditions = conditionsOfAll({ teams: 'every', ownTokens: [] })
  for (const order of ['newest', 'oldest'] as const) {
    const options = { filters: { since: '' }, since: 0, order, limit: 2, cursor: undefined, conditions, clock }
    await readEventPage(ledger, options)
  }
  const { signal } = new AbortController()
  const { next: ceiling } = await readLogHead(ledger)
  await (await exportAnswer(ledger, { since: 0, until: null, ceiling, conditions, signal }, 'csv')).text()
  const plans = await Promise.all(
    asked.map(({ sql, args }) => databases.ledger.read(`explain query plan ${sql}`, args)),
  )
  const steps = JSON.stringify(plans)
  for (const index of ['event_blocks_end', 'event_blocks_start'])
    expect(steps.includes(`USING INDEX ${index}`)).toBe(true)
  expect(/SCAN (b|c|event_blocks|event_segments|segment_facets)\b/.test(steps)).toBe(false)
})
