import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type TemporaryControlPlane, temporaryControlPlane } from './temporary-control-plane.ts'

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
const refusals = async () =>
  (await plane.store.ledger.read<{ body: string }>("select body from events where event_type = 'auth.refused'")).map(
    ({ body }) => JSON.parse(body),
  )

test('a change that its caller has no permission for leaves an event; a read leaves none', async () => {
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
      details: { actor: `token:${member.id}`, route: 'POST /v1/users', permission: 'members:write' },
    },
  ])
})

test('a change that goes beyond what its caller may give leaves an event too', async () => {
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

test('a token of a team changes nothing that holds for the whole organization', async () => {
  const { token_value } = await tokenOf({ roles: ['admin'], bindings: { team_id: plane.teamId } })
  for (const path of ['/v1/gateways', '/v1/catalog/providers']) {
    const answer = await plane.call('POST', path, { token: token_value, body: { name: 'x' } })
    expect([answer.status, answer.json.error.code]).toEqual([403, 'permission_denied'])
    expect((await plane.call('GET', path, { token: token_value })).status).toBe(200)
  }
})

test("a person's token does not outlive the person's role", async () => {
  const user = await plane.addPerson('lowered@example.com', 'admin')
  const { token_value } = await tokenOf({ roles: ['admin'], bindings: { user_id: user } })
  const make = async () =>
    (await plane.call('POST', '/v1/gateways', { token: token_value, body: { name: crypto.randomUUID() } })).status
  expect(await make()).toBe(201)
  await plane.store.ledger.write([{ sql: "update users set role = 'auditor' where id = ?", args: [user] }])
  expect(await make()).toBe(403)
  expect((await plane.call('GET', '/v1/gateways', { token: token_value })).status).toBe(200)
})
