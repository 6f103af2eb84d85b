/** The life of a token by its routes, rule by rule; long because each rule of tokens has its test here. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { recordedEvents } from '../events/testing/recorded.ts'
import { hashSecret } from '../identity/secret.ts'
import { firstStart } from '../members/first-start.ts'
import { type TemporaryInstallation, temporaryInstallation } from '../members/testing/installation.ts'
import { temporaryApi } from './testing/api.ts'

let made: TemporaryInstallation
let call: ReturnType<typeof temporaryApi>
beforeEach(async () => {
  made = await temporaryInstallation()
  call = temporaryApi(made)
})
afterEach(() => made.store.remove())

const create = async (fields: object = {}) =>
  (await call('POST', '/v1/tokens', { body: { name: 'one', purpose: 'general', ...fields } })).json
const status = async (id: string) => (await call('GET', `/v1/tokens/${id}`)).json.status
const asCaller = async (secret: string) => (await call('GET', '/v1/tokens', { secret })).json.error
const eventsOf = (type: string) => recordedEvents(made.store.ledger, type)
const accounts = async (id: string) => {
  const [row] = await made.store.state.read<{ account_ids: string }>('select account_ids from tokens where id = ?', [
    id,
  ])
  return JSON.parse(row?.account_ids ?? 'null')
}

test('waits for gateways while the ledger is still written', async () => {
  const order: string[] = []
  const { recorder, fleet } = made.deps
  const watched: TemporaryInstallation['deps'] = {
    ...made.deps,
    fleet: {
      ...fleet,
      propagation(version) {
        order.push('waited for')
        return fleet.propagation(version)
      },
    },
    recorder: {
      ...recorder,
      async change(change) {
        const changed = await recorder.change(change)
        order.push('written')
        return changed
      },
    },
  }
  const { id } = await create()
  await temporaryApi({ ...made, deps: watched })('DELETE', `/v1/tokens/${id}`)
  expect(order).toEqual(['waited for', 'written'])
})

test('refuses a revoked token at once, informs gateways of its hash, and a second revocation changes nothing', async () => {
  const { id, token_value } = await create({ roles: ['auditor'] })
  const first = await call('DELETE', `/v1/tokens/${id}`)
  expect(first.json).toMatchObject({
    status: 'revoked',
    revocation: { emergency: false },
    propagation: { connected: 0 },
  })
  expect(made.announced.at(-1)?.revoked).toEqual([hashSecret(token_value)])
  expect(await asCaller(token_value)).toMatchObject({ code: 'invalid_api_token', message: expect.stringContaining(id) })
  const again = await call('DELETE', `/v1/tokens/${id}`)
  expect(again.status).toBe(200)
  expect(again.json.revocation).toEqual(first.json.revocation)
  expect(await eventsOf('token.revoked')).toHaveLength(1)
  expect((await call('DELETE', `/v1/tokens/${made.deps.newId()}`)).status).toBe(404)
})

test('revocations at once all succeed and record one event', async () => {
  const { id } = await create()
  const answers = await Promise.all(Array.from({ length: 5 }, () => call('DELETE', `/v1/tokens/${id}`)))
  expect(answers.map((answer) => [answer.status, answer.json.status])).toEqual(answers.map(() => [200, 'revoked']))
  expect(await eventsOf('token.revoked')).toHaveLength(1)
})

test('each event of a token names its key class and its team', async () => {
  const limits = { expires_in_seconds: 600, max_requests: 5 }
  const token = await create({ key_class: 'disposable', ...limits })
  await call('PATCH', `/v1/tokens/${token.id}`, { body: { name: 'two' } })
  const { json: clone } = await call('POST', `/v1/tokens/${token.id}/clone`, { body: {} })
  await call('POST', `/v1/tokens/${token.id}/rotate`, { body: {} })
  await call('DELETE', `/v1/tokens/${clone.id}`)
  const admin = await create({ roles: ['admin'] })
  const owner = await create({ roles: ['owner'], key_class: 'virtual' })
  await call('POST', `/v1/tokens/${owner.id}/rotate`, { body: {}, secret: admin.token_value })
  for (const [type, id, key_class] of [
    ['token.created', token.id, 'disposable'],
    ['token.updated', token.id, 'disposable'],
    ['token.cloned', clone.id, 'disposable'],
    ['token.rotated', token.id, 'disposable'],
    ['token.revoked', clone.id, 'disposable'],
    ['token.rotated', owner.id, 'virtual'],
  ]) {
    const of = (await eventsOf(type ?? '')).filter(({ event_attribution: { token_id } }) => token_id === id)
    expect(of).toMatchObject([{ event_attribution: { key_class, team_id: made.teamId } }])
  }
})

test('an emergency revocation records the reason and its evidence', async () => {
  const { id, token_value } = await create()
  const path = `/v1/tokens/${id}/emergency-revoke`
  expect((await call('POST', path, { body: {} })).json.error.param).toBe('explanation')
  const { json } = await call('POST', path, { body: { explanation: 'found in a log' } })
  expect(json).toMatchObject({ status: 'revoked', revocation: { emergency: true, explanation: 'found in a log' } })
  const [proof] = await eventsOf('token.emergency_revoked')
  expect(proof).toMatchObject({ event_id: json.proof_event_id, details: { explanation: 'found in a log' } })
  expect(JSON.stringify(proof)).not.toContain(token_value)
  expect((await call('POST', path, { body: { explanation: 'again' } })).json.error.code).toBe('token_not_active')
})

test('an emergency revocation also ends the replaced token, and a plain one leaves its grace period', async () => {
  const rotated = async (id: string) =>
    (await call('POST', `/v1/tokens/${id}/rotate`, { body: { grace_period_seconds: 600 } })).json
  const first = await create()
  const second = await rotated(first.id)
  const third = await rotated(second.id)
  const path = `/v1/tokens/${third.id}/emergency-revoke`
  await call('POST', path, { body: { explanation: 'a host was broken into', revoke_active_sessions: true } })
  const hashes = [third, second, first].map(({ token_value }) => hashSecret(token_value))
  expect(made.announced.at(-1)).toMatchObject({ revoked: hashes })
  for (const { id } of [first, second, third]) expect(await status(id)).toBe('revoked')
  const [event] = await eventsOf('token.emergency_revoked')
  expect(event?.details).toMatchObject({ token_id: third.id, also_revoked: [second.id, first.id] })
  const old = await create()
  await call('DELETE', `/v1/tokens/${(await rotated(old.id)).id}`)
  expect([await status(old.id), made.announced.at(-1)?.revoked.length]).toEqual(['active', 1])
})

test('refuses a rotation or revocation from a stale version; a revoked token stays revoked', async () => {
  const { id } = await create()
  const [stale, read] = [
    { 'if-match': '"0"' },
    { 'if-match': (await call('GET', `/v1/tokens/${id}`)).headers.get('etag') ?? '' },
  ]
  const path = `/v1/tokens/${id}`
  for (const [method, to] of [
    ['POST', `${path}/rotate`],
    ['DELETE', path],
  ] as const) {
    const { status: code, json } = await call(method, to, {
      headers: stale,
      ...(method === 'POST' ? { body: {} } : {}),
    })
    expect([code, json.error.code]).toEqual([412, 'version_mismatch'])
  }
  expect(await status(id)).toBe('active')
  const next = await call('POST', `${path}/rotate`, { headers: read, body: {} })
  expect(next.status).toBe(201)
  const tag = { 'if-match': next.headers.get('etag') ?? '' }
  for (let time = 0; time < 2; time++) {
    expect((await call('DELETE', `/v1/tokens/${next.json.id}`, { headers: tag })).status).toBe(200)
  }
})

test('a rotation keeps profile and account, and ends the old token at once', async () => {
  const old = await create({
    max_requests: 5,
    bindings: { model_filter: ['a*'] },
    metadata: { a: 'b' },
    roles: ['auditor'],
  })
  const { status: code, json } = await call('POST', `/v1/tokens/${old.id}/rotate`, { body: {} })
  expect(code).toBe(201)
  const { bindings, max_requests, metadata, roles, purpose, name } = old
  expect(json).toMatchObject({
    bindings,
    max_requests,
    metadata,
    roles,
    purpose,
    name,
    rotated_from: old.id,
    status: 'active',
  })
  expect(json.token_value).not.toBe(old.token_value)
  expect(await accounts(json.id)).toEqual([old.id])
  expect((await call('GET', `/v1/tokens/${old.id}`)).json).toMatchObject({ status: 'rotated', rotated_to_id: json.id })
  expect((await asCaller(old.token_value)).code).toBe('invalid_api_token')
  expect(await asCaller(json.token_value)).toBeUndefined()
  expect(made.announced.at(-1)?.revoked).toEqual([hashSecret(old.token_value)])
  const again = await call('POST', `/v1/tokens/${old.id}/rotate`)
  expect([again.status, again.json.error.code, again.json.error.rotated_to_id]).toEqual([
    409,
    'token_already_rotated',
    json.id,
  ])
})

test('the old token works until the end of its grace period', async () => {
  const old = await create({ roles: ['auditor'] })
  const rotated = await call('POST', `/v1/tokens/${old.id}/rotate`, { body: { grace_period_seconds: 60 } })
  expect(Date.parse(rotated.json.propagation.effective_by)).toBe(made.clock.now() + 60_000)
  expect(made.announced.at(-1)?.revoked).toEqual([])
  made.clock.advance(59_999)
  expect(await asCaller(old.token_value)).toBeUndefined()
  made.clock.advance(1)
  expect(await status(old.id)).toBe('rotated')
  expect((await asCaller(old.token_value)).code).toBe('invalid_api_token')
})

test('one of several rotations at once succeeds, the others are conflicts', async () => {
  const { id } = await create()
  const answers = await Promise.all(Array.from({ length: 4 }, () => call('POST', `/v1/tokens/${id}/rotate`)))
  expect(answers.map((answer) => answer.status).toSorted()).toEqual([201, 409, 409, 409])
  expect(
    (await call('GET', '/v1/tokens')).json.tokens.filter(
      (token: { rotated_from: unknown }) => token.rotated_from === id,
    ),
  ).toHaveLength(1)
})

test('refuses to rotate, clone or update an expired or revoked token', async () => {
  const expired = await create({ expires_in_seconds: 60 })
  const revoked = await create()
  await call('DELETE', `/v1/tokens/${revoked.id}`)
  made.clock.advance(60_000)
  expect(await status(expired.id)).toBe('expired')
  expect((await asCaller(expired.token_value)).code).toBe('tokens.expired')
  for (const { id } of [expired, revoked]) {
    const answers = [
      await call('POST', `/v1/tokens/${id}/rotate`),
      await call('POST', `/v1/tokens/${id}/clone`, { body: {} }),
      await call('PATCH', `/v1/tokens/${id}`, { body: { name: 'two' } }),
    ]
    for (const { status, json } of answers) expect([status, json.error.code]).toEqual([409, 'token_not_active'])
  }
})

test('a clone inherits what it does not narrow, and draws on the accounts of its source', async () => {
  const source = await create({ max_requests: 5, bindings: { model_filter: ['a*', 'b'] }, metadata: { a: '1' } })
  const body = { bindings: { model_filter: ['ab*'] }, max_requests: 4, metadata: { b: '2' }, reason: 'a test' }
  const { status: code, json } = await call('POST', `/v1/tokens/${source.id}/clone`, { body })
  expect(code).toBe(201)
  expect(json).toMatchObject({
    source_token_id: source.id,
    name: 'one',
    bindings: { model_filter: ['ab*'] },
    max_requests: 4,
    metadata: { a: '1', b: '2' },
  })
  expect(await accounts(json.id)).toEqual([json.id, source.id])
  const second = await call('POST', `/v1/tokens/${json.id}/clone`, { body: {} })
  expect(await accounts(second.json.id)).toEqual([second.json.id, json.id, source.id])
  expect((await eventsOf('token.cloned'))[0]?.details).toMatchObject({ reason: 'a test', source_token_id: source.id })
})

const addProvider = (name: string) =>
  made.store.state.write([
    {
      sql: "insert into providers (id, name, kind, position, version) values (?, ?, 'simulator', 1, 1)",
      args: [made.deps.newId(), name],
    },
  ])

const addMcpServer = (name: string) =>
  made.store.state.write([
    {
      sql: "insert into mcp_servers (id, name, approval, position, version) values (?, ?, 'first_use', 1, 1)",
      args: [made.deps.newId(), name],
    },
  ])

test('refuses a binding to an unknown provider or MCP server, at creation and update', async () => {
  const { id } = await create()
  const body = { bindings: { provider: 'nobody' } }
  for (const answer of [
    await call('POST', '/v1/tokens', { body: { name: 'one', purpose: 'general', ...body } }),
    await call('POST', `/v1/tokens/${id}/clone`, { body }),
    await call('PATCH', `/v1/tokens/${id}`, { body }),
  ]) {
    expect([answer.status, answer.json.error.param]).toEqual([422, 'bindings.provider'])
  }
  await addProvider('nobody')
  expect((await call('PATCH', `/v1/tokens/${id}`, { body })).status).toBe(200)
  await addMcpServer('files')
  const ofServer = { name: 'two', purpose: 'general', bindings: { provider: 'files' } }
  expect((await call('POST', '/v1/tokens', { body: ofServer })).status).toBe(201)
})

test('refuses any widening and names the first wider field, by clone and update alike', async () => {
  await addProvider('simulator')
  const source = await create({
    max_budget: 2,
    max_requests: 5,
    expires_in_seconds: 600,
    bindings: { provider: 'simulator', model_filter: ['a*'], team_id: made.teamId },
    rate_limit_rpm: 10,
  })
  const wider: [object, string][] = [
    [{ bindings: { provider: 'other' } }, 'bindings.provider'],
    [{ bindings: { model_filter: ['*'] } }, 'bindings.model_filter'],
    [{ bindings: { model_filter: null } }, 'bindings.model_filter'],
    [{ bindings: { team_id: null } }, 'bindings.team_id'],
    [{ max_budget: 2.000000001 }, 'max_budget'],
    [{ max_requests: null }, 'max_requests'],
    [{ rate_limit_rpm: 11 }, 'rate_limit_rpm'],
    [{ expires_in_seconds: 601 }, 'expires_at'],
    [{ metadata_trust: 'caller' }, 'metadata_trust'],
  ]
  for (const [body, param] of wider) {
    for (const [method, path] of [
      ['POST', '/clone'],
      ['PATCH', ''],
    ] as const) {
      const { status, json } = await call(method, `/v1/tokens/${source.id}${path}`, { body })
      expect([status, json.error?.code, json.error?.param]).toEqual([422, 'token_scope_widened', param])
    }
  }
  expect(
    (await call('PATCH', `/v1/tokens/${source.id}`, { body: { purpose: 'integration' } })).json.error,
  ).toMatchObject({
    code: 'token_scope_widened',
    param: 'purpose',
  })
  expect(
    (await call('POST', `/v1/tokens/${source.id}/clone`, { body: { bindings: { model_filter: [] } } })).status,
  ).toBe(422)
})

test('an update narrows, records its changes, and blocks the token at gateways only if a right is lost', async () => {
  const { id, token_value } = await create({ roles: ['operator'] })
  const renamed = await call('PATCH', `/v1/tokens/${id}`, { body: { name: 'two', metadata: { k: 'hidden-value' } } })
  expect(renamed.json).toMatchObject({ name: 'two', metadata: { k: 'hidden-value' } })
  expect(made.announced.at(-1)?.revoked).toEqual([])
  const narrowed = await call('PATCH', `/v1/tokens/${id}`, { body: { max_requests: 3, roles: ['member'] } })
  expect(narrowed.json).toMatchObject({ max_requests: 3, roles: ['member'], name: 'two' })
  expect(made.announced.at(-1)?.revoked).toEqual([hashSecret(token_value)])
  const [first, second] = await eventsOf('token.updated')
  expect(first?.details?.changed).toEqual({ name: { from: 'one', to: 'two' }, metadata: true })
  expect(second?.details?.changed).toEqual({
    roles: { from: ['operator'], to: ['member'] },
    max_requests: { from: null, to: 3 },
  })
  const [row] = await made.store.state.read<{ max_requests: number }>('select max_requests from tokens where id = ?', [
    id,
  ])
  expect(row?.max_requests).toBe(3)
})

test('an update never gives a role that the token lacks, whoever asks and in whatever order', async () => {
  const refused = async (held: string[], wanted: string[], secret?: string) => {
    const token = await create({ roles: held })
    const { status, json } = await call('PATCH', `/v1/tokens/${token.id}`, {
      body: { roles: wanted },
      secret: secret === undefined ? token.token_value : made.installation.adminToken,
    })
    return [status, json.error?.code, json.error?.param]
  }
  const widened = [422, 'token_scope_widened', 'roles']
  const byAdministrator = made.installation.adminToken ?? ''
  for (const [held, wanted] of [
    [['member'], ['owner']],
    [['member'], ['member', 'admin']],
    [['member'], ['auditor']],
    [['auditor'], ['member']],
    [
      ['operator', 'auditor'],
      ['auditor', 'admin'],
    ],
    [['admin'], ['owner']],
    [['admin'], ['admin', 'owner']],
    [['member'], ['runtime']],
  ] as const) {
    expect(await refused([...held], [...wanted], byAdministrator)).toEqual(widened)
  }
  expect(await refused(['member'], [], byAdministrator)).toEqual([422, 'invalid_parameter', 'roles'])
  expect(await refused(['admin'], ['owner'])).toEqual(widened)
  expect(await refused(['owner'], ['admin', 'admin', 'member'], byAdministrator)).toEqual([200, undefined, undefined])
})

test('refuses an update from a stale version', async () => {
  const { id, version } = await create()
  const path = `/v1/tokens/${id}`
  const update = (name: string, match: string) =>
    call('PATCH', path, { body: { name }, headers: { 'if-match': match } })
  const first = await update('two', `"${version}"`)
  expect(first.headers.get('etag')).toBe(`"${first.json.version}"`)
  const stale = await update('three', `"${version}"`)
  expect([stale.status, stale.json.error.code]).toEqual([412, 'version_mismatch'])
  const both = await Promise.all([update('four', `"${first.json.version}"`), update('five', `"${first.json.version}"`)])
  expect(both.map((answer) => answer.status).toSorted()).toEqual([200, 412])
})

test("an admin cannot take over an owner's token by rotating or cloning it", async () => {
  const admin = await create({ roles: ['admin'] })
  const owner = await create({ roles: ['owner'] })
  for (const action of ['rotate', 'clone']) {
    const { status, json } = await call('POST', `/v1/tokens/${owner.id}/${action}`, {
      body: {},
      secret: admin.token_value,
    })
    expect([status, json.error.param]).toEqual([403, 'roles'])
  }
  const refusals = [...(await eventsOf('token.rotated')), ...(await eventsOf('token.cloned'))]
  expect(refusals).toHaveLength(2)
  for (const event of refusals) {
    expect(event).toMatchObject({
      verdict: 'deny',
      reason_code: 'permission_denied',
      event_attribution: { token_id: owner.id },
      details: { actor: `token:${admin.id}` },
    })
  }
})

test('validation describes a secret, and does not look a malformed one up', async () => {
  const { id, token_value } = await create()
  const validate = async (token: string) => (await call('POST', '/v1/tokens/validate', { body: { token } })).json
  expect(await validate(token_value)).toEqual({ valid: true, token_id: id })
  expect(await validate('gth_nonsense')).toEqual({ valid: false, reason: 'malformed' })
  await call('DELETE', `/v1/tokens/${id}`)
  expect(await validate(token_value)).toEqual({ valid: false, reason: 'revoked' })
})

test('alerts name tokens that expire, have expired, are due for rotation or were revoked in emergency', async () => {
  const day = 24 * 3600
  await create({ name: 'soon', expires_in_seconds: 97 * day })
  await create({ name: 'past', expires_in_seconds: 60 })
  const gone = await create({ name: 'gone' })
  await call('POST', `/v1/tokens/${gone.id}/emergency-revoke`, { body: { explanation: 'x' } })
  made.clock.advance(90 * day * 1000 - 1)
  const alerts = async () =>
    (await call('GET', '/v1/tokens/alerts')).json.alerts.map((alert: { name: string; condition: string }) => [
      alert.name,
      alert.condition,
    ])
  expect(await alerts()).toEqual([
    ['gone', 'emergency_revoked'],
    ['past', 'expired'],
  ])
  made.clock.advance(1)
  const later = await alerts()
  expect(later).toContainEqual(['soon', 'expiring'])
  expect(later).toContainEqual(['soon', 'rotation_due'])
})

test('views count what the caller sees', async () => {
  await create({ bindings: { team_id: made.teamId } })
  const { json } = await call('GET', '/v1/tokens/views')
  expect(json).toMatchObject({ total: 3, by_status: { active: 3 }, by_purpose: { general: 2, gateway_runtime: 1 } })
  expect(json.by_team).toContainEqual({ team_id: made.teamId, count: 2 })
})

test("rotating the runtime token of a start keeps its successor's secret for the next start", async () => {
  const { json } = await call('GET', '/v1/tokens?purpose=gateway_runtime')
  const rotated = await call('POST', `/v1/tokens/${json.tokens[0].id}/rotate`, { body: {} })
  expect((await firstStart(made.options)).runtimeToken).toBe(rotated.json.token_value)
  const fields = { purpose: 'gateway_runtime', bindings: { gateway_id: made.gatewayId, team_id: made.teamId } }
  const other = await create(fields)
  await call('POST', `/v1/tokens/${other.id}/rotate`, { body: {} })
  expect((await firstStart(made.options)).runtimeToken).toBe(rotated.json.token_value)
})

test('refuses to clone or rotate a token that has used up a limit', async () => {
  const { id } = await create({ max_requests: 1 })
  const depletion: (typeof made.deps)['depletion'] = {
    ...made.deps.depletion,
    read: async (tokens) =>
      new Map(
        tokens.map((token) => [
          token.id,
          {
            depletion: { current_spend: 0, remaining_budget: null, current_requests: 1, remaining_requests: 0 },
            shares: { budget: 0, requests: 1 },
            exceededAt: null,
            status: 'request_exhausted' as const,
          },
        ]),
      ),
  }
  const counting = temporaryApi({ ...made, deps: { ...made.deps, depletion } })
  for (const change of ['clone', 'rotate']) {
    const { status, json } = await counting('POST', `/v1/tokens/${id}/${change}`, { body: {} })
    expect([status, json.error.code]).toEqual([409, 'token_not_active'])
  }
})

test('a revoked token can be revoked in an emergency once, and keeps its end time', async () => {
  const { id, token_value } = await create()
  const plain = (await call('DELETE', `/v1/tokens/${id}`)).json
  made.clock.advance(5000)
  const emergency = () =>
    call('POST', `/v1/tokens/${id}/emergency-revoke`, { body: { explanation: 'leaked', revoke_active_sessions: true } })
  const answers = await Promise.all([emergency(), emergency()])
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
  const revoked = (await call('GET', `/v1/tokens/${id}`)).json
  expect(revoked.revocation).toMatchObject({ at: plain.revocation.at, emergency: true, explanation: 'leaked' })
  expect(made.announced.at(-1)?.revoked).toEqual([hashSecret(token_value)])
  expect((await emergency()).json.error.code).toBe('token_not_active')
  expect(await eventsOf('token.emergency_revoked')).toHaveLength(1)
})
