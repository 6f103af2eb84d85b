import { afterEach, beforeEach, expect, test } from 'bun:test'
import { recordedTexts } from '../../events/testing/recorded.ts'
import { type TemporaryInstallation, temporaryInstallation } from '../../members/testing/installation.ts'
import { insert, statement } from '../../store/query.ts'
import { memberships, teams, users } from '../../store/schema/ledger/people.ts'
import { type CallOptions, temporaryApi } from '../testing/api.ts'

let made: TemporaryInstallation
let call: ReturnType<typeof temporaryApi>
beforeEach(async () => {
  made = await temporaryInstallation()
  call = temporaryApi(made)
})
afterEach(() => made.store.remove())

const create = (fields: object, options: CallOptions = {}) =>
  call('POST', '/v1/tokens', { ...options, body: { name: 'one', purpose: 'general', ...fields } })
const refused = async (fields: object) => {
  const { status, json } = await create(fields)
  return [status, json.error?.code, json.error?.param]
}

test('answers a created token completely, with its secret once, and reads the same afterwards', async () => {
  const { status, json, headers } = await create({
    name: '  Zoë’s app ',
    bindings: { team_id: made.teamId, user_id: made.userId, model_filter: ['simulator/*'], max_requests: 5 },
    max_budget: 1.5,
    expires_in_seconds: 3600,
    metadata: { purpose: 'test' },
  })
  expect(status).toBe(201)
  const { token_value, ...record } = json
  expect(token_value).toMatch(/^gth_[0-9A-Za-z]{36}$/)
  expect(record).toMatchObject({
    name: 'Zoë’s app',
    token_prefix: token_value.slice(0, 12),
    principal_type: 'api_token',
    key_class: 'durable',
    bindings: { team_id: made.teamId, user_id: made.userId, model_filter: ['simulator/*'] },
    roles: ['member'],
    owner: { kind: 'user', id: made.userId },
    status: 'active',
    max_budget: 1.5,
    max_requests: 5,
    expires_at: '2026-01-02T04:04:05.678Z',
    resource_id: record.id,
    resource_vrn: `vrn:gatehouse:${made.installation.organizationId}:token/${record.id}`,
    last_used_at: null,
    revocation: null,
  })
  expect(headers.get('etag')).toBe(`"${record.version}"`)
  expect((await call('GET', `/v1/tokens/${record.id}`)).json).toEqual(record)
  const { json: page } = await call('GET', '/v1/tokens?limit=1')
  expect(page.tokens).toEqual([record])
})

test('names each missing part of a profile', async () => {
  const { teamId: team_id, gatewayId: gateway_id } = made
  expect(await refused({ purpose: 'gateway_runtime', bindings: { team_id } })).toEqual([
    422,
    'invalid_parameter',
    'bindings.gateway_id',
  ])
  expect(await refused({ purpose: 'gateway_runtime', bindings: { gateway_id } })).toEqual([
    422,
    'invalid_parameter',
    'bindings.team_id',
  ])
  expect(await refused({ purpose: 'integration' })).toEqual([422, 'invalid_parameter', 'bindings.team_id'])
  expect(await refused({ principal_type: 'gateway_runtime' })).toEqual([422, 'invalid_parameter', 'bindings.team_id'])
  expect(await refused({ key_class: 'disposable', max_requests: 1 })).toEqual([
    422,
    'invalid_parameter',
    'expires_in_seconds',
  ])
  expect(await refused({ key_class: 'disposable', expires_in_seconds: 60 })).toEqual([
    422,
    'invalid_parameter',
    'max_requests',
  ])
  expect((await create({ purpose: 'gateway_runtime', bindings: { team_id, gateway_id } })).json.roles).toEqual([
    'runtime',
  ])
  expect((await create({ key_class: 'disposable', expires_in_seconds: 60, max_requests: 1 })).status).toBe(201)
})

test('a purpose limits the roles', async () => {
  const bindings = { team_id: made.teamId, gateway_id: made.gatewayId }
  expect(await refused({ roles: ['runtime'] })).toEqual([422, 'invalid_parameter', 'roles'])
  expect(await refused({ purpose: 'gateway_runtime', bindings, roles: ['member'] })).toEqual([
    422,
    'invalid_parameter',
    'roles',
  ])
})

test('refuses unknown ids and a user outside the team', async () => {
  const noAttribution = made.deps.newId()
  const { ledger } = made.store
  await ledger.write([
    statement(
      insert(users).values({
        id: noAttribution,
        email: 'n@x',
        name: 'N',
        role: 'member',
        status: 'active',
        createdAt: 1,
      }),
    ),
  ])
  for (const name of ['team_id', 'user_id', 'gateway_id', 'budget_id']) {
    expect(await refused({ bindings: { [name]: made.deps.newId() } })).toEqual([
      422,
      'invalid_parameter',
      `bindings.${name}`,
    ])
  }
  expect(await refused({ policy_ids: [made.deps.newId()] })).toEqual([422, 'invalid_parameter', 'policy_ids'])
  expect(await refused({ bindings: { team_id: made.teamId, user_id: noAttribution } })).toEqual([
    422,
    'invalid_parameter',
    'bindings.user_id',
  ])
})

