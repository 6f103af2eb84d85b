/**
 * A token's life as seen from outside: rotation, cloning, narrowing, emergency revocation, and what the gateway says to
 * a token in each state. The least lifetime is a minute, so expiry on a running gateway is shown where the clock can be
 * moved: `src/gateway/server.test.ts` and `src/tokens/lifecycle.test.ts`.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { z } from 'zod'
import { type FakeUpstream, startFakeUpstream } from '../fakes/upstream.ts'
import { createdToken, errorAnswer, propagation, revokedToken, tokenRecord } from '../support/answers.ts'
import {
  type ApiRequest,
  api,
  chat,
  createToken,
  expectAnswer,
  installation,
  parseOrKeep,
  revoke,
} from '../support/client.ts'
import { type Gatehouse, operate, startGatehouse } from '../support/harness.ts'
import { eventsInLedger, eventsOfRequest, outcomesOf } from '../support/recorded.ts'

setDefaultTimeout(120_000)

const rotatedToken = createdToken.extend({ rotated_from: z.uuid(), propagation })
const versioned = tokenRecord.extend({ version: z.number().int(), rotated_to_id: z.uuid().nullable() })

let upstream: FakeUpstream
let gatehouse: Gatehouse

beforeAll(async () => {
  upstream = await startFakeUpstream()
  gatehouse = await startGatehouse({ upstream })
}, 240_000)
afterAll(async () => {
  await gatehouse?.stop()
  await upstream?.close()
})

const post = (id: string, action: string, body: object = {}, headers: ApiRequest['headers'] = {}) =>
  api(gatehouse, `/v1/tokens/${id}/${action}`, { method: 'POST', body, headers })

const patch = (id: string, body: object, headers: ApiRequest['headers'] = {}) =>
  api(gatehouse, `/v1/tokens/${id}`, { method: 'PATCH', body, headers })

const read = async (id: string) => expectAnswer(await api(gatehouse, `/v1/tokens/${id}`), 200, versioned)

/** The status and code that the gateway gives a chat request of this token; null where it answers. */
async function gatewaySays(token: string, requestId?: string) {
  const answer = await chat(gatehouse, { token, ...(requestId !== undefined && { requestId }) })
  const body = parseOrKeep(await answer.text())
  return { status: answer.status, code: answer.ok ? null : errorAnswer.parse(body).error.code, body }
}

test('a rotation without a grace period replaces a token at once with the same profile', async () => {
  const { teamId } = await installation(gatehouse)
  const limits = { max_requests: 500, rate_limit_rpm: 60, metadata: { use: 'shop' } }
  const old = await createToken(gatehouse, { ...limits, bindings: { team_id: teamId, model_filter: ['fake-*'] } })
  const made = expectAnswer(await post(old.id, 'rotate'), 201, rotatedToken)
  expect(made).toMatchObject({ ...limits, name: old.name, bindings: old.bindings, roles: old.roles })
  expect(made.rotated_from).toBe(old.id)
  expect(made.id).not.toBe(old.id)
  expect(made.token_value).not.toBe(old.token_value)
  expect(await gatewaySays(old.token_value)).toMatchObject({ status: 401, code: 'invalid_api_token' })
  expect((await gatewaySays(made.token_value)).status).toBe(200)
  expect(await read(old.id)).toMatchObject({ status: 'rotated', rotated_to_id: made.id })
})

test('both secrets work within the grace period, and the old one names its replacement', async () => {
  const old = await createToken(gatehouse)
  const made = expectAnswer(await post(old.id, 'rotate', { grace_period_seconds: 3600 }), 201, rotatedToken)
  expect((await gatewaySays(old.token_value)).status).toBe(200)
  expect((await gatewaySays(made.token_value)).status).toBe(200)
  expect(await read(old.id)).toMatchObject({ status: 'active', rotated_to_id: made.id })
})

test('a grace period that ends while the gateway runs takes effect on time', async () => {
  const old = await createToken(gatehouse)
  expectAnswer(await post(old.id, 'rotate', { grace_period_seconds: 1 }), 201, rotatedToken)
  let said = await gatewaySays(old.token_value)
  const deadline = performance.now() + 30_000
  while (said.status === 200 && performance.now() < deadline) said = await gatewaySays(old.token_value)
  expect(said).toMatchObject({ status: 401, code: 'invalid_api_token' })
  expect(JSON.stringify(said.body)).toContain(old.resource_vrn)
  expect(JSON.stringify(said.body)).toContain('rotated')
})

