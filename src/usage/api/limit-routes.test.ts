import { Database as Sqlite } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { recordedEvents } from '../../events/testing/recorded.ts'
import { LimitsView } from '../../fleet/state/limits-view.ts'
import { type TemporaryInstallation, temporaryInstallation } from '../../members/testing/installation.ts'
import { stateMigrations } from '../../store/schema/migrate.ts'
import { temporaryLimitApi } from '../testing/limit-api.ts'
import { bookedBudget } from '../window.ts'

let made: TemporaryInstallation
let call: ReturnType<typeof temporaryLimitApi>
beforeAll(async () => {
  made = await temporaryInstallation()
  call = temporaryLimitApi(made)
})
afterAll(() => made.store.remove())

const budget = (members: object = {}) => ({
  name: `budget ${crypto.randomUUID()}`,
  max_budget: 12.5,
  window: 'month',
  scope: { kind: 'organization' },
  ...members,
})

test('creates, reads, updates and deletes a budget, each change with its event', async () => {
  const created = await call('POST', '/v1/budgets', budget({ name: ' Research ' }))
  expect(created.status).toBe(201)
  expect(created.json).toMatchObject({
    name: 'Research',
    currency: 'USD',
    max_budget: 12.5,
    window: 'month',
    scope: { kind: 'organization', id: null, tool: null },
  })
  const path = `/v1/budgets/${created.json.id}`
  const changed = await call('PATCH', path, { max_budget: 7 }, { 'if-match': created.headers.get('etag') ?? '' })
  expect(changed.json).toMatchObject({ name: 'Research', max_budget: 7 })
  const stale = await call('PATCH', path, { max_budget: 8 }, { 'if-match': created.headers.get('etag') ?? '' })
  expect([stale.status, stale.json.error.code]).toEqual([412, 'version_mismatch'])
  expect(changed.json).toEqual({ ...(await call('GET', path)).json, usage: { used: 0, open: 0 } })
  expect((await call('DELETE', path)).status).toBe(200)
  expect((await call('GET', path)).status).toBe(404)
  const events = (await recordedEvents(made.store.ledger)).filter(({ details }) => details?.id === created.json.id)
  expect(events.map(({ event_type }) => event_type)).toEqual(['catalog.created', 'catalog.updated', 'catalog.deleted'])
})

test('shows the spend and the remaining amount of the current budget window, in a single read and in lists', async () => {
  const { json } = await call('POST', '/v1/budgets', budget({ window: 'day' }))
  expect(json).toMatchObject({ current_spend: 0, remaining: 12.5 })
  const { clock } = made.deps
  const book = (at: number, settled: number) => {
    const { booked } = bookedBudget(json.id, 'day', at)
    const sql = "insert into usage_accounts (account, owner_id, kind, settled) values (?, ?, 'budget', ?)"
    return made.store.ledger.write([{ sql, args: [booked, json.id, settled] }])
  }
  await book(clock.now(), 2_500_000_000)
  await book(clock.now() - 86_400_000, 9_000_000_000)
  const spent = { current_spend: 2.5, remaining: 10 }
  expect((await call('GET', `/v1/budgets/${json.id}`)).json).toMatchObject(spent)
  const { budgets } = (await call('GET', '/v1/budgets')).json
  expect(budgets.find(({ id }: { id: string }) => id === json.id)).toMatchObject(spent)
})

test('lists page through all records', async () => {
  for (let index = 0; index < 3; index++) await call('POST', '/v1/access-policies', { name: `policy ${index}` })
  const first = await call('GET', '/v1/access-policies?limit=2')
  expect(first.json.access_policies).toHaveLength(2)
  const rest = await call('GET', `/v1/access-policies?limit=2&cursor=${first.json.next_cursor}`)
  expect(rest.json.access_policies.map(({ name }: { name: string }) => name)).toEqual(['policy 2'])
  expect(rest.json.next_cursor).toBeNull()
  const other = await call('GET', `/v1/budgets?cursor=${first.json.next_cursor}`)
  expect(other.json.error.code).toBe('invalid_cursor')
})

