/** Applications that register themselves (RFC 7591), where that is allowed. */
import { afterEach, expect, test } from 'bun:test'
import { type TemporaryOAuth, temporaryOAuth, testRedirect } from '../testing/oauth.ts'

let oauth: TemporaryOAuth | null = null
afterEach(() => {
  oauth?.remove()
  oauth = null
})

async function allowed(): Promise<TemporaryOAuth> {
  oauth = await temporaryOAuth({ oauth_dynamic_registration: 'allowed' })
  return oauth
}

const metadata = { client_name: 'An inspector', redirect_uris: [testRedirect] }

test('registers nobody and announces nothing unless the setting allows it', async () => {
  oauth = await temporaryOAuth()
  const refused = await oauth.call('POST', '/v1/oauth/register', { body: metadata })
  expect(refused.status).toBe(404)
  const { json } = await oauth.call('GET', '/.well-known/oauth-authorization-server')
  expect(json.registration_endpoint).toBeUndefined()
  expect(json.client_id_metadata_document_supported).toBe(true)
})

test('registers a public client for models and tools; the person is told that nobody has checked it', async () => {
  const server = await allowed()
  const { json: about } = await server.call('GET', '/.well-known/oauth-authorization-server')
  expect(about.registration_endpoint).toEndWith('/v1/oauth/register')
  const made = await server.call('POST', '/v1/oauth/register', {
    body: {
      ...metadata,
      token_endpoint_auth_method: 'client_secret_post',
      scope: 'openid',
      application_type: 'native',
    },
  })
  expect(made.status).toBe(201)
  expect(made.json).toMatchObject({
    client_name: 'An inspector',
    redirect_uris: [testRedirect],
    token_endpoint_auth_method: 'none',
    scope: 'gateway:invoke mcp:invoke',
  })
  expect(made.json.client_secret).toBeUndefined()
  const ada = await server.person()
  const { client_id: id } = made.json
  const asked = server.query(id, { scope: 'gateway:invoke' })
  const shown = await server.call('POST', '/v1/oauth/authorize/preview', { ...ada.asPage, body: asked })
  expect(shown.json.client).toMatchObject({ client_name: 'An inspector', origin: 'registration' })
  expect((await server.tokens(id, ada, { scope: 'gateway:invoke' })).scope).toBe('gateway:invoke')
  const beyond = await server.call('POST', '/v1/oauth/authorize/preview', {
    ...ada.asPage,
    body: server.query(id, { scope: 'tokens:read' }),
  })
  expect(beyond.json.redirect_to).toContain('error=invalid_scope')
})

test.each([
  [{}, 'invalid_client_metadata'],
  [{ redirect_uris: [] }, 'invalid_client_metadata'],
  [{ redirect_uris: ['http://app.example.com/'] }, 'invalid_redirect_uri'],
  [{ redirect_uris: [testRedirect, 'javascript:alert(1)'] }, 'invalid_redirect_uri'],
  [{ ...metadata, client_name: 'A\u200Bname' }, 'invalid_client_metadata'],
  [{ ...metadata, grant_types: ['client_credentials'] }, 'invalid_client_metadata'],
  [
    { ...metadata, redirect_uris: Array.from({ length: 21 }, (_, n) => `${testRedirect}/${n}`) },
    'invalid_client_metadata',
  ],
])('refuses %p', async (body, error) => {
  const server = await allowed()
  const refused = await server.call('POST', '/v1/oauth/register', { body })
  expect([refused.status, refused.json.error]).toEqual([400, error])
})

test('bounds what an address registers in an hour, and removes what nobody approves within a day', async () => {
  const server = await allowed()
  const register = () => server.call('POST', '/v1/oauth/register', { body: metadata })
  const [kept, ...others] = await Promise.all(Array.from({ length: 10 }, register))
  expect(others.map(({ status }) => status)).toEqual(Array.from({ length: 9 }, () => 201))
  expect([(await register()).status, (await register()).json.error]).toEqual([429, 'slow_down'])
  const ada = await server.person()
  await server.tokens(kept?.json.client_id, ada, { scope: 'gateway:invoke' })
  server.clock.advance(25 * 3_600_000)
  await server.settle()
  const left = await server.call('GET', '/v1/oauth/clients', { token: server.adminToken })
  expect(left.json.clients.map(({ client_id }: { client_id: string }) => client_id)).toEqual([kept?.json.client_id])
  expect((await register()).status).toBe(201)
})