test('of two concurrent rotations one succeeds, and the other names the replacement', async () => {
  const old = await createToken(gatehouse)
  const answers = await Promise.all([post(old.id, 'rotate'), post(old.id, 'rotate')])
  expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 409])
  const [done, refused] = answers.toSorted((one, other) => one.status - other.status)
  if (!done || !refused) throw new Error('There were two')
  const made = expectAnswer(done, 201, rotatedToken)
  const refusal = errorAnswer.extend({ error: errorAnswer.shape.error.loose() }).loose().parse(refused.body)
  expect(refusal.error.code).toBe('token_already_rotated')
  expect(JSON.stringify(refusal)).toContain(`"rotated_to_id":"${made.id}"`)
})

test('the events show which of the two tokens was used around a rotation', async () => {
  const old = await createToken(gatehouse)
  const [before, after] = [`probe-${crypto.randomUUID()}`, `probe-${crypto.randomUUID()}`]
  expect((await gatewaySays(old.token_value, before)).status).toBe(200)
  const made = expectAnswer(await post(old.id, 'rotate'), 201, rotatedToken)
  expect((await gatewaySays(made.token_value, after)).status).toBe(200)
  const usedBy = async (requestId: string) =>
    outcomesOf(await eventsOfRequest(gatehouse, requestId), requestId).map(
      ({ event_attribution }) => event_attribution.token_id,
    )
  expect(await usedBy(before)).toEqual([old.id])
  expect(await usedBy(after)).toEqual([made.id])
})

test('a clone is narrower, has its own secret and survives the revocation of its source', async () => {
  const source = await createToken(gatehouse, {
    max_requests: 100,
    bindings: { model_filter: ['fake-*'] },
    metadata: { use: 'shop' },
  })
  const body = { name: 'night', max_requests: 10, bindings: { model_filter: ['fake-model'] }, metadata: { shift: 'n' } }
  const clone = expectAnswer(await post(source.id, 'clone', { ...body, reason: 'a night shift' }), 201, createdToken)
  expect(clone).toMatchObject({ ...body, metadata: { use: 'shop', shift: 'n' }, source_token_id: source.id })
  expect((await gatewaySays(clone.token_value)).status).toBe(200)
  expectAnswer(await revoke(gatehouse, source.id), 200, revokedToken)
  expect((await gatewaySays(clone.token_value)).status).toBe(200)
  const again = expectAnswer(await post(source.id, 'clone'), 409, errorAnswer)
  expect(again.error.code).toBe('token_not_active')
})

test('a clone or update that widens a field is refused with the name of the first such field', async () => {
  const { gatewayId, teamId } = await installation(gatehouse)
  const limits = { max_budget: 10, max_requests: 100, rate_limit_rpm: 60, rate_limit_tpm: 1000 }
  const bindings = { provider: 'openai', model_filter: ['fake-*'], gateway_id: gatewayId, team_id: teamId }
  const source = await createToken(gatehouse, {
    ...limits,
    bindings,
    expires_in_seconds: 3600,
    metadata: { use: 'shop' },
  })
  const wider: [param: string, body: object][] = [
    ['bindings.provider', { bindings: { provider: null } }],
    ['bindings.model_filter', { bindings: { model_filter: ['*'] } }],
    ['bindings.model_filter', { bindings: { model_filter: ['fake-model', 'other'] } }],
    ['bindings.gateway_id', { bindings: { gateway_id: null } }],
    ['bindings.team_id', { bindings: { team_id: null } }],
    ['max_budget', { max_budget: 10.01 }],
    ['max_budget', { max_budget: null }],
    ['max_requests', { max_requests: 101 }],
    ['rate_limit_rpm', { rate_limit_rpm: 61 }],
    ['rate_limit_tpm', { rate_limit_tpm: 1001 }],
    ['expires_at', { expires_in_seconds: 7200 }],
    ['expires_at', { expires_at: null }],
    ['metadata_trust', { metadata_trust: 'caller' }],
  ]
  for (const [param, body] of wider) {
    for (const answer of [await post(source.id, 'clone', body), await patch(source.id, body)]) {
      const { error } = expectAnswer(answer, 422, errorAnswer)
      expect([body, error.code, error.param]).toEqual([body, 'token_scope_widened', param])
    }
  }
  const changed = expectAnswer(await post(source.id, 'clone', { metadata: { use: 'other' } }), 422, errorAnswer)
  expect(changed.error).toMatchObject({ code: 'token_scope_widened', param: 'metadata' })
  expect((await post(source.id, 'clone', { bindings: { model_filter: [] } })).status).toBe(422)
})

