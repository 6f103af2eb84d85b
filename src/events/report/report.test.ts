import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import fc from 'fast-check'
import { createAnswerStore } from '../../api/answer-store.ts'
import { testApplication } from '../../api/testing/application.ts'
import type { Principal } from '../../identity/principal.ts'
import type { Clock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log/log.ts'
import { createRecorder } from '../change.ts'
import { type Event, noAttribution } from '../event.ts'
import { eventRoutes } from '../routes.ts'
import {
  declareDimensions,
  emptyTestDatabases,
  openTestDatabases,
  type TestDatabases,
  testEvent,
  testEventDependencies,
  testOwner,
} from '../testing/ledger.ts'

const now = Date.parse('2026-12-05T00:00:00Z')
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
  principal = testOwner
  await emptyTestDatabases(databases)
  await declareDimensions(databases.state, 'customer')
})

interface Used {
  at?: string
  team?: string | null
  token?: string
  user?: string | null
  model?: string
  tags?: Record<string, string>
  nano?: number | null
  type?: Event['event_type']
}

const used = ({ at = '2026-11-10T10:00:00.000Z', nano = 1, model = 'm', ...told }: Used): Event =>
  testEvent({
    event_type: told.type ?? 'gateway.request.outcome',
    timestamp: at,
    details: { model, provider: 'p' },
    event_attribution: {
      ...noAttribution,
      ...{ team_id: told.team ?? null, token_id: told.token ?? 'token-1', user_id: told.user ?? null },
    },
    ...(told.tags === undefined ? {} : { metadata: told.tags }),
    event_cost_attribution: {
      ...{ currency: 'USD', cost: nano === null ? null : nano / 1e9, estimated: false, input_tokens: 10 },
      ...{ output_tokens: 2, cached_input_tokens: 1, reasoning_tokens: null, provider: 'p', model },
      ...{ price_source: null, spend_owner: null },
    },
  })

const record = (events: readonly Event[]) =>
  createRecorder({ ...databases, announce: () => undefined, clock, log: silentLog }).append(events)

const november = 'since=2026-11-01T00:00:00Z&until=2026-12-01T00:00:00Z'

async function report(query: string) {
  const answer = await server.handle(new Request(`http://localhost/v1/usage/report?${query}`))
  return { status: answer.status, body: JSON.parse(await answer.text()) }
}

test('adds up what requests used by several dimensions together, the dearest first', async () => {
  await record([
    used({ team: 'red', model: 'a', nano: 100 }),
    used({ team: 'red', model: 'a', nano: 200 }),
    used({ team: 'red', model: 'b', nano: 1000 }),
    used({ team: 'blue', model: 'a', nano: null }),
  ])
  const { body } = await report(`${november}&by=team,model`)
  expect(body.rows.map(({ group, cost, requests, unpriced }: Row) => [group, cost, requests, unpriced])).toEqual([
    [{ team: 'red', model: 'b' }, 1e-6, 1, 0],
    [{ team: 'red', model: 'a' }, 3e-7, 2, 0],
    [{ team: 'blue', model: 'a' }, 0, 1, 1],
  ])
  expect(body.totals).toEqual({
    ...{ requests: 4, refused: 0, errors: 0, latency_ms: 0 },
    ...{ input_tokens: 40, output_tokens: 8, cached_input_tokens: 4, cost: 1.3e-6, unpriced: 1 },
  })
})
interface Row {
  group: Record<string, string | null>
  names: Record<string, string | null>
  cost: number
  requests: number
  unpriced: number
}

test('counts the month that is asked for and nothing around it', async () => {
  await record([
    used({ at: '2026-10-31T23:59:59.999Z', nano: 1 }),
    used({ at: '2026-11-01T00:00:00.000Z', nano: 10 }),
    used({ at: '2026-11-30T23:59:59.999Z', nano: 100 }),
    used({ at: '2026-12-01T00:00:00.000Z', nano: 1000 }),
  ])
  const { body } = await report(`${november}&by=day`)
  expect(body.totals.cost).toBe(1.1e-7)
  expect(body.rows.map(({ group }: Row) => group.day)).toEqual(['2026-11-30', '2026-11-01'])
})

