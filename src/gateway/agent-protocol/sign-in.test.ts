import { expect, test } from 'bun:test'
import { type AskControlPlane, deviceAuthorizationPath, metadataPath, SignIn, tokenPath } from './sign-in.ts'

const gateway = 'https://gate.example.com'
const answers =
  (status: number, body: unknown): AskControlPlane =>
  async () =>
    Response.json(body, { status })
const signIn = (ask: AskControlPlane, gatewayUrl = gateway) =>
  new SignIn({ gatewayUrl: () => gatewayUrl, ask, running: { waitFor: () => undefined } })
const unused: AskControlPlane = () => Promise.reject(new Error('Nothing is to be asked'))

/** Forms as `claude` 2.1.330 sends them. */
const posted = (path: string, form: string, type = 'application/x-www-form-urlencoded') =>
  new Request(gateway + path, {
    method: 'POST',
    body: form,
    headers: { 'content-type': type, 'content-length': String(form.length) },
  })
const refreshForm = 'grant_type=refresh_token&refresh_token=gthr_x'

test('the metadata has the endpoints on the address of the gateway', async () => {
  const answer = await signIn(unused).answer(metadataPath, new Request(gateway + metadataPath), 'r1')
  expect(answer.headers.get('x-request-id')).toBe('r1')
  expect(await answer.json()).toEqual({
    issuer: gateway,
    device_authorization_endpoint: `${gateway}/v1/oauth/device_authorization`,
    token_endpoint: `${gateway}/v1/oauth/token`,
    grant_types_supported: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'],
    response_types_supported: [],
    token_endpoint_auth_methods_supported: ['none'],
    scopes_supported: ['gateway:invoke'],
  })
})

test('a gateway beside the client names the loopback address that the client used, and no other host', async () => {
  const issuerAt = async (url: string, own = gateway) => {
    const answer = await signIn(unused, own).answer(metadataPath, new Request(url + metadataPath), 'r')
    return Object(await answer.json()).issuer
  }
  expect(await issuerAt('http://127.0.0.1:7080')).toBe('http://127.0.0.1:7080')
  expect(await issuerAt('http://localhost:7080')).toBe('http://localhost:7080')
  expect(await issuerAt('http://evil.example')).toBe(gateway)
  expect(await issuerAt('http://localhost:8443', 'https://localhost:8443')).toBe('https://localhost:8443')
})

test('a form goes to the control plane, as of claude-code where it names no client', async () => {
  const seen: string[] = []
  const ask: AskControlPlane = async (path, form, requestId) => {
    seen.push(`${path} ${form} ${requestId}`)
    return Response.json({ user_code: 'WDJB-MJHT' })
  }
  const asked = signIn(ask)
  const answer = await asked.answer(
    deviceAuthorizationPath,
    posted(deviceAuthorizationPath, 'surface=claude_code'),
    'r1',
  )
  expect([answer.status, answer.headers.get('cache-control'), await answer.json()]).toEqual([
    200,
    'no-store',
    { user_code: 'WDJB-MJHT' },
  ])
  await asked.answer(tokenPath, posted(tokenPath, `${refreshForm}&client_id=other`), 'r2')
  expect(seen).toEqual([
    '/v1/oauth/device_authorization surface=claude_code&client_id=claude-code r1',
    `/v1/oauth/token ${refreshForm}&client_id=other r2`,
  ])
})

test('a refresh token that is refused for good is answered 401, everything else as the control plane does', async () => {
  const statusOf = async (form: string, status: number, error: string) => {
    const asked = signIn(answers(status, { error, error_description: 'x' }))
    const answer = await asked.answer(tokenPath, posted(tokenPath, form), 'r')
    return [answer.status, Object(await answer.json()).error]
  }
  const poll = 'grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code&device_code=gthc_x'
  expect(await statusOf(refreshForm, 400, 'invalid_grant')).toEqual([401, 'invalid_grant'])
  expect(await statusOf(refreshForm, 503, 'temporarily_unavailable')).toEqual([503, 'temporarily_unavailable'])
  expect(await statusOf(refreshForm, 400, 'invalid_scope')).toEqual([400, 'invalid_scope'])
  expect(await statusOf(poll, 400, 'invalid_grant')).toEqual([400, 'invalid_grant'])
  expect(await statusOf(poll, 429, 'slow_down')).toEqual([429, 'slow_down'])
})

test('says who registers claude-code where it is not registered', async () => {
  const asked = signIn(answers(400, { error: 'invalid_client', error_description: 'No such application' }))
  const describedFor = async (form: string) => {
    const answer = await asked.answer(deviceAuthorizationPath, posted(deviceAuthorizationPath, form), 'r')
    return [answer.status, Object(await answer.json()).error_description]
  }
  expect(await describedFor('')).toEqual([400, expect.stringContaining('gatehouse connect claude-code --sign-in')])
  expect(await describedFor('client_id=other')).toEqual([400, 'No such application'])
})

test('what is no form, too long, or does not say its length is refused and not sent on', async () => {
  const wrong = [
    posted(tokenPath, '{}', 'application/json'),
    posted(tokenPath, 'x'.repeat(65_537)),
    new Request(gateway + tokenPath, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    }),
  ]
  for (const request of wrong) {
    const answer = await signIn(unused).answer(tokenPath, request, 'r')
    expect([answer.status, Object(await answer.json()).error]).toEqual([400, 'invalid_request'])
  }
})

test('says 503 before the gateway is ready, while the control plane is away, and while too many wait', async () => {
  const errorOf = async (answer: Promise<Response>) => {
    const { status, headers } = await answer
    return [status, headers.get('retry-after')]
  }
  const request = () => posted(tokenPath, refreshForm)
  expect(await errorOf(signIn(unused, '').answer(tokenPath, request(), 'r'))).toEqual([503, '2'])
  expect(await errorOf(signIn(unused).answer(tokenPath, request(), 'r'))).toEqual([503, '2'])
  const { promise, resolve } = Promise.withResolvers<Response>()
  const busy = signIn(() => promise)
  const waiting = Array.from({ length: 32 }, () => busy.answer(tokenPath, request(), 'r'))
  expect(await errorOf(busy.answer(tokenPath, request(), 'r'))).toEqual([503, '2'])
  resolve(Response.json({}))
  // A response is read once: the first gets it.
  expect((await waiting[0])?.status).toBe(200)
  await Promise.all(waiting)
  expect((await signIn(answers(200, {})).answer(tokenPath, request(), 'r')).status).toBe(200)
})