test('all tokens made by a token with a request limit share that limit and end with it', async () => {
  const creator = await createToken(gatehouse, { roles: ['admin'], max_requests: 2, expires_in_seconds: 600 })
  const make = async () => {
    const body = { name: 'made', purpose: 'general', roles: ['admin'] }
    const made = await api(gatehouse, '/v1/tokens', { token: creator.token_value, body })
    return expectAnswer(made, 201, createdToken.extend({ expires_at: z.string().nullable() }))
  }
  const made = [await make(), await make(), await make()]
  expect(made.map(({ max_requests, expires_at }) => [max_requests, expires_at])).toEqual(
    made.map(() => [2, creator.expires_at]),
  )
  const answers: number[] = []
  for (const { token_value } of made) answers.push((await gatewaySays(token_value)).status)
  expect(answers).toEqual([200, 200, 429])
  expect((await gatewaySays(creator.token_value)).status).toBe(429)
})

test('an emergency revocation requires a reason and leaves a proof without the secret', async () => {
  const token = await createToken(gatehouse)
  expect(expectAnswer(await post(token.id, 'emergency-revoke'), 422, errorAnswer).error.param).toBe('explanation')
  expect((await gatewaySays(token.token_value)).status).toBe(200)
  const explanation = 'Its secret was seen in a build log'
  const proved = revokedToken.extend({ proof_event_id: z.uuid() })
  const revoked = expectAnswer(await post(token.id, 'emergency-revoke', { explanation }), 200, proved)
  expect(revoked).toMatchObject({ status: 'revoked', revocation: { emergency: true, explanation } })
  expect(await gatewaySays(token.token_value)).toMatchObject({ status: 401, code: 'invalid_api_token' })
  const proof = eventsInLedger(gatehouse).find(({ event_id }) => event_id === revoked.proof_event_id)
  expect(proof?.event_type).toBe('token.emergency_revoked')
  expect(JSON.stringify(proof)).toContain(explanation)
  expect(JSON.stringify(proof)).toContain(token.id)
  expect(JSON.stringify([proof, revoked])).not.toContain(token.token_value)
  const alerts = JSON.stringify((await api(gatehouse, '/v1/tokens/alerts')).body)
  expect(alerts).toContain(token.id)
  expect(alerts).toContain('emergency_revoked')
})

test('an update requires the current version', async () => {
  const token = await createToken(gatehouse, { max_requests: 100 })
  const { version } = await read(token.id)
  const current = { 'if-match': `"${version}"` }
  const changed = await patch(token.id, { max_requests: 50 }, current)
  expect(expectAnswer(changed, 200, versioned)).toMatchObject({ max_requests: 50 })
  expect(changed.headers.get('etag')).toBe(`"${(await read(token.id)).version}"`)
  const stale = expectAnswer(await patch(token.id, { max_requests: 10 }, current), 412, errorAnswer)
  expect(stale.error.code).toBe('version_mismatch')
  expect(await read(token.id)).toMatchObject({ max_requests: 50 })
  const now = { 'if-match': `"${(await read(token.id)).version}"` }
  const both = await Promise.all(['one', 'other'].map((name) => patch(token.id, { name }, now)))
  expect(both.map(({ status }) => status).toSorted()).toEqual([200, 412])
})

test('alerts name tokens that expire soon, and views count tokens', async () => {
  const token = await createToken(gatehouse, { expires_in_seconds: 3600, key_class: 'virtual' })
  const alert = z.object({ condition: z.string(), token_id: z.string(), at: z.string().nullable() })
  const answer = await api(gatehouse, '/v1/tokens/alerts')
  const { alerts } = expectAnswer(answer, 200, z.object({ alerts: z.array(alert) }))
  const { expires_at } = await read(token.id)
  const own = alerts.find(({ token_id }) => token_id === token.id)
  expect(own).toEqual({ condition: 'expiring', token_id: token.id, at: expires_at ?? '' })
  const counts = z.record(z.string(), z.number())
  const views = z.object({ total: z.number(), by_status: counts, by_purpose: counts, by_key_class: counts })
  const seen = expectAnswer(await api(gatehouse, '/v1/tokens/views'), 200, views)
  for (const by of [seen.by_status, seen.by_purpose, seen.by_key_class]) {
    expect(Object.values(by).reduce((sum, count) => sum + count, 0)).toBe(seen.total)
  }
  expect(seen.by_key_class.virtual).toBeGreaterThan(0)
})