test('groups by all tags of a request together, or by one of them', async () => {
  await record([
    used({ tags: { project: 'x', stage: 'test' } }),
    used({ tags: { stage: 'test', project: 'x' } }),
    used({ tags: { project: 'y' } }),
    used({}),
  ])
  const groups = async (by: string) =>
    (await report(`${november}&by=${by}`)).body.rows.map(({ group, requests }: Row) => [group[by], requests])
  expect(await groups('tag')).toEqual([
    ['project=x,stage=test', 2],
    ['project=y', 1],
    [null, 1],
  ])
  expect(await groups('tag:project')).toEqual([
    ['x', 2],
    ['y', 1],
    [null, 1],
  ])
})

test('groups by the values of a dimension of attribution', async () => {
  const ofCustomer = (customer: string): Event => {
    const event = used({})
    return { ...event, event_attribution: { ...event.event_attribution, dimensions: { customer } } }
  }
  await record([ofCustomer('acme'), ofCustomer('acme'), ofCustomer('globex'), used({})])
  const groups = async (by: string) =>
    (await report(`${november}&by=${by}`)).body.rows.map(({ group, requests }: Row) => [group[by], requests])
  expect(await groups('dimension:customer')).toEqual([
    ['acme', 2],
    ['globex', 1],
    [null, 1],
  ])
  const unknown = await report(`${november}&by=team,dimension:constructor`)
  expect([unknown.status, unknown.body.error.param]).toEqual([422, 'by'])
  expect(unknown.body.error.message).toContain('declared are dimension:customer')
  expect((await report(`${november}&by=day&dimension=customer%3Dacme`)).body.totals.requests).toBe(2)
  expect((await report(`${november}&by=day&dimension=customer`)).status).toBe(422)
  await databases.state.write([{ sql: 'update attribution_dimensions set deleted = 1', args: [] }])
  expect(await groups('dimension:customer')).toHaveLength(3)
  const series = new Request('http://gatehouse.test/v1/events/series?since=1h&by=dimension:customer')
  expect((await server.handle(series)).status).toBe(422)
})

test('names an MCP server and the tool whose call cost something', async () => {
  const call = used({ nano: 5 })
  const cost = call.event_cost_attribution
  if (cost === undefined) throw new Error('A call has a cost')
  const details = { model: 'shop__buy', tool: 'shop__buy', server: 'shop', provider: null }
  await record([{ ...call, details, event_cost_attribution: { ...cost, provider: 'shop', model: '' } }])
  const [row] = (await report(`${november}&by=provider,model`)).body.rows
  expect(row.group).toEqual({ provider: 'mcp:shop', model: 'shop__buy' })
})

test('adds what a batch used and does not count it as a request', async () => {
  await record([used({ nano: 5 }), used({ nano: 7, type: 'usage.batch_settled' })])
  expect((await report(`${november}&by=model`)).body.totals).toMatchObject({ requests: 1, cost: 1.2e-8 })
})

test('sums are exact to the nano-dollar', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 0, max: 5_000_000_000 }), { minLength: 1, maxLength: 30 }),
      async (nanos) => {
        await emptyTestDatabases(databases)
        await record(nanos.map((nano, index) => used({ nano, team: index % 2 === 0 ? 'red' : 'blue' })))
        const { body } = await report(`${november}&by=team`)
        const sum = nanos.reduce((total, nano) => total + nano, 0)
        expect(body.totals.cost).toBe(sum / 1e9)
        expect(body.rows.reduce((total: number, { cost }: Row) => total + Math.round(cost * 1e9), 0)).toBe(sum)
      },
    ),
    { numRuns: Number(process.env.LOG_RUNS ?? 25) },
  )
})

