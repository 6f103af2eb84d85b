/** Applications that bring their own metadata, and what a document can try. */
import { afterEach, expect, test } from 'bun:test'
import { type TemporaryOAuth, temporaryOAuth, testGatewayUrl } from '../testing/oauth.ts'
import { clientDocuments } from './client-document.ts'

const id = 'https://agent.example.com/oauth/client.json'
const good = {
  client_id: id,
  client_name: 'An agent',
  redirect_uris: ['http://localhost/callback', 'cursor://callback', 'https://agent.example.com/callback'],
  token_endpoint_auth_method: 'none',
}
const outside = async () => ['93.184.216.34']

let oauth: TemporaryOAuth | null = null
afterEach(() => {
  oauth?.remove()
  oauth = null
})

/** Reads documents; counts the calls. */
function reader(
  answer: (url: string) => Response | Promise<Response>,
  { hosts = '*', resolve = outside }: { hosts?: string; resolve?: (host: string) => Promise<readonly string[]> } = {},
) {
  const calls: { url: string; options: RequestInit }[] = []
  const state = { now: 0 }
  const documents = clientDocuments({
    async fetch(url, options) {
      calls.push({ url, options })
      return await answer(url)
    },
    resolve,
    clock: { monotonic: () => state.now },
    hosts,
  })
  return { documents, calls, state }
}

const json = (body: unknown, headers: Record<string, string> = {}) => Response.json(body, { headers })

test('takes an application’s name and usable redirect URIs from its document, and lets it ask for models and tools only', async () => {
  const { documents } = reader(() => json({ ...good, scope: 'openid events:read mcp:invoke' }))
  expect(await documents.read(id)).toEqual({
    id,
    name: 'An agent',
    redirectUris: ['http://localhost/callback', 'https://agent.example.com/callback'],
    scope: ['mcp:invoke'],
    grantTypes: ['authorization_code', 'refresh_token'],
  })
})

test.each([
  'https://agent.example.com',
  'https://agent.example.com/',
  'http://agent.example.com/client.json',
  'https://user@agent.example.com/client.json',
  'https://agent.example.com/client.json#part',
  'https://agent.example.com/client.json?id=1',
  'https://agent.example.com/a/../client.json',
  'https://AGENT.example.com/client.json',
  `https://agent.example.com/${'a'.repeat(512)}`,
])('does not call %s', async (address) => {
  const { documents, calls } = reader(() => json(good))
  expect(await documents.read(address)).toContain('no https address of a document')
  expect(calls).toEqual([])
})

test.each([
  ['https://169.254.169.254/latest/meta-data', []],
  ['https://127.0.0.1/client.json', []],
  ['https://[::1]/client.json', []],
  ['https://2130706433/client.json', []],
  ['https://inside.example.com/client.json', ['10.0.0.7']],
  ['https://both.example.com/client.json', ['93.184.216.34', '192.168.0.1']],
  ['https://mapped.example.com/client.json', ['::ffff:10.0.0.1']],
  ['https://nowhere.example.com/client.json', []],
])('calls no address inside: %s', async (address, addresses) => {
  const { documents, calls } = reader(() => json(good), { resolve: async () => addresses })
  const { href } = new URL(address)
  expect(await documents.read(href)).toBe('The document of the application cannot be read')
  expect(calls).toEqual([])
})

test('follows no redirect, and refuses what is large, late, foreign or no metadata', async () => {
  const refusals: [Response | Promise<Response>, string][] = [
    [new Response(null, { status: 302, headers: { location: 'http://169.254.169.254/' } }), 'answered 302'],
    [new Response('x'.repeat(20_000)), 'cannot be read'],
    [new Response('not json'), 'cannot be read'],
    [json([]), 'no client metadata'],
    [json({ ...good, client_id: 'https://other.example.com/client.json' }), 'another application'],
    [json({ ...good, redirect_uris: ['javascript:alert(1)', 'http://agent.example.com/'] }), 'no usable redirect'],
    [json({ ...good, client_name: 'Good\u202Eeman' }), 'no client metadata'],
    [json({ ...good, token_endpoint_auth_method: 'client_secret_basic' }), 'public clients'],
    [Promise.reject(new Error('connect ECONNREFUSED 10.0.0.1')), 'cannot be read'],
  ]
  for (const [answer, reason] of refusals) {
    const { documents, calls } = reader(() => answer)
    const found = await documents.read(id)
    expect(found).toContain(reason)
    expect(found).not.toContain('10.0.0.1')
    expect(calls.every(({ options }) => options.redirect === 'manual')).toBe(true)
  }
})