test('an idempotency key creates one token, never shows its secret twice and belongs to one body', async () => {
  const headers = { 'idempotency-key': crypto.randomUUID() }
  const body = { name: `once-${crypto.randomUUID()}`, purpose: 'general' }
  const create = (sent: object) => api(gatehouse, '/v1/tokens', { method: 'POST', body: sent, headers })
  const made = expectAnswer(await create(body), 201, createdToken)
  const again = await create(body)
  expect(expectAnswer(again, 409, errorAnswer).error.code).toBe('idempotency_key_used')
  expect(JSON.stringify(again.body)).not.toContain(made.token_value)
  const other = expectAnswer(await create({ ...body, name: 'another' }), 422, errorAnswer)
  expect(other.error.code).toBe('idempotency_key_reused')
  const listed = JSON.stringify((await api(gatehouse, '/v1/tokens?limit=100')).body)
  expect(listed.split(body.name).length).toBe(2)
})

test('a repeated idempotency key returns the whole answer without a secret and makes the change once', async () => {
  const token = await createToken(gatehouse)
  const headers = { 'idempotency-key': crypto.randomUUID() }
  const act = (explanation: string) => post(token.id, 'emergency-revoke', { explanation }, headers)
  const proof = revokedToken.extend({ proof_event_id: z.uuid() })
  const first = expectAnswer(await act('The laptop was stolen'), 200, proof)
  const again = expectAnswer(await act('The laptop was stolen'), 200, proof)
  expect(again).toEqual(first)
  expect(expectAnswer(await act('Something else'), 422, errorAnswer).error.code).toBe('idempotency_key_reused')
  const revocations = eventsInLedger(gatehouse).filter(
    ({ event_type, event_attribution }) =>
      event_type === 'token.emergency_revoked' && event_attribution.token_id === token.id,
  )
  expect(revocations.map(({ event_id }) => event_id)).toEqual([first.proof_event_id])
})

test('an unusable token is refused on every gateway route, and validation says what it is', async () => {
  const revoked = await createToken(gatehouse)
  const rotated = await createToken(gatehouse)
  await revoke(gatehouse, revoked.id)
  await post(rotated.id, 'rotate')
  for (const [state, { token_value: token, id }] of Object.entries({ revoked, rotated })) {
    for (const path of ['/v1/models', '/v1/models/fake-model']) {
      const answer = await fetch(`${gatehouse.gatewayUrl}${path}`, { headers: { authorization: `Bearer ${token}` } })
      const { error } = errorAnswer.parse(await answer.json())
      expect([state, path, answer.status, error.code]).toEqual([state, path, 401, 'invalid_api_token'])
      expect(error.message).toContain(id)
      expect(error.message).not.toContain(token)
    }
    expect((await api(gatehouse, '/v1/tokens', { token })).status).toBe(401)
    const validated = await api(gatehouse, '/v1/tokens/validate', { body: { token } })
    expect(validated.body).toEqual({ valid: false, reason: state })
  }
})

test('the command line rotates, clones, narrows and revokes, and prints only secrets on stdout', async () => {
  const created = await operate(gatehouse, 'token', 'create', '--name', 'line', '--purpose', 'general')
  expect(created.stdout).toMatch(/^gth_[0-9A-Za-z]{36}\n$/)
  const id = /^id +(\S+)$/m.exec(created.stderr)?.[1] ?? ''
  const cloned = await operate(gatehouse, 'token', 'clone', id, '--model', 'fake-a', '--model', 'fake-b', '--json')
  expect(createdToken.parse(JSON.parse(cloned.stdout)).bindings.model_filter).toEqual(['fake-a', 'fake-b'])
  const updated = await operate(gatehouse, 'token', 'update', id, '--max-requests', '5', '--json')
  expect(JSON.parse(updated.stdout)).toMatchObject({ max_requests: 5 })
  const rotated = await operate(gatehouse, 'token', 'rotate', id, '--grace', '15m')
  expect(rotated.stdout).toMatch(/^gth_[0-9A-Za-z]{36}\n$/)
  expect(rotated.stderr).not.toContain(rotated.stdout.trim())
  const again = await operate(gatehouse, 'token', 'rotate', id, '--yes')
  expect([again.code, again.stdout]).toEqual([1, ''])
  expect(again.stderr).toContain('token_already_rotated')
  const ended = await operate(gatehouse, 'token', 'emergency-revoke', id, '--explanation', 'Leaked', '--yes', '--json')
  expect(JSON.parse(ended.stdout)).toMatchObject({ status: 'revoked', proof_event_id: expect.any(String) })
  expect((await operate(gatehouse, 'token', 'alerts')).stdout).toContain(id)
})
