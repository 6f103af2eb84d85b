/** Events over HTTP, as they were written and damaged; long because of every filter, cursor and form. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { createAnswerStore } from '../api/answer-store.ts'
import { sealCursor } from '../api/cursor.ts'
import { testApplication } from '../api/testing/application.ts'
import { permissionsOf } from '../identity/permissions.ts'
import { anonymous, type Principal } from '../identity/principal.ts'
import type { Clock } from '../lib/clock.ts'
import { silentLog } from '../lib/log/log.ts'
import { createRecorder } from './change.ts'
import { type Event, noAttribution } from './event.ts'
import { exportAnswer, lastPosition } from './export/export.ts'
import { filterValues } from './query/filters.ts'
import { readEventPage } from './query/query.ts'
import { eventRoutes } from './routes.ts'
import {
  emptyTestDatabases,
  openTestDatabases,
  type TestDatabases,
  testEvent,
  testEventDependencies,
} from './testing/ledger.ts'
import type { Visibility } from './visibility.ts'

const start = Date.parse('2026-01-01T00:00:00Z')
let now = start
const clock: Clock = { now: () => now, monotonic: () => now }
let databases: TestDatabases
let principal: Principal
let server: ReturnType<typeof testApplication>

const owner: Principal = {
  ...anonymous,
  kind: 'token',
  name: 'token:owner',
  roles: ['owner'],
  permissions: permissionsOf(['owner']),
}

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
}
const page = async (query: string): Promise<Page> => JSON.parse(await (await get(`/v1/events?${query}`)).text())

const errorOf = async (response: Response): Promise<unknown> => JSON.parse(await response.text()).error

async function pages(query: string, between: () => Promise<void> = async () => undefined): Promise<Event[]> {
  const all: Event[] = []
  let cursor: string | null = ''
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
    expect(await page('since=5m')).toEqual({ events: events.toReversed(), next_cursor: null })
  })

  test('answers an empty page without events', async () => {
    expect(await page('since=5m')).toEqual({ events: [], next_cursor: null })
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

  test('filters by type, gateway and verdict', async () => {
    const gateway_id = '01900000-0000-7000-8000-000000000001'
    await record([
      event(3, { verdict: 'deny' }),
      event(2, { event_type: 'decision' }),
      event(1, { event_attribution: { ...noAttribution, team_id: 'team-a', gateway_id } }),
    ])
    expect((await page('since=1h&verdict=deny')).events).toMatchObject([{ verdict: 'deny' }])
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
  ])('refuses ?%s and names %s', async (query, param) => {
    const response = await get(`/v1/events?${query}`)
    expect(response.status).toBe(422)
    expect(response.headers.get('x-should-retry')).toBe('false')
    expect(await errorOf(response)).toMatchObject({ param })
  })

  test('refuses a cursor with other filters or another since', async () => {
    await record([event(2), event(1)])
    const { next_cursor } = await page('since=5m&limit=1')
    for (const query of ['since=6m', 'since=5m&verdict=allow', 'since=5m&event_type=decision']) {
      const response = await get(`/v1/events?${query}&cursor=${next_cursor}`)
      expect(response.status).toBe(422)
      expect(await errorOf(response)).toMatchObject({ code: 'invalid_cursor' })
    }
    expect((await page(`since=5m&limit=50&cursor=${next_cursor}`)).events).toHaveLength(1)
  })

  test.each([
    { before: 0 },
    { before: -1 },
    { floor: -1 },
    { before: Number.MAX_SAFE_INTEGER + 1 },
    { since: 9e15 },
    { since: '1' },
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
          const wanted = events.filter(
            (one) => Date.parse(one.timestamp) >= now - 10 * 60_000 && (filter === '' || one.verdict === 'deny'),
          )
          const seen = await pages(`since=10m&limit=${limit}${filter}`, () => record([event(0)]))
          expect(seen).toEqual(wanted.toReversed())
        },
      ),
      { numRuns: 25 },
    )
  })
})

test('reads pages and exports from an index in order, without a sort', async () => {
  const asked: { sql: string; args: (string | number | null)[] }[] = []
  const ledger = {
    ...databases.ledger,
    read: <Row>(sql: string, args: (string | number | null)[] = []) => {
      asked.push({ sql, args })
      return databases.ledger.read<Row>(sql, args)
    },
  }
  await record([event(1)])
  const sights: Visibility[] = [
    { teams: 'every', ownTokens: [] },
    { teams: [], ownTokens: ['token'] },
    { teams: [], ownTokens: ['token', 'other'] },
    { teams: ['team-a'], ownTokens: [] },
    { teams: ['team-a', 'team-b'], ownTokens: [] },
  ]
  for (const visibility of sights) {
    for (const filter of [{}, { verdict: 'deny' }, { event_type: 'decision' }, { gateway_id: 'g' }]) {
      await readEventPage(ledger, {
        filters: { since: '', ...filter },
        since: 0,
        limit: 2,
        cursor: undefined,
        visibility,
      })
    }
    const signal = new AbortController().signal
    const window = { since: 0, until: null, lastPosition: await lastPosition(ledger), visibility, signal }
    await (await exportAnswer(ledger, window, 'csv')).text()
  }
  const plans = await Promise.all(
    asked.map(({ sql, args }) => databases.ledger.read(`explain query plan ${sql}`, args)),
  )
  expect(asked.length).toBeGreaterThan(30)
  expect(JSON.stringify(plans)).not.toContain('TEMP B-TREE')
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
    await record(Array.from({ length: 5000 }, () => event(1)))
    let read = 0
    const ledger = {
      ...databases.ledger,
      async read<Row>(sql: string, args: (string | number | null)[] = []) {
        const rows = await databases.ledger.read<Row>(sql, args)
        if (sql.includes('as by_body from events')) read += rows.length
        return rows
      },
    }
    const visibility: Visibility = { teams: 'every', ownTokens: [] }
    const signal = new AbortController().signal
    const window = { since: 0, until: null, lastPosition: await lastPosition(ledger), visibility, signal }
    const response = await exportAnswer(ledger, window, 'json')
    const reader = response.body?.getReader()
    await reader?.read()
    await Bun.sleep(5)
    expect(read).toBeLessThanOrEqual(1500)
    await reader?.cancel()
    await Bun.sleep(5)
    expect(read).toBeLessThanOrEqual(1500)
  })

  test('gives the documented columns as quoted CSV, with formulas made harmless', async () => {
    await record([event(1, { event_id: '01900000-0000-7000-8000-000000000001', request_id: '=1+1,"x"' })])
    expect(await exported('csv')).toBe(
      'event_id,timestamp,event_type,request_id,verdict,reason_code,config_version\r\n' +
        `01900000-0000-7000-8000-000000000001,2025-12-31T23:59:00.000Z,gateway.request.outcome,"'=1+1,""x""",allow,ok,1\r\n`,
    )
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

  test.each(['since=1d', 'since=1d&format=xml', 'format=csv'])('refuses ?%s', async (query) => {
    expect((await get(`/v1/events/export?${query}`)).status).toBe(422)
  })
})

describe('damaged events', () => {
  const run = (sql: string) => databases.ledger.write([{ sql, args: [] }])
  const everywhere = async () => {
    const paged = await pages('since=1d&limit=2')
    const json: Page = JSON.parse(await (await get('/v1/events/export?since=1d&format=json')).text())
    const csv = await (await get('/v1/events/export?since=1d&format=csv')).text()
    expect(json.events).toEqual(paged.toReversed())
    expect(csv.split('\r\n')).toHaveLength(paged.length + 2)
    return paged
  }

  test.each(["''", "'{}'", "'null'", "x'7b7d'", 'body || char(0)', "body || 'x'", '17', "cast(x'ff' as text)"])(
    'shows a body that is %s by its columns, and pages and exports go on',
    async (body) => {
      const events = [event(4), event(3), event(2, { verdict: 'deny' }), event(1)]
      await record(events)
      await run(`update events set body = ${body} where verdict = 'deny'`)
      const shown = await everywhere()
      expect(shown).toHaveLength(4)
      expect(shown[1]).toMatchObject({
        ...{ event_id: events[2]?.event_id, event_type: 'gateway.request.outcome', verdict: 'deny' },
        ...{ reason_code: 'event.damaged', timestamp: events[2]?.timestamp },
        ...{ event_attribution: { team_id: 'team-a' }, details: { chain: 'control-plane', seq: 3 } },
      })
      expect(shown.filter(({ reason_code }) => reason_code === 'ok')).toHaveLength(3)
    },
  )

  test('shows columns that are no text as absent', async () => {
    await record([event(1)])
    await run(
      "update events set body = '', team_id = x'00', reason_code = cast(x'ff' as text), verdict = 'x' || char(0)",
    )
    expect((await everywhere())[0]).toMatchObject({ verdict: 'error', event_attribution: { team_id: null } })
  })

  test('shows a position that JavaScript cannot hold', async () => {
    await record([event(4), event(3), event(2)])
    await run('update events set position = 9007199254740994 where position = (select min(position) from events)')
    await record([event(1)])
    expect((await everywhere()).map(({ timestamp }) => (now - Date.parse(timestamp)) / 60_000)).toEqual([1, 4, 2, 3])
  })
})
