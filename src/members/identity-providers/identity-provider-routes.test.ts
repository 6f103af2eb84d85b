import { afterEach, beforeEach, expect, test } from 'bun:test'
import { recordedEvents } from '../../events/testing/recorded.ts'
import { type TemporaryControlPlane, temporaryControlPlane } from '../testing/temporary-control-plane.ts'

let plane: TemporaryControlPlane
beforeEach(async () => {
  plane = await temporaryControlPlane()
})
afterEach(() => plane.remove())

const path = '/v1/identity-providers'
const valid = { name: 'Acme', issuer: 'https://id.example.com', client_id: 'gatehouse', client_secret: 'hush hush' }
const send = (method: string, at: string, body?: unknown) => plane.call(method, at, { body, token: plane.adminToken })

test('adds, shows, changes and deletes a provider, without ever showing its secret', async () => {
  const made = await send('POST', path, valid)
  expect(made.status).toBe(201)
  expect(made.json).toMatchObject({
    ...{ name: 'Acme', issuer: 'https://id.example.com', has_client_secret: true, enabled: true, default_role: null },
    ...{ scope: 'openid email profile', groups_claim: 'groups', recheck_seconds: 300 },
    redirect_uri: `http://127.0.0.1:7070/v1/auth/callback/${made.json.id}`,
  })
  const one = `${path}/${made.json.id}`
  const changed = await send('PATCH', one, { domains: ['EXAMPLE.com'], client_secret: null })
  expect(changed.json).toMatchObject({ domains: ['example.com'], has_client_secret: false, version: 2 })
  expect((await send('GET', path)).json.identity_providers).toEqual([changed.json])
  expect((await send('DELETE', one)).json.id).toBe(made.json.id)
  expect((await send('GET', one)).status).toBe(404)
  const types = ['created', 'updated', 'deleted'] as const
  const events = await Promise.all(types.map((type) => recordedEvents(plane.store.ledger, `identity_provider.${type}`)))
  expect(events.map((found) => found.length)).toEqual([1, 1, 1])
  expect(made.text + changed.text + JSON.stringify(events)).not.toContain('hush hush')
})

test('refuses issuers that are unsafe or stand for many tenants, and names the field', async () => {
  const issuers = [
    'http://id.example.com',
    'ftp://id.example.com',
    'id.example.com',
    'https://user:word@id.example.com',
    'https://id.example.com/?tenant=1',
    'https://id.example.com/.well-known/openid-configuration',
    'https://login.microsoftonline.com/common/v2.0',
    'https://login.microsoftonline.com/organizations/v2.0',
    'https://login.microsoftonline.com/{tenantid}/v2.0',
  ]
  for (const issuer of issuers) {
    const { status, json } = await send('POST', path, { ...valid, issuer })
    expect([issuer, status, json.error.param]).toEqual([issuer, 422, 'issuer'])
  }
})

test('Google needs domains, because anybody can have an account there', async () => {
  const google = { ...valid, issuer: 'https://accounts.google.com' }
  expect((await send('POST', path, google)).json.error).toMatchObject({ param: 'domains' })
  const made = await send('POST', path, { ...google, domains: ['example.com'] })
  expect(made.status).toBe(201)
  const emptied = await send('PATCH', `${path}/${made.json.id}`, { domains: [] })
  expect(emptied.json.error).toMatchObject({ param: 'domains' })
})

test('refuses a scope without openid, an unknown team and a default role of owner', async () => {
  const cases: [Record<string, unknown>, string][] = [
    [{ scope: 'email profile' }, 'scope'],
    [{ groups: [{ group: 'x', team_ids: [plane.userId] }] }, 'groups.0.team_ids.0'],
    [{ default_role: 'owner' }, 'default_role'],
    [{ domains: ['not a domain'] }, 'domains.0'],
    [{ recheck_seconds: 5 }, 'recheck_seconds'],
    [{ unknown: 1 }, 'unknown'],
  ]
  for (const [changes, param] of cases) {
    const { status, json } = await send('POST', path, { ...valid, ...changes })
    expect([status, json.error.param]).toEqual([422, param])
  }
})

test('a name and an issuer stand once', async () => {
  await send('POST', path, valid)
  expect((await send('POST', path, { ...valid, name: 'Other' })).status).toBe(409)
  expect((await send('POST', path, { ...valid, issuer: 'https://other.example.com' })).status).toBe(409)
})

test('only an owner changes providers, because their groups can make owners', async () => {
  const made = await send('POST', path, valid)
  await plane.addPerson('admin@example.com', 'admin')
  const admin = await plane.signInAs('admin@example.com')
  const as = { cookie: admin.cookie, headers: plane.fromPage(admin) }
  const one = `${path}/${made.json.id}`
  expect((await plane.call('GET', one, as)).status).toBe(200)
  expect((await plane.call('POST', path, { ...as, body: { ...valid, name: 'Mine' } })).status).toBe(403)
  expect((await plane.call('PATCH', one, { ...as, body: { default_role: 'admin' } })).status).toBe(403)
  expect((await plane.call('DELETE', one, as)).status).toBe(403)
})

test('a change holds for the version that was read', async () => {
  const made = await send('POST', path, valid)
  const one = `${path}/${made.json.id}`
  await send('PATCH', one, { name: 'Acme 2' })
  const late = await plane.call('PATCH', one, {
    body: { name: 'Acme 3' },
    token: plane.adminToken,
    headers: { 'if-match': '"1"' },
  })
  expect(late.status).toBe(412)
})