test('refuses an invalid body and names the field', async () => {
  const param = async (path: string, body: unknown) => {
    const { status, json } = await call('POST', path, body)
    return [status, json.error.param]
  }
  expect(await param('/v1/budgets', budget({ window: 'year' }))).toEqual([422, 'window'])
  expect(await param('/v1/budgets', budget({ scope: { kind: 'team' } }))).toEqual([422, 'scope.id'])
  expect(await param('/v1/budgets', budget({ scope: { kind: 'team', id: crypto.randomUUID() } }))).toEqual([
    422,
    'scope.id',
  ])
  expect(await param('/v1/budgets', budget({ max_budget: 0.1234567891 }))).toEqual([422, 'max_budget'])
  expect(await param('/v1/budgets', budget({ limit: 1 }))).toEqual([422, 'limit'])
  const strangers = { name: 'x', members: { users: [crypto.randomUUID()] } }
  expect(await param('/v1/consumer-groups', strangers)).toEqual([422, 'members.users'])
  expect(await param('/v1/access-policies', { name: 'y', requests_per_minute: 0 })).toEqual([
    422,
    'requests_per_minute',
  ])
})

test("an access policy's rates count for each token, or for all its tokens together with scope shared", async () => {
  const each = await call('POST', '/v1/access-policies', { name: 'each', requests_per_minute: 5 })
  expect(each.json.scope).toBe('token')
  const changed = await call('PATCH', `/v1/access-policies/${each.json.id}`, { scope: 'shared' })
  expect(changed.json).toMatchObject({ scope: 'shared', requests_per_minute: 5 })
  const kept = await call('PATCH', `/v1/access-policies/${each.json.id}`, { requests_per_minute: 6 })
  expect(kept.json.scope).toBe('shared')
  const wrong = await call('POST', '/v1/access-policies', { name: 'wrong', scope: 'team' })
  expect([wrong.status, wrong.json.error.param]).toEqual([422, 'scope'])
})

test('refuses a name that another record of the same kind has', async () => {
  const body = budget({ name: 'Only once' })
  await call('POST', '/v1/budgets', body)
  const again = await call('POST', '/v1/budgets', body)
  expect([again.status, again.json.error.param]).toEqual([409, 'name'])
  const other = budget({ name: 'Once of four' })
  const made = await Promise.all(Array.from({ length: 4 }, () => call('POST', '/v1/budgets', other)))
  expect(made.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409])
  const { id } = (await call('POST', '/v1/budgets', budget({ name: 'Renamed' }))).json
  expect((await call('PATCH', `/v1/budgets/${id}`, { name: 'Renamed', max_budget: 2 })).status).toBe(200)
  const taken = await call('PATCH', `/v1/budgets/${id}`, { name: 'Only once' })
  expect([taken.status, taken.json.error.param]).toEqual([409, 'name'])
  const sent = [1, 2].map((max_budget) => call('PATCH', `/v1/budgets/${id}`, { name: 'Renamed', max_budget }))
  for (const { status, json } of await Promise.all(sent)) {
    if (status !== 200) expect(json.error.param).not.toBe('name')
  }
})

test('a token can only name limits that exist, and a limit that a token names cannot be deleted', async () => {
  const token = (members: object) => call('POST', '/v1/tokens', { name: 't', purpose: 'general', ...members })
  const missing = await token({ bindings: { budget_id: crypto.randomUUID() } })
  expect([missing.status, missing.json.error.param]).toEqual([422, 'bindings.budget_id'])
  const { json: bound } = await call('POST', '/v1/budgets', budget({ scope: { kind: 'token' } }))
  const { json: policy } = await call('POST', '/v1/access-policies', { name: 'slow', requests_per_minute: 5 })
  const holder = await token({ bindings: { budget_id: bound.id }, access_policy_ids: [policy.id] })
  expect(holder.status).toBe(201)
  expect((await call('DELETE', `/v1/budgets/${bound.id}`)).status).toBe(409)
  expect((await call('DELETE', `/v1/access-policies/${policy.id}`)).status).toBe(409)
  await call('DELETE', `/v1/tokens/${holder.json.id}`)
  expect((await call('DELETE', `/v1/budgets/${bound.id}`)).status).toBe(200)
})

test('a token that is limited by an access policy cannot create a token without that policy', async () => {
  const { json: policy } = await call('POST', '/v1/access-policies', { name: 'for its holder', models: ['small*'] })
  const attached = crypto.randomUUID()
  await made.store.state.write([
    {
      sql: `insert into policies (id, kind, stages, config, targets, position, mode, when_broken, enabled, version)
        values (?, 'audit', '["pre_request"]', '{}', '{}', 1, 'enforce', 'deny', 1, 1)`,
      args: [attached],
    },
  ])
  const given = { access_policy_ids: [policy.id], policy_ids: [attached] }
  const body = { name: 't', purpose: 'general' }
  const { json: limited } = await call('POST', '/v1/tokens', { ...body, ...given, roles: ['admin'] })
  const installation = { ...made.installation, adminToken: limited.token_value }
  const asLimited = temporaryLimitApi({ ...made, installation })
  for (const param of ['access_policy_ids', 'policy_ids']) {
    const { status, json } = await asLimited('POST', '/v1/tokens', { ...body, ...given, [param]: [] })
    expect([status, json.error.code, json.error.param]).toEqual([403, 'permission_denied', param])
  }
  expect((await asLimited('POST', '/v1/tokens', { ...body, ...given })).status).toBe(201)
})