test('accepts limits in either place, but not different ones in both', async () => {
  for (const name of ['max_budget', 'max_requests', 'rate_limit_rpm', 'rate_limit_tpm']) {
    expect((await create({ [name]: 7 })).json[name]).toBe(7)
    expect((await create({ bindings: { [name]: 7 } })).json[name]).toBe(7)
    expect((await create({ [name]: 7, bindings: { [name]: 7 } })).json[name]).toBe(7)
    expect(await refused({ [name]: 7, bindings: { [name]: 8 } })).toEqual([422, 'invalid_parameter', name])
  }
})

test('accepts an expiry as a length or an instant, not both', async () => {
  expect(await refused({ expires_in_seconds: 59 })).toEqual([422, 'invalid_parameter', 'expires_in_seconds'])
  expect(await refused({ expires_in_seconds: 315_360_001 })).toEqual([422, 'invalid_parameter', 'expires_in_seconds'])
  expect(await refused({ expires_at: '2020-01-01T00:00:00Z' })).toEqual([422, 'invalid_parameter', 'expires_at'])
  expect(await refused({ expires_at: 'tomorrow' })).toEqual([422, 'invalid_parameter', 'expires_at'])
  expect(await refused({ expires_in_seconds: 60, expires_at: '2030-01-01T00:00:00Z' })).toEqual([
    422,
    'invalid_parameter',
    'expires_at',
  ])
  expect((await create({ expires_at: '2030-01-01T01:00:00+01:00' })).json.expires_at).toBe('2030-01-01T00:00:00.000Z')
})

test('refuses wrong types, ranges and unknown fields by name and never echoes values', async () => {
  const cases: [object, string][] = [
    [{ name: '' }, 'name'],
    [{ name: '   ' }, 'name'],
    [{ name: 'x'.repeat(10_000) }, 'name'],
    [{ name: 'a\u0000b' }, 'name'],
    [{ name: 5 }, 'name'],
    [{ purpose: 'gateway-runtime' }, 'purpose'],
    [{ key_class: 'eternal' }, 'key_class'],
    [{ max_budget: -1 }, 'max_budget'],
    [{ max_budget: 1e-12 }, 'max_budget'],
    [{ max_budget: 0.1234567891 }, 'max_budget'],
    [{ max_requests: 1.5 }, 'max_requests'],
    [{ roles: [] }, 'roles'],
    [{ bindings: { model_filter: [] } }, 'bindings.model_filter'],
    [{ bindings: { team_id: 'x' } }, 'bindings.team_id'],
    [{ metadata: Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`k${index}`, 'v'])) }, 'metadata'],
    [{ surprise: 1 }, 'surprise'],
    [{ bindings: { surprise: 1 } }, 'bindings.surprise'],
  ]
  for (const [fields, param] of cases) {
    const [status, , named] = await refused(fields)
    expect([status, named]).toEqual([422, param])
  }
  const { json } = await create({ name: 'drop table"; --\u0007secret-looking' })
  expect(JSON.stringify(json)).not.toContain('secret-looking')
})

test('takes quotes and SQL in a name as a name', async () => {
  const name = `'); drop table tokens; -- "x"`
  expect((await create({ name })).json.name).toBe(name)
})

test('nobody grants a role, a team or a limit beyond their own', async () => {
  const other = made.deps.newId()
  await made.store.ledger.write([
    statement(insert(teams).values({ id: other, name: 'other', createdAt: 1 })),
    statement(insert(memberships).values({ teamId: other, userId: made.userId, createdAt: 0 })),
  ])
  const secretOf = async (fields: object) => (await create(fields)).json.token_value
  const as = async (secret: string, fields: object) => {
    const { status, json } = await create(fields, { secret })
    return status === 201 ? 201 : [status, json.error.code, json.error.param]
  }
  const denied = (param: string) => [403, 'permission_denied', param]

  const admin = await secretOf({ roles: ['admin'] })
  expect(await as(admin, { roles: ['owner'] })).toEqual(denied('roles'))
  expect(await as(admin, { roles: ['operator', 'auditor'] })).toBe(201)

  const ofTeam = await secretOf({ roles: ['admin'], bindings: { team_id: made.teamId } })
  expect(await as(ofTeam, { bindings: { team_id: other } })).toEqual(denied('bindings.team_id'))
  expect(await as(ofTeam, {})).toEqual(denied('bindings.team_id'))
  expect(await as(ofTeam, { bindings: { team_id: made.teamId } })).toBe(201)

  const limited = await secretOf({ roles: ['admin'], max_requests: 5, bindings: { model_filter: ['a*'] } })
  expect(await as(limited, { bindings: { model_filter: ['b'] } })).toEqual(denied('bindings.model_filter'))
  expect(await as(limited, { bindings: { model_filter: ['ab'] }, max_requests: 6 })).toEqual(denied('max_requests'))
  expect(await as(limited, { bindings: { model_filter: ['ab'] }, max_requests: 5 })).toBe(201)

  const member = await secretOf({})
  expect(await as(member, {})).toEqual([403, 'permission_denied', null])
})

