import { afterAll, beforeAll, expect, test } from 'bun:test'
import { recordedEvents } from '../events/testing/recorded.ts'
import { type TemporaryControlPlane, temporaryControlPlane } from './testing/temporary-control-plane.ts'

let plane: TemporaryControlPlane
beforeAll(async () => {
  plane = await temporaryControlPlane()
})
afterAll(() => plane.remove())

const tokenOf = async (fields: object) =>
  (
    await plane.call('POST', '/v1/tokens', {
      token: plane.adminToken,
      body: { name: 'one', purpose: 'general', ...fields },
    })
  ).json
const refusals = () => recordedEvents(plane.store.ledger, 'auth.refused')

test('records a change that is refused for a missing permission, and no refused read', async () => {
  const member = await tokenOf({ roles: ['member'] })
  const call = (method: string, path: string, body?: object) =>
    plane.call(method, path, { token: member.token_value, body, headers: { 'x-request-id': 'refused-1' } })
  expect((await call('GET', '/v1/users')).status).toBe(403)
  expect(await refusals()).toEqual([])
  expect((await call('POST', '/v1/users', { email: 'a@example.com', name: 'A' })).status).toBe(403)
  expect(await refusals()).toMatchObject([
    {
      verdict: 'deny',
      reason_code: 'permission_denied',
      request_id: 'refused-1',
      event_attribution: { token_id: member.id, team_id: plane.teamId, key_class: 'durable' },
      details: { actor: `token:${member.id}`, route: 'POST /v1/users', permission: 'members:write' },
    },
  ])
})

test('records a change that is refused because it grants more than the caller may grant', async () => {
  const { id, token_value } = await tokenOf({ roles: ['admin'] })
  const made = await plane.call('POST', '/v1/users', {
    token: token_value,
    body: { email: 'second-owner@example.com', name: 'Second', role: 'owner' },
    headers: { 'x-request-id': 'refused-2' },
  })
  expect([made.status, made.json.error.param]).toEqual([403, 'role'])
  expect((await refusals()).filter(({ request_id }) => request_id === 'refused-2')).toMatchObject([
    { verdict: 'deny', details: { actor: `token:${id}`, route: 'POST /v1/users' } },
  ])
})

test("a team's token changes nothing that holds for the whole organization", async () => {
  const { token_value } = await tokenOf({ roles: ['admin'], bindings: { team_id: plane.teamId } })
  for (const path of ['/v1/gateways', '/v1/catalog/providers']) {
    const answer = await plane.call('POST', path, { token: token_value, body: { name: 'x' } })
    expect([answer.status, answer.json.error.code]).toEqual([403, 'permission_denied'])
    expect((await plane.call('GET', path, { token: token_value })).status).toBe(200)
  }
})

const restrictions = (): Record<string, object> => ({
  expiry: { expires_in_seconds: 600 },
  requests: { max_requests: 5 },
  'a model filter': { bindings: { model_filter: ['a'] } },
  'a team': { bindings: { team_id: plane.teamId } },
})

test('a token with an expiry, limits or bindings may not change a person', async () => {
  const person = await plane.addPerson('administrator@example.com', 'member')
  for (const restriction of Object.values(restrictions())) {
    const { token_value: token } = await tokenOf({ roles: ['admin'], ...restriction })
    const email = `${crypto.randomUUID()}@example.com`
    const refused = [
      await plane.call('POST', '/v1/users', { token, body: { email, name: 'A' } }),
      await plane.call('POST', '/v1/users', { token, body: { email, name: 'A', role: 'operator' } }),
      await plane.call('PATCH', `/v1/users/${person}`, { token, body: { password: 'another long password' } }),
      await plane.call('POST', '/v1/teams', { token, body: { name: 'mine' } }),
      await plane.call('POST', `/v1/teams/${plane.teamId}/members`, { token, body: { user_id: person } }),
    ]
    expect(refused.map(({ status, json }) => [status, json.error.code])).toEqual(
      refused.map(() => [403, 'permission_denied']),
    )
  }
})

test('an owner token with an expiry, limits or bindings makes no setup link, and one without them does', async () => {
  await plane.store.ledger.write([{ sql: 'update users set password_hash = null', args: [] }])
  for (const restriction of Object.values(restrictions())) {
    const { token_value: token } = await tokenOf({ roles: ['owner'], ...restriction })
    const { status, json } = await plane.call('POST', '/v1/auth/setup-link', { token, body: {} })
    expect([status, json.error.code]).toEqual([403, 'permission_denied'])
    expect(json.error.message).toContain('admin-token')
  }
  expect((await plane.call('POST', '/v1/auth/setup-link', { token: plane.adminToken, body: {} })).status).toBe(201)
})

test("a person's token loses its rights with the person's role", async () => {
  const user = await plane.addPerson('lowered@example.com', 'admin')
  const { token_value } = await tokenOf({ roles: ['admin'], bindings: { user_id: user } })
  const make = async () =>
    (await plane.call('POST', '/v1/gateways', { token: token_value, body: { name: crypto.randomUUID() } })).status
  expect(await make()).toBe(201)
  await plane.store.ledger.write([{ sql: "update users set role = 'auditor' where id = ?", args: [user] }])
  expect(await make()).toBe(403)
  expect((await plane.call('GET', '/v1/gateways', { token: token_value })).status).toBe(200)
})

test("a member's token sees no more although its user may read more than a member", async () => {
  const user = await plane.addPerson('auditor@example.com', 'auditor')
  const own = await tokenOf({ roles: ['member'], bindings: { user_id: user } })
  await plane.store.ledger.write([
    { sql: 'insert into memberships (team_id, user_id, created_at) values (?, ?, 0)', args: [plane.teamId, user] },
  ])
  await tokenOf({ bindings: { team_id: plane.teamId } })
  const seen = await plane.call('GET', '/v1/tokens', { token: own.token_value })
  expect(seen.json.tokens.map(({ id }: { id: string }) => id)).toEqual([own.id])
})