test('when a token creation and the deletion of a limit it names run at once, the later one is refused', async () => {
  const body = { name: 't', purpose: 'general' }
  const limits = async () => {
    const { json: bound } = await call('POST', '/v1/budgets', budget({ scope: { kind: 'token' } }))
    const { json: policy } = await call('POST', '/v1/access-policies', { name: crypto.randomUUID() })
    return [
      { path: `/v1/budgets/${bound.id}`, fields: { bindings: { budget_id: bound.id } } },
      { path: `/v1/access-policies/${policy.id}`, fields: { access_policy_ids: [policy.id] } },
    ]
  }
  const { json: source } = await call('POST', '/v1/tokens', body)
  for (const { path, fields } of await limits()) {
    const deletedFirst = interruptedBy(async () => expect((await call('DELETE', path)).status).toBe(200))
    expect((await deletedFirst('POST', '/v1/tokens', { ...body, ...fields })).status).toBe(409)
  }
  for (const { path, fields } of await limits()) {
    const deletedFirst = interruptedBy(async () => expect((await call('DELETE', path)).status).toBe(200))
    expect((await deletedFirst('POST', `/v1/tokens/${source.id}/clone`, fields)).status).toBe(409)
  }
  for (const { path, fields } of await limits()) {
    const deletedFirst = interruptedBy(async () => expect((await call('DELETE', path)).status).toBe(200))
    expect((await deletedFirst('PATCH', `/v1/tokens/${source.id}`, fields)).status).toBe(409)
  }
  for (const { path, fields } of await limits()) {
    const namedFirst = interruptedBy(async () =>
      expect((await call('POST', '/v1/tokens', { ...body, ...fields })).status).toBe(201),
    )
    expect((await namedFirst('DELETE', path)).status).toBe(409)
    expect((await call('GET', path)).status).toBe(200)
  }
})

/** Calls between whose checks and whose change something else happens. */
test('a budget bounds the calls of an MCP server or of one of its tools', async () => {
  const id = crypto.randomUUID()
  const insert = "insert into mcp_servers (id, name, approval, position, version) values (?, 'shop', 'required', 1, 1)"
  await made.store.state.write([{ sql: insert, args: [id] }])
  const whole = await call('POST', '/v1/budgets', budget({ scope: { kind: 'mcp_server', id } }))
  expect(whole.json.scope).toEqual({ kind: 'mcp_server', id, tool: null })
  const one = await call('POST', '/v1/budgets', budget({ scope: { kind: 'mcp_server', id, tool: 'a/b' } }))
  expect((await call('GET', `/v1/budgets/${one.json.id}`)).json.scope).toEqual({ kind: 'mcp_server', id, tool: 'a/b' })
  for (const [scope, param] of [
    [{ kind: 'mcp_server' }, 'scope.id'],
    [{ kind: 'mcp_server', id: crypto.randomUUID() }, 'scope.id'],
    [{ kind: 'organization', tool: 'buy' }, 'scope.tool'],
  ]) {
    const refused = await call('POST', '/v1/budgets', budget({ scope }))
    expect([refused.status, refused.json.error.param]).toEqual([422, param])
  }
})

function interruptedBy(happens: () => Promise<void>) {
  const { recorder } = made.deps
  const change: typeof recorder.change = async (changed) => {
    await happens()
    return await recorder.change(changed)
  }
  return temporaryLimitApi({ ...made, deps: { ...made.deps, recorder: { ...recorder, change } } })
}

