/** Requests that no library would send: other methods, doubled parameters, odd letters, credentials of another kind. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { z } from 'zod'
import { api, expectAnswer, parseOrKeep } from '../support/client.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'
import { approvedCode, authorizationUrl, newVerifier, opens, post, refresh, tokensFor, tokensOf } from './flow.ts'
import { decide, fromConsentPage, type Person, person, queryOf, redirectUri, register } from './people.ts'

setDefaultTimeout(60_000)

let gatehouse: Gatehouse
let ada: Person
let clientId: string
const everyScope = 'gateway:invoke mcp:invoke tokens:read events:read events:export escalations:read'

beforeAll(async () => {
  gatehouse = await startGatehouse()
  ada = await person(gatehouse, 'ada', 'owner')
  clientId = await register(gatehouse, { scope: everyScope })
}, 240_000)
afterAll(() => gatehouse?.stop())

const send = async (path: string, init: RequestInit) => {
  const answer = await fetch(gatehouse.baseUrl + path, { redirect: 'manual', ...init })
  return { status: answer.status, headers: answer.headers, body: parseOrKeep(await answer.text()) }
}

const consent = (path: 'preview' | 'decision', body: string, headers = fromConsentPage(gatehouse, ada)) =>
  send(`/v1/oauth/authorize/${path}`, { method: 'POST', headers, body })

const decisionOf = (fields: Record<string, string | null> = {}) => ({
  ...queryOf(authorizationUrl(gatehouse, clientId, newVerifier(), { scope: 'gateway:invoke', ...fields })),
  approve: true,
  scopes: ['gateway:invoke'],
  user_id: ada.id,
})

describe('the token endpoint', () => {
  test('answers only POST and CORS preflights, and refuses multipart forms', async () => {
    const { request } = await approvedCode(gatehouse, clientId, ada)
    const query = new URLSearchParams(request)
    const headers = { origin: 'https://app.example', 'access-control-request-method': 'POST' }
    for (const method of ['GET', 'HEAD', 'PUT', 'DELETE']) {
      const answer = await send(`/v1/oauth/token?${query}`, { method, headers })
      expect([404, 405]).toContain(answer.status)
    }
    const preflight = await send('/v1/oauth/token', { method: 'OPTIONS', headers })
    expect([preflight.status, preflight.headers.get('access-control-allow-origin')]).toEqual([204, '*'])
    expect(preflight.headers.get('access-control-allow-methods')).toBe('POST')
    expect(preflight.headers.get('access-control-allow-credentials')).toBeNull()
    const form = new FormData()
    for (const [name, value] of query) form.set(name, value)
    expect(await send('/v1/oauth/token', { method: 'POST', body: form })).toMatchObject({
      status: 400,
      body: { error: 'invalid_request' },
    })
    expect((await post(gatehouse, '/v1/oauth/token', request)).status).toBe(200)
  })

  test('refuses duplicate parameters in a form or JSON, and parameters split over body and address', async () => {
    const { request } = await approvedCode(gatehouse, clientId, ada)
    const { code = '', ...rest } = request
    const form = new URLSearchParams(request)
    form.append('client_id', crypto.randomUUID())
    const json = JSON.stringify(request)
    const jsonHeaders = { 'content-type': 'application/json' }
    for (const [path, init] of [
      ['', { body: form }],
      ['', { body: json.replace('{', `{"code":"another",`), headers: jsonHeaders }],
      ['', { body: JSON.stringify({ ...request, code: [code, 'another'] }), headers: jsonHeaders }],
      [`?code=${code}`, { body: new URLSearchParams(rest) }],
    ] as const) {
      const answer = await send(`/v1/oauth/token${path}`, { method: 'POST', ...init })
      expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
    }
    expect((await post(gatehouse, '/v1/oauth/token', request)).status).toBe(200)
  })

  test('refuses a secret of another kind, or one with trailing characters', async () => {
    const { code, request } = await approvedCode(gatehouse, clientId, ada)
    const { access_token, refresh_token } = await tokensFor(gatehouse, clientId, ada)
    for (const wrong of [
      access_token,
      refresh_token,
      gatehouse.adminToken,
      `${code}\n`,
      `${code} `,
      code.slice(0, -1),
    ]) {
      expect((await post(gatehouse, '/v1/oauth/token', { ...request, code: wrong })).body.error).toBe('invalid_grant')
    }
    for (const wrong of [access_token, code, `${refresh_token}\u0000`]) {
      expect((await refresh(gatehouse, clientId, wrong)).body.error).toBe('invalid_grant')
    }
    expect((await post(gatehouse, '/v1/oauth/token', request)).status).toBe(200)
    expect((await refresh(gatehouse, clientId, refresh_token)).status).toBe(200)
  })

  test('gives a code only for the redirect_uri of the request, which must be named', async () => {
    const second = 'https://app.example.com/second'
    const two = await register(gatehouse, { redirect_uris: [redirectUri, second] })
    const { request } = await approvedCode(gatehouse, two, ada)
    const { redirect_uri: _, ...without } = request
    expect((await post(gatehouse, '/v1/oauth/token', without)).body.error).toBe('invalid_request')
    const elsewhere = { ...request, redirect_uri: second }
    expect((await post(gatehouse, '/v1/oauth/token', elsewhere)).body.error).toBe('invalid_grant')
    expect((await post(gatehouse, '/v1/oauth/token', request)).status).toBe(200)
  })

  test('refuses a client disabled or a person disabled after the consent', async () => {
    const off = await register(gatehouse)
    const leaver = await person(gatehouse, 'leaver')
    const [offCode, leaverCode] = await Promise.all([
      approvedCode(gatehouse, off, ada),
      approvedCode(gatehouse, clientId, leaver),
    ])
    await api(gatehouse, `/v1/oauth/clients/${off}/deactivate`, { body: {} })
    await api(gatehouse, `/v1/users/${leaver.id}`, { method: 'PATCH', body: { status: 'disabled' } })
    expect((await post(gatehouse, '/v1/oauth/token', offCode.request)).body.error).toBe('unauthorized_client')
    expect((await post(gatehouse, '/v1/oauth/token', leaverCode.request)).body.error).toBe('invalid_grant')
    const late = await consent('decision', JSON.stringify(decisionOf()), fromConsentPage(gatehouse, leaver))
    expect(late.status).toBe(401)
  })
})

describe('the decision', () => {
  test('is refused without JSON and its CSRF token, so no foreign page can send it', async () => {
    const { 'x-csrf-token': _, ...cookieOnly } = fromConsentPage(gatehouse, ada)
    for (const headers of [
      { ...cookieOnly, 'content-type': 'text/plain' },
      { ...cookieOnly, 'content-type': 'application/x-www-form-urlencoded' },
      { ...fromConsentPage(gatehouse, ada), 'content-type': 'text/plain' },
    ]) {
      expect([403, 415, 422]).toContain((await consent('decision', JSON.stringify(decisionOf()), headers)).status)
    }
    const address = `/v1/oauth/authorize/decision?${new URLSearchParams({ approve: 'true', client_id: clientId })}`
    expect([404, 405]).toContain((await send(address, { headers: { cookie: ada.cookie } })).status)
  })

  test('is unaffected by parameters named like internals', async () => {
    const body = JSON.stringify({ ...decisionOf(), constructor: 'x', toString: ['x', 'y'], response_mode: 'fragment' })
    const answer = await consent('decision', body.replace('{', '{"__proto__":"x",'))
    const { redirect_to } = z.object({ redirect_to: z.string() }).parse(answer.body)
    expect(redirect_to).toStartWith(`${redirectUri}?code=`)
  })

  test('returns a state whole or not at all, and never in a header or another parameter', async () => {
    for (const state of ['a\r\nset-cookie: x=1', 'é💥\u202e', `x&code=evil&iss=evil#`, 's'.repeat(4096)]) {
      const back = await decide(gatehouse, ada, authorizationUrl(gatehouse, clientId, newVerifier(), { state }))
      expect(back.searchParams.getAll('state')).toEqual([state])
      expect([back.searchParams.getAll('code').length, back.searchParams.getAll('iss'), back.hash]).toEqual([
        1,
        [gatehouse.baseUrl],
        '',
      ])
    }
    const long = { state: 's'.repeat(4097) }
    const back = await decide(gatehouse, ada, authorizationUrl(gatehouse, clientId, newVerifier(), long))
    expect([back.searchParams.get('error'), back.searchParams.has('code')]).toEqual(['invalid_request', false])
  })

  test('grants no scope in another spelling', async () => {
    for (const scope of [
      ...[
        'GATEWAY:INVOKE',
        'gateway:invoke  tokens:read',
        'gateway:invoke\ntokens:read',
        'gateway:invoke\ttokens:read',
      ],
      ...[
        ' gateway:invoke',
        'gateway:invoke,tokens:read',
        'gateway:invoke"',
        'gateway:*',
        'tokens:write',
        'ɡateway:invoke',
      ],
    ]) {
      const back = await decide(gatehouse, ada, authorizationUrl(gatehouse, clientId, newVerifier(), { scope }))
      expect([scope, back.searchParams.get('error')]).toEqual([scope, 'invalid_scope'])
    }
  })
})

test('client registration and token introspection require credentials', async () => {
  const registration = JSON.stringify({ client_name: 'x', redirect_uris: ['https://evil.example/'], scope: everyScope })
  const { access_token } = await tokensFor(gatehouse, clientId, ada, { scope: everyScope })
  for (const path of ['/v1/oauth/register', '/register', '/v1/oauth/introspect', '/introspect', '/v1/oauth/userinfo']) {
    const body = path.endsWith('introspect') ? new URLSearchParams({ token: access_token }) : registration
    expect([path, (await send(path, { method: 'POST', body })).status]).toEqual([path, 404])
  }
  const headers = { 'content-type': 'application/json' }
  expect((await send('/v1/oauth/clients', { method: 'POST', body: registration, headers })).status).toBe(401)
  const asOwner = { ...headers, authorization: `Bearer ${access_token}` }
  expect((await send('/v1/oauth/clients', { method: 'POST', body: registration, headers: asOwner })).status).toBe(403)
})

const described = z.looseObject({
  paths: z.record(z.string(), z.record(z.string(), z.looseObject({ security: z.array(z.unknown()).optional() }))),
})

/** What reads by POST: a secret of their own, and events, which one scope is for. */
const reads = ['/v1/tokens/validate', '/v1/exports/jobs']

