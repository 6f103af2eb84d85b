/** A coding agent that signs in at a gateway: what `claude` 2.1.330 sends, in its order, to the real executable. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { fromConsentPage, type Person, person } from '../conformance/people.ts'
import { api, expectAnswer } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { type Gatehouse, operate, startGatehouse, temporaryDirectory } from '../support/harness.ts'
import { eventsOfRequest } from '../support/recorded.ts'

setDefaultTimeout(60_000)

const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code'
const files = temporaryDirectory()
let gatehouse: Gatehouse
let collector: Bun.Server<undefined>
const collected: { path: string; text: string }[] = []
let ada: Person

beforeAll(async () => {
  collector = Bun.serve({
    port: 0,
    async fetch(request) {
      collected.push({ path: new URL(request.url).pathname, text: await request.text() })
      return Response.json({})
    },
  })
  gatehouse = await startGatehouse({
    env: { SERVICE_OTLP_ENDPOINT: `http://127.0.0.1:${collector.port}`, SERVICE_TRACE_SAMPLE_PERCENT: '0' },
  })
  const registration = ['--client-id', 'claude-code', '--name', 'Claude Code', '--scope', 'gateway:invoke']
  const grants = ['--grant-type', deviceGrant, '--grant-type', 'refresh_token']
  const { code, stderr } = await operate(gatehouse, 'oauth-client', 'create', ...registration, ...grants)
  expect([code, stderr]).toEqual([0, ''])
  ada = await person(gatehouse, 'ada')
}, 240_000)
afterAll(async () => {
  await gatehouse.stop()
  await collector.stop(true)
  rmSync(files, { recursive: true })
})

const metadata = z.looseObject({ device_authorization_endpoint: z.string(), token_endpoint: z.string() })
const codes = z.looseObject({ device_code: z.string(), user_code: z.string(), verification_uri_complete: z.string() })
const tokens = z.looseObject({ access_token: z.string(), refresh_token: z.string(), expires_in: z.number() })

/** A form without a `client_id`, as the agent sends it. */
async function post(address: string, form: Record<string, string>) {
  const answer = await fetch(address, { method: 'POST', body: new URLSearchParams(form) })
  return { status: answer.status, headers: answer.headers, body: await answer.json() }
}

/** Signs in, with the person's approval in a browser. */
async function signIn(who: Person) {
  const discovered = await fetch(`${gatehouse.gatewayUrl}/.well-known/oauth-authorization-server`)
  const { device_authorization_endpoint, token_endpoint } = metadata.parse(await discovered.json())
  expect([new URL(device_authorization_endpoint).origin, new URL(token_endpoint).origin]).toEqual([
    new URL(gatehouse.gatewayUrl).origin,
    new URL(gatehouse.gatewayUrl).origin,
  ])
  const asked = expectAnswer(await post(device_authorization_endpoint, { surface: 'claude_code' }), 200, codes)
  const poll = () => post(token_endpoint, { grant_type: deviceGrant, device_code: asked.device_code })
  expect(await poll()).toMatchObject({ status: 400, body: { error: 'authorization_pending' } })
  const decided = await fetch(`${gatehouse.baseUrl}/v1/oauth/device/decision`, {
    method: 'POST',
    headers: fromConsentPage(gatehouse, who),
    body: JSON.stringify({
      user_code: asked.user_code,
      approve: true,
      scopes: ['gateway:invoke'],
      user_id: who.id,
    }),
  })
  expect(decided.status).toBe(200)
  return { token_endpoint, ...expectAnswer(await poll(), 200, tokens) }
}

const withToken = (token: string, headers: Record<string, string> = {}) => ({
  headers: { authorization: `Bearer ${token}`, 'anthropic-version': '2023-06-01', ...headers },
})
const ask = (token: string) =>
  fetch(`${gatehouse.gatewayUrl}/v1/messages?beta=true`, {
    method: 'POST',
    ...withToken(token, { 'content-type': 'application/json' }),
    body: JSON.stringify({
      model: 'simulator/echo',
      max_tokens: 10,
      messages: [{ role: 'user', content: 'Good morning' }],
    }),
  })