test('a gateway reads limits by the owner they bound, and drops deleted limits', () => {
  const database = new Sqlite(':memory:')
  for (const { sql } of stateMigrations) database.run(sql)
  const insert = 'insert into budgets (id, max_budget, window, scope_kind, scope_id, version, deleted) values'
  database.run(`${insert} ('a', 5, 'day', 'team', 't', 1, 0), ('b', 6, 'total', 'token', null, 1, 0)`)
  database.run(`${insert} ('c', 7, 'day', 'organization', null, 1, 1)`)
  database.run(`${insert} ('m', 8, 'day', 'mcp_server', 's', 1, 0), ('n', 9, 'day', 'mcp_server', 's/buy', 1, 0)`)
  database.run(
    "insert into consumer_groups (id, name, requests_per_minute, members, version) values ('g', 'analysts', 3, ?, 1)",
    [JSON.stringify({ teams: ['t'], users: ['u'], tokens: [] })],
  )
  const view = new LimitsView()
  const limits = view.read(database, true)
  expect([...limits.budgets.keys()]).toEqual(['a', 'b', 'm', 'n'])
  expect([...limits.budgetsOf.keys()]).toEqual(['team:t', 'mcp_server:s', 'mcp_server:s/buy'])
  expect([...limits.groupsOf.keys()]).toEqual(['team:t', 'user:u'])
  expect(limits.groupsOf.get('user:u')).toEqual([
    { id: 'g', name: 'analysts', requestsPerMinute: 3, tokensPerMinute: null, per: null },
  ])
  expect(limits.excesses.size).toBe(0)
  database.run("insert into excesses values ('p/m', 'p', 'm', 9, 2, 0), ('p/old', 'p', 'old', 9, 2, 1)")
  expect([...view.read(database, false).excesses]).toEqual([['p/m', 9]])
})

test('declares a dimension, refuses what cannot be one, and keeps it while a limit is for each of its values', async () => {
  const path = '/v1/attribution-dimensions'
  const source = { kind: 'header', key: 'x-feature' }
  const created = await call('POST', path, { name: 'feature', source })
  expect([created.status, created.json]).toMatchObject([
    201,
    { name: 'feature', source, values: null, max_values: 10_000, required: false },
  ])
  const own = `${path}/${created.json.id}`
  for (const [body, param] of [
    [{ name: 'Feature', source }, 'name'],
    [{ name: 'secret', source: { kind: 'header', key: 'authorization' } }, 'source.key'],
    [{ name: 'large', source: { kind: 'header', key: 'X-Large' } }, 'source.key'],
    [{ name: 'none', source, values: [] }, 'values'],
  ] as const) {
    const refused = await call('POST', path, body)
    expect([refused.status, refused.json.error.param]).toEqual([422, param])
  }
  expect((await call('POST', path, { name: 'feature', source })).status).toBe(409)
  const perFeature = await call('POST', '/v1/budgets', budget({ per: 'feature' }))
  expect([perFeature.status, perFeature.json]).toMatchObject([201, { per: 'feature', remaining: 12.5 }])
  const unknown = await call('POST', '/v1/budgets', budget({ per: 'unknown' }))
  expect([unknown.status, unknown.json.error.param]).toEqual([422, 'per'])
  const group = { name: 'features', requests_per_minute: 5, members: {}, per: 'feature' }
  expect((await call('POST', '/v1/consumer-groups', group)).json).toMatchObject({ per: 'feature' })
  const before = (await call('GET', `/v1/budgets/${perFeature.json.id}`)).json.version
  expect((await call('PATCH', own, { max_values: 7, values: ['search'] })).json).toMatchObject({
    ...{ name: 'feature', max_values: 7, values: ['search'] },
  })
  expect((await call('GET', `/v1/budgets/${perFeature.json.id}`)).json.version).toBeGreaterThan(before)
  const policy = { name: 'slow features', requests_per_minute: 5, per: 'feature' }
  expect((await call('POST', '/v1/access-policies', policy)).json).toMatchObject({ per: 'feature', scope: 'token' })
  const inUse = await call('DELETE', own)
  const names = `the budget ${perFeature.json.name}, the consumer group features, the access policy slow features`
  expect([inUse.status, inUse.json.error.message]).toEqual([
    409,
    `Limits are for each of its values (per): ${names}. Delete them first`,
  ])
  expect((await call('PATCH', `/v1/budgets/${perFeature.json.id}`, { per: null })).status).toBe(422)
})

test('finds budgets by a part of their name', async () => {
  const { json } = await call('POST', '/v1/budgets', budget({ name: 'Growth of the Shop' }))
  const found = await call('GET', '/v1/budgets?name=growth%20of')
  expect(found.json.budgets.map(({ id }: { id: string }) => id)).toEqual([json.id])
  expect((await call('GET', '/v1/budgets?name=nobody')).json.budgets).toEqual([])
})