test('asks once for many who wait, keeps an answer for minutes and a failure for half a minute', async () => {
  let fails = false
  const { documents, calls, state } = reader(() =>
    fails ? new Response('no', { status: 500 }) : json(good, { 'cache-control': 'max-age=120' }),
  )
  await Promise.all([documents.read(id), documents.read(id)])
  state.now = 119_999
  await documents.read(id)
  expect(calls.length).toBe(1)
  state.now = 120_000
  fails = true
  await documents.read(id)
  state.now = 149_999
  expect(await documents.read(id)).toContain('answered 500')
  expect(calls.length).toBe(2)
  state.now = 150_000
  await documents.read(id)
  expect(calls.length).toBe(3)
})

test('takes documents of the hosts that the setting names, or none', async () => {
  const some = reader(() => json(good), { hosts: 'other.example.com agent.example.com' })
  expect(await some.documents.read(id)).toMatchObject({ name: 'An agent' })
  const others = reader(() => json(good), { hosts: 'example.com' })
  expect(await others.documents.read(id)).toBe('This installation takes no applications of this host')
  const none = reader(() => json(good), { hosts: 'none' })
  expect(none.documents.accepted).toBe(false)
  expect(await none.documents.read(id)).toContain('takes no client id metadata documents')
  expect([...others.calls, ...none.calls]).toEqual([])
})

const asked = {
  scope: 'mcp:invoke',
  redirect_uri: 'http://localhost:49152/callback',
  resource: `${testGatewayUrl}/mcp`,
}

test('a person lets an application with a document in: at any loopback port, for the resource, until it is deactivated', async () => {
  oauth = await temporaryOAuth({}, { fetch: async () => json(good), resolve: outside })
  const ada = await oauth.person()
  const preview = await oauth.call('POST', '/v1/oauth/authorize/preview', {
    ...ada.asPage,
    body: oauth.query(id, asked),
  })
  expect(preview.json).toMatchObject({
    client: { client_id: id, client_name: 'An agent', origin: 'document', created_by: null },
    redirect_host: 'localhost:49152',
    resources: [asked.resource],
  })
  const code = await oauth.approve(id, ada, asked)
  const given = await oauth.token({ ...oauth.codeRequest(id, code), redirect_uri: asked.redirect_uri })
  expect(given.json).toMatchObject({ scope: 'mcp:invoke', token_type: 'Bearer' })
  expect(await oauth.works(given.json.access_token)).toBe(false)
  const records = await oauth.call('GET', '/v1/oauth/clients', { token: oauth.adminToken })
  expect(records.json.clients).toContainEqual(
    expect.objectContaining({ client_id: id, created_by: 'document:agent.example.com' }),
  )
  const path = `/v1/oauth/clients/${encodeURIComponent(id)}`
  expect((await oauth.call('POST', `${path}/deactivate`, { token: oauth.adminToken, body: {} })).status).toBe(200)
  const again = await oauth.call('POST', '/v1/oauth/authorize/preview', {
    ...ada.asPage,
    body: oauth.query(id, { ...asked, redirect_uri: good.redirect_uris[2] }),
  })
  expect(again.json.redirect_to).toContain('error=unauthorized_client')
  const refreshed = await oauth.refresh(id, given.json.refresh_token)
  expect(refreshed.json.error).toBe('unauthorized_client')
})

test('shows a page, and redirects nobody, for a foreign redirect URI, a scope beyond, or a document that is not there', async () => {
  let document: unknown = good
  oauth = await temporaryOAuth({}, { fetch: async () => json(document), resolve: outside })
  const ada = await oauth.person()
  const preview = async (fields: Record<string, unknown>, client = id) =>
    (
      await oauth?.call('POST', '/v1/oauth/authorize/preview', {
        ...ada.asPage,
        body: oauth.query(client, { ...asked, ...fields }),
      })
    )?.json
  for (const redirect_uri of [
    'https://evil.example.com/callback',
    'http://localhost:1/other',
    'http://127.0.0.1:1/callback',
  ]) {
    expect((await preview({ redirect_uri })).error_page.error).toBe('invalid_request')
  }
  expect((await preview({ scope: 'events:read' })).redirect_to).toContain('error=invalid_scope')
  document = { ...good, client_id: 'https://else.example.com/client.json' }
  const wrong = await preview({}, 'https://agent.example.com/other.json')
  expect(wrong.error_page).toEqual({ error: 'invalid_client', message: 'The document is about another application' })
})

test('fetches nothing for who is not signed in', async () => {
  let calls = 0
  const fetch = async () => {
    calls += 1
    return json(good)
  }
  oauth = await temporaryOAuth({}, { fetch, resolve: outside })
  await oauth.call('POST', '/v1/oauth/authorize/preview', { body: oauth.query(id, asked) })
  await oauth.token(oauth.codeRequest(id, 'x'))
  await oauth.call('POST', '/v1/oauth/device_authorization', { form: { client_id: id } })
  expect(calls).toBe(0)
})
