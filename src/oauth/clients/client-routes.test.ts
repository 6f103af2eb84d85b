import { afterAll, beforeAll, expect, test } from 'bun:test'
import { recordedEvents } from '../../events/testing/recorded.ts'
import { type TemporaryOAuth, temporaryOAuth, testRedirect } from '../testing/oauth.ts'

let oauth: TemporaryOAuth

beforeAll(async () => {
  oauth = await temporaryOAuth({ oauth_scopes: 'gateway:invoke events:read' })
})
afterAll(() => oauth.remove())

const good = { client_name: 'A notebook', redirect_uris: [testRedirect], scope: 'gateway:invoke events:read' }
const asAdmin = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
  oauth.call(method, path, { token: oauth.adminToken, headers, ...(body === undefined ? {} : { body }) })

test('a registration answers with the names of RFC 7591 and no secret', async () => {
  const { status, json, headers } = await asAdmin('POST', '/v1/oauth/clients', {
    ...good,
    grant_types: ['refresh_token', 'authorization_code'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  })
  expect([status, headers.get('etag')]).toEqual([201, '"1"'])
  expect(json).toEqual({
    ...good,
    client_id: expect.any(String),
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
    client_id_issued_at: Math.floor(oauth.clock.now() / 1000),
    status: 'active',
    created_by: expect.stringMatching(/^token:/),
    version: 1,
  })
  expect((await asAdmin('GET', `/v1/oauth/clients/${json.client_id}`)).json).toEqual(json)
})

test('an invalid registration names the field', async () => {
  const wrong: [Record<string, unknown>, string][] = [
    [{ client_name: '' }, 'client_name'],
    [{ client_name: '\u2800' }, 'client_name'],
    [{ client_name: 'A\u2800note' }, 'client_name'],
    [{ redirect_uris: [] }, 'redirect_uris'],
    [{ redirect_uris: ['http://app.example.com/callback'] }, 'redirect_uris.0'],
    [{ redirect_uris: [testRedirect, `${testRedirect}#x`] }, 'redirect_uris.1'],
    [{ scope: '' }, 'scope'],
    [{ scope: 'tokens:write' }, 'scope'],
    [{ scope: 'gateway:invoke  events:read' }, 'scope'],
    [{ token_endpoint_auth_method: 'client_secret_basic' }, 'token_endpoint_auth_method'],
    [{ grant_types: ['authorization_code'] }, 'grant_types'],
    [{ client_secret: 'x' }, 'client_secret'],
  ]
  for (const [fields, param] of wrong) {
    const { status, json } = await asAdmin('POST', '/v1/oauth/clients', { ...good, ...fields })
    expect([status, json.error.param]).toEqual([422, param])
  }
})

test('a change needs the version it was made from, and leaves an event', async () => {
  const id = await oauth.register()
  const path = `/v1/oauth/clients/${id}`
  const changed = await asAdmin('PATCH', path, { client_name: 'Renamed' }, { 'if-match': '"1"' })
  expect([changed.status, changed.json.client_name, changed.json.version]).toEqual([200, 'Renamed', 2])
  const stale = await asAdmin('PATCH', path, { client_name: 'Late' }, { 'if-match': '"1"' })
  expect([stale.status, stale.json.error.code]).toEqual([412, 'version_mismatch'])
  const [event] = await recordedEvents(oauth.store.ledger, 'oauth.client_updated')
  expect(event).toMatchObject({
    event_attribution: { oauth_client_id: id },
    details: { changes: { client_name: { from: 'A notebook', to: 'Renamed' } } },
  })
})

test('a device application has an id of its choice and no redirect URI; one that gets codes needs a redirect URI', async () => {
  const device = { client_id: 'claude-code', client_name: 'Claude Code', scope: 'gateway:invoke' }
  const grant_types = ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token']
  const made = await asAdmin('POST', '/v1/oauth/clients', { ...device, grant_types })
  expect(made.status).toBe(201)
  expect(made.json).toMatchObject({ ...device, redirect_uris: [], response_types: [] })
  const again = await asAdmin('POST', '/v1/oauth/clients', { ...device, grant_types })
  expect([again.status, again.json.error.param]).toEqual([409, 'client_id'])
  const fault = async (method: string, path: string, body: unknown) => {
    const { status, json } = await asAdmin(method, path, body)
    return [status, json.error.param]
  }
  const changed = { grant_types: ['refresh_token', 'authorization_code'] }
  expect(await fault('PATCH', '/v1/oauth/clients/claude-code', changed)).toEqual([422, 'redirect_uris'])
  const { client_id: _, ...coded } = device
  expect(await fault('POST', '/v1/oauth/clients', coded)).toEqual([422, 'redirect_uris'])
  for (const client_id of ['Claude Code', 'a', '../x', 'a'.repeat(64)]) {
    expect(await fault('POST', '/v1/oauth/clients', { ...device, client_id, grant_types })).toEqual([422, 'client_id'])
  }
})

test('deactivates and activates a client, each once', async () => {
  const path = `/v1/oauth/clients/${await oauth.register()}`
  expect((await asAdmin('POST', `${path}/deactivate`)).json).toMatchObject({ status: 'deactivated', version: 2 })
  expect((await asAdmin('POST', `${path}/deactivate`)).json).toMatchObject({ status: 'deactivated', version: 2 })
  expect((await asAdmin('POST', `${path}/activate`)).json).toMatchObject({ status: 'active', version: 3 })
})

test('lists clients in pages, by status', async () => {
  const id = await oauth.register({ client_name: 'Off' })
  await asAdmin('POST', `/v1/oauth/clients/${id}/deactivate`)
  const off = await asAdmin('GET', '/v1/oauth/clients?status=deactivated')
  expect(off.json.clients.map(({ client_name }: { client_name: string }) => client_name)).toEqual(['Off'])
  const first = await asAdmin('GET', '/v1/oauth/clients?limit=1')
  const second = await asAdmin('GET', `/v1/oauth/clients?limit=1&cursor=${first.json.next_cursor}`)
  expect(second.json.clients[0].client_id > first.json.clients[0].client_id).toBe(true)
})

test('only a caller who may write clients registers one', async () => {
  const member = await oauth.person()
  const refused = await oauth.call('POST', '/v1/oauth/clients', { ...member.asPage, body: good })
  expect([refused.status, refused.json.error.code]).toEqual([403, 'permission_denied'])
  expect((await oauth.call('POST', '/v1/oauth/clients', { body: good })).status).toBe(401)
})

test('answers 404 for an unknown client', async () => {
  expect((await asAdmin('GET', `/v1/oauth/clients/${crypto.randomUUID()}`)).status).toBe(404)
  expect((await asAdmin('POST', '/v1/oauth/clients/x/deactivate')).status).toBe(404)
})

test('the scope registry says what each scope permits and which are active', async () => {
  const { json } = await asAdmin('GET', '/v1/oauth/scopes')
  const active = json.scopes.filter((scope: { active: boolean }) => scope.active)
  expect(json.scopes).toHaveLength(6)
  expect(active.map(({ scope }: { scope: string }) => scope)).toEqual(['gateway:invoke', 'events:read'])
  expect(active[0].sentence).toContain('gateway')
})

test('the server metadata lists what the server does, and only active scopes', async () => {
  const { status, json } = await oauth.call('GET', '/.well-known/oauth-authorization-server')
  expect(status).toBe(200)
  expect(json).toEqual({
    issuer: 'http://127.0.0.1:7070',
    authorization_endpoint: 'http://127.0.0.1:7070/console/oauth/authorize',
    token_endpoint: 'http://127.0.0.1:7070/v1/oauth/token',
    device_authorization_endpoint: 'http://127.0.0.1:7070/v1/oauth/device_authorization',
    revocation_endpoint: 'http://127.0.0.1:7070/v1/oauth/revoke',
    client_id_metadata_document_supported: true,
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
    token_endpoint_auth_methods_supported: ['none'],
    revocation_endpoint_auth_methods_supported: ['none'],
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true,
    scopes_supported: ['gateway:invoke', 'events:read'],
  })
})