test('an agent signs in at the gateway, asks a model in its person’s name, and refreshes its tokens', async () => {
  const { token_endpoint, access_token, refresh_token } = await signIn(ada)
  expect((await ask(access_token)).status).toBe(200)
  const refreshed = expectAnswer(
    await post(token_endpoint, { grant_type: 'refresh_token', refresh_token }),
    200,
    tokens,
  )
  const answer = await ask(refreshed.access_token)
  expect(answer.status).toBe(200)
  const requestId = answer.headers.get('x-request-id') ?? ''
  await answer.text()
  const [outcome] = await eventsOfRequest(gatehouse, requestId)
  expect(outcome?.event_attribution).toMatchObject({ user_id: ada.id, oauth_client_id: 'claude-code' })
})

test('an agent whose person was disabled is refused at once, and its refresh is answered 401 invalid_grant', async () => {
  const eve = await person(gatehouse, 'eve')
  const { token_endpoint, access_token, refresh_token } = await signIn(eve)
  const ended = await api(gatehouse, `/v1/users/${eve.id}`, { method: 'PATCH', body: { status: 'disabled' } })
  expect(ended.status).toBe(200)
  expect((await ask(access_token)).status).toBe(401)
  const refused = await post(token_endpoint, { grant_type: 'refresh_token', refresh_token })
  expect(refused).toMatchObject({ status: 401, body: { error: 'invalid_grant' } })
})

test('managed settings from a file reach the agent, change for its team, and end with the record', async () => {
  const { access_token } = await signIn(ada)
  const fetched = (etag = '"none"') =>
    fetch(`${gatehouse.gatewayUrl}/managed/settings`, withToken(access_token, { 'if-none-match': etag }))
  expect((await fetched()).status).toBe(404)
  const team = expectAnswer(
    await api(gatehouse, '/v1/teams', { body: { name: 'Checkout' } }),
    201,
    z.looseObject({ id: z.string() }),
  )
  const apply = async (records: object[], ...flags: string[]) => {
    const file = join(files, 'settings.json')
    writeFileSync(file, JSON.stringify({ managed_settings: records }))
    const { code, stdout, stderr } = await operate(gatehouse, 'apply', '-f', file, ...flags)
    expect([code, stderr]).toEqual([0, ''])
    return stdout
  }
  const everybody = { name: 'everybody', settings: { permissions: { deny: ['Read(./.env)'] } } }
  const ofTeam = { name: 'checkout', priority: 10, teams: ['Checkout'], settings: { env: { B: '1', A: '2' } } }
  expect(await apply([everybody, ofTeam])).toBe(
    '+ record of managed settings everybody\n+ record of managed settings checkout\n',
  )
  expect(await apply([everybody, ofTeam])).toContain('= record of managed settings checkout')
  const first = await eventually(async () => {
    const answer = await fetched()
    expect(answer.status).toBe(200)
    return answer
  })
  const etag = first.headers.get('etag') ?? ''
  expect(await first.json()).toEqual({
    uuid: expect.any(String),
    checksum: etag.replaceAll('"', ''),
    settings: everybody.settings,
  })
  expect((await fetched(etag)).status).toBe(304)
  expect((await api(gatehouse, `/v1/teams/${team.id}/members`, { body: { user_id: ada.id } })).status).toBe(201)
  const checksum = new Bun.CryptoHasher('sha256').update('{"env":{"A":"2","B":"1"}}').digest('hex')
  await eventually(async () => {
    const second = await fetched(etag)
    expect(second.headers.get('etag')).toBe(`"sha256:${checksum}"`)
    expect(await second.json()).toMatchObject({ settings: ofTeam.settings })
  })
  await apply([], '--prune', '--yes')
  await eventually(async () => expect((await fetched()).status).toBe(404))
})

test('telemetry of an agent reaches the collector in the name of its person', async () => {
  const { access_token } = await signIn(ada)
  const body = { resourceLogs: [{ resource: { attributes: [] }, scopeLogs: [] }] }
  const answer = await fetch(`${gatehouse.gatewayUrl}/v1/logs`, {
    method: 'POST',
    ...withToken(access_token, { 'content-type': 'application/json' }),
    body: JSON.stringify(body),
  })
  expect([answer.status, await answer.json()]).toEqual([200, {}])
  const [got] = collected.filter(({ path }) => path === '/v1/logs')
  expect(JSON.parse(got?.text ?? '')).toMatchObject({
    resourceLogs: [
      {
        resource: {
          attributes: expect.arrayContaining([
            { key: 'gatehouse.user.id', value: { stringValue: ada.id } },
            { key: 'gatehouse.oauth_client.id', value: { stringValue: 'claude-code' } },
          ]),
        },
      },
    ],
  })
})