test("a token's events go to its team, else to its owner's team", async () => {
  const eventTeam = async (fields: object) => {
    const { json } = await create(fields)
    const [row] = await made.store.state.read<{ event_team_id: string }>(
      'select event_team_id from tokens where id = ?',
      [json.id],
    )
    return [row?.event_team_id, json.owner.kind]
  }
  expect(await eventTeam({})).toEqual([made.teamId, 'team'])
  expect(await eventTeam({ bindings: { user_id: made.userId } })).toEqual([made.teamId, 'user'])
})

test('the state holds no name, metadata, prefix or creator, and neither database the secret', async () => {
  const { json } = await create({ name: 'peculiar-name', metadata: { k: 'peculiar-value' } })
  const state = JSON.stringify(await made.store.state.read('select * from tokens'))
  const ledger = JSON.stringify([
    await made.store.ledger.read('select * from tokens'),
    await recordedTexts(made.store.ledger),
    await made.store.ledger.read('select * from pending_changes'),
  ])
  for (const text of ['peculiar-name', 'peculiar-value', json.token_prefix, json.token_value])
    expect(state).not.toContain(text)
  expect(ledger).not.toContain(json.token_value)
  expect(ledger).not.toContain(new Bun.CryptoHasher('sha256').update(json.token_value).digest('hex'))
})

test('a repeated Idempotency-Key never gives the secret again', async () => {
  const headers = { 'idempotency-key': 'once' }
  const first = await create({}, { headers })
  const second = await create({}, { headers })
  expect(second.status).toBe(409)
  expect(second.json.error.code).toBe('idempotency_key_used')
  expect(JSON.stringify(second.json)).not.toContain(first.json.token_value)
})

test('a token inherits the policies of its creator and cannot leave them out', async () => {
  const policy = made.deps.newId()
  for (const [field, table] of [
    [
      'policy_ids',
      "policies (id, kind, stages, config, targets, position, mode, when_broken, enabled, version) values (?, 'audit', '[]', '{}', '{}', 1, 'enforce', 'deny', 1, 1)",
    ],
    ['access_policy_ids', 'access_policies (id, version) values (?, 1)'],
  ] as const) {
    await made.store.state.write([{ sql: `insert into ${table}`, args: [policy] }])
    const { token_value } = (await create({ roles: ['admin'], [field]: [policy] })).json
    const { id } = (await create({}, { secret: token_value })).json
    const sql = `select ${field} as ids, json_array_length(account_ids) as accounts from tokens where id = ?`
    const [row] = await made.store.state.read(sql, [id])
    // The rates of an access policy are the creator's too.
    expect(row).toEqual({ ids: JSON.stringify([policy]), accounts: field === 'policy_ids' ? 1 : 2 })
    const { status, json } = await create({ [field]: [] }, { secret: token_value })
    expect([status, json.error.code, json.error.param]).toEqual([403, 'permission_denied', field])
  }
})

test('the deletion of a policy during a token creation leaves no token that names it', async () => {
  const id = crypto.randomUUID()
  const policy = `insert into policies (id, kind, stages, config, targets, position, mode, when_broken, enabled, version)
    values ('${id}', 'audit', '[]', '{}', '{}', 1, 'enforce', 'deny', 1, 1)`
  await made.store.state.write([{ sql: policy, args: [] }])
  const { change } = made.deps.recorder
  made.deps.recorder.change = async (asked) => {
    await made.store.state.write([{ sql: 'update policies set deleted = 1', args: [] }])
    return await change(asked)
  }
  expect(await refused({ policy_ids: [id] })).toEqual([409, 'conflict', null])
  expect(await made.store.state.read('select 1 from tokens where policy_ids like ?', [`%${id}%`])).toEqual([])
})

test('refuses a secret or deceptive characters in a name or in metadata, without repeating them', async () => {
  const secret = made.installation.adminToken ?? ''
  const refusals: [object, string][] = [
    [{ name: `for ${secret}` }, 'name'],
    [{ name: 'in\u202Evoice' }, 'name'],
    [{ name: 'in\u200Bvoice' }, 'name'],
    [{ name: '\u200D' }, 'name'],
    [{ metadata: { key: secret } }, 'metadata'],
    [{ metadata: { [secret]: 'value' } }, 'metadata'],
    [{ metadata: { key: 'a\u0007b' } }, 'metadata'],
    [{ metadata: { 'a\nb': 'c' } }, 'metadata'],
  ]
  for (const [fields, param] of refusals) {
    const { status, json } = await create(fields)
    expect([status, json.error.param]).toEqual([422, param])
    expect(JSON.stringify(json)).not.toContain(secret)
  }
  const unknown = await create({ [secret]: 1 }, { headers: { 'x-request-id': secret } })
  expect(unknown.json.error.code).toBe('unknown_parameter')
  expect(JSON.stringify(unknown.json)).not.toContain(secret)
})