test('an access token of an owner with every scope changes no configuration', async () => {
  const { access_token: token } = await tokensFor(gatehouse, clientId, ada, { scope: everyScope })
  const { paths } = expectAnswer(await api(gatehouse, '/v1/openapi.json'), 200, described)
  const known = Object.entries(paths).filter(([path]) => !reads.includes(path))
  const writes = known.flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([method, { security }]) => ['post', 'put', 'patch', 'delete'].includes(method) && security?.length !== 0)
      .map(([method]) => ({ method: method.toUpperCase(), path: path.replaceAll(/\{\w+\}/g, crypto.randomUUID()) })),
  )
  expect(writes.length).toBeGreaterThan(50)
  const done = await Promise.all(
    writes.map(async ({ method, path }) => {
      const { status } = await api(gatehouse, path, { method, token, body: {} })
      // The gateway's routes are described beside the control plane's, which has none of them.
      return status === 403 || status === 404 ? [] : [`${method} ${path} ${status}`]
    }),
  )
  expect(done.flat()).toEqual([])
  expect(await opens(gatehouse, token)).toEqual({ api: true, gateway: true })
})

test('a forged Host header changes neither the issuer nor any metadata address', async () => {
  const headers = { host: 'evil.example', 'x-forwarded-host': 'evil.example', forwarded: 'host=evil.example' }
  const metadata = await send('/.well-known/oauth-authorization-server', { headers })
  expect(JSON.stringify(metadata.body)).not.toContain('evil.example')
  expect(metadata.body).toMatchObject({ issuer: gatehouse.baseUrl })
  const { request } = await approvedCode(gatehouse, clientId, ada)
  expect(tokensOf(await post(gatehouse, '/v1/oauth/token', request)).access_token).toBeString()
})