test('says what ids are called, and of people only to those who may read them', async () => {
  const userId = '01900000-0000-7000-8000-000000000002'
  await databases.ledger.write([
    { sql: 'insert or replace into gateway_names (id, name) values (?, ?)', args: ['gateway-1', 'edge'] },
    {
      sql: 'insert or replace into users (id, email, name, role, status, created_at, version) values (?, ?, ?, ?, ?, ?, 1)',
      args: [userId, 'ada@example.com', 'Ada', 'member', 'active', now],
    },
  ])
  await record([{ ...used({}), event_attribution: { ...noAttribution, user_id: userId, gateway_id: 'gateway-1' } }])
  const names = async () => (await report(`${november}&by=gateway,user`)).body.rows[0].names
  expect(await names()).toEqual({ gateway: 'edge', user: 'ada@example.com' })
  principal = { ...testOwner, permissions: new Set(['events:read']) }
  expect(await names()).toEqual({ gateway: 'edge' })
})

test('counts only the events that the caller sees, and those that a filter chooses', async () => {
  await record([used({ team: 'red', nano: 1 }), used({ team: 'blue', nano: 10 }), used({ model: 'b', nano: 100 })])
  expect((await report(`${november}&by=team&model=b`)).body.totals.cost).toBe(1e-7)
  principal = { ...testOwner, roles: ['member'], teamId: 'red' }
  expect((await report(`${november}&by=team`)).body.totals.cost).toBe(1e-9)
})

test('refuses a model, a provider, a reason or a dimension that nothing is called, with the nearest name', async () => {
  await record([used({ model: 'retired' })])
  await databases.state.write([
    {
      sql: "insert into providers (id, name, kind, position, version, deleted) values ('1', 'acme', 'openai', 1, 1, 1)",
      args: [],
    },
  ])
  const refused = async (filter: string) => {
    const { status, body } = await report(`since=1h&by=team&${filter}`)
    return status === 200 ? null : [status, body.error.param, body.error.message]
  }
  expect(await refused('provider=acmee')).toEqual([
    422,
    'provider',
    'There is no provider "acmee", and no event names one: did you mean acme?',
  ])
  expect((await refused('model=nosuch'))?.[1]).toBe('model')
  expect((await refused('reason_code=tokens.expird'))?.[2]).toEndWith('did you mean tokens.expired?')
  expect((await refused('dimension=custmer%3Dacme'))?.slice(1)).toEqual([
    'dimension',
    'There is no dimension of attribution "custmer": declared are dimension:customer. Did you mean customer?',
  ])
  // What was deleted can be reported: by its record, or by the events that name it.
  for (const known of ['provider=acme', 'model=retired', 'provider=p', 'reason_code=tokens.expired']) {
    expect(await refused(known)).toBeNull()
  }
  principal = { ...testOwner, roles: ['member'], teamId: 'red' }
  expect(await refused('model=nosuch')).toBeNull()
})

test.each([['by=colour'], ['by=team,team'], ['by='], ['by=tag:'], ['']])('refuses %p', async (query) => {
  const { status, body } = await report(`${november}&${query}`)
  expect([status, body.error.param]).toEqual([422, 'by'])
})

test('counts refusals and errors, and adds up what requests took', async () => {
  const told = (verdict: Event['verdict'], latency_ms: number): Event => ({
    ...used({}),
    verdict,
    details: { model: 'm', provider: 'p', latency_ms },
  })
  await record([told('allow', 5), told('redact', 10), told('block', 20), told('rate_limit', 40), told('error', 80)])
  const { totals } = (await report(`${november}&by=model`)).body
  expect(totals).toMatchObject({ requests: 5, refused: 2, errors: 1, latency_ms: 155 })
})

test('an empty window has no rows', async () => {
  const { body } = await report('since=1h&by=team')
  expect(body.rows).toEqual([])
  expect(body.totals.requests).toBe(0)
})
