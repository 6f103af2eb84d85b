/** OAuth access tokens on the gateway: who they act for, where they work, and what is said of those that do not. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { z } from 'zod'
import { compileDelegated } from '../../fleet/state/oauth-token-row.ts'
import { hashSecret, makeSecret } from '../../identity/secret.ts'
import { completion, question, startTestGateway, type TestGateway } from '../testing/gateway.ts'

const learnMore = 'resource_metadata="http://127.0.0.1:7080/.well-known/oauth-protected-resource"'

let running: TestGateway

beforeAll(async () => {
  running = await startTestGateway(() => Response.json(completion))
})
afterAll(() => running.stop())

/** An access token in the gateway's state, by columns of its row. */
function accessToken(columns: Readonly<Record<string, unknown>> = {}): string {
  const secret = makeSecret('oauthAccess', (size) => crypto.getRandomValues(new Uint8Array(size)))
  const row = {
    id: Bun.randomUUIDv7(),
    hash: hashSecret(secret),
    grant_id: 'the-grant',
    client_id: 'the-client',
    user_id: 'ada',
    scope: '["gateway:invoke"]',
    permissions: '["gateway:invoke"]',
    team_ids: '["research","sales"]',
    resources: '[]',
    expires_at: Date.now() + 60_000,
    revoked_at: null,
    version: 1,
    ...columns,
  }
  running.worker.tokens.set(row.hash, compileDelegated(row))
  return secret
}

test('records the person and the application of a request with an OAuth access token', async () => {
  const secret = accessToken()
  const answer = await running.chat(question, { secret, headers: { 'x-request-id': 'delegated-1' } })
  expect(answer.status).toBe(200)
  const outcome = running.worker.journal.outcomes().find(({ request_id }) => request_id === 'delegated-1')
  expect(outcome?.event_attribution).toMatchObject({
    user_id: 'ada',
    team_id: 'research',
    oauth_client_id: 'the-client',
    key_class: null,
  })
  expect(outcome?.event_cost_attribution?.spend_owner).toBe('user:ada')
})

const refusalOf = async (answer: Response) => {
  const { error } = z.object({ error: z.object({ code: z.string() }) }).parse(await answer.json())
  return [answer.status, error.code, answer.headers.get('www-authenticate')]
}

test('names a missing scope in a challenge, and sends no challenge with any other 403', async () => {
  const narrow = accessToken({ scope: '["events:read"]', permissions: '["events:read"]' })
  expect(await refusalOf(await running.chat(question, { secret: narrow }))).toEqual([
    403,
    'insufficient_scope',
    `Bearer error="insufficient_scope", scope="gateway:invoke", ${learnMore}`,
  ])
  const notHeld = accessToken({ permissions: '[]' })
  expect(await refusalOf(await running.chat(question, { secret: notHeld }))).toEqual([403, 'permission_denied', null])
})

test('tells a caller without credentials where to get a token, and one with bad credentials that they are invalid', async () => {
  const none = await fetch(`${running.url}/v1/chat/completions`, { method: 'POST', body: '{}' })
  expect(await refusalOf(none)).toEqual([401, 'missing_api_key', `Bearer ${learnMore}`])
  const invalid = `Bearer error="invalid_token", ${learnMore}`
  for (const [columns, code] of [
    [{ expires_at: Date.now() - 1 }, 'tokens.expired'],
    [{ revoked_at: 1 }, 'invalid_api_token'],
    [{ resources: '["http://127.0.0.1:7070"]' }, 'invalid_api_token'],
    [{ resources: '["http://127.0.0.1:7080/mcp"]' }, 'invalid_api_token'],
  ] as const) {
    expect(await refusalOf(await running.chat(question, { secret: accessToken(columns) }))).toEqual([
      401,
      code,
      invalid,
    ])
  }
})

test('accepts an access token issued for this gateway', async () => {
  const secret = accessToken({ resources: '["http://127.0.0.1:7070","http://127.0.0.1:7080"]' })
  expect((await running.chat(question, { secret })).status).toBe(200)
})

test('refuses an access token whose revocation entry arrived before the state', async () => {
  const secret = accessToken()
  running.worker.revocations.add(hashSecret(secret))
  expect((await running.chat(question, { secret })).status).toBe(401)
})

test('accepts an access token only in the Authorization header', async () => {
  const secret = accessToken()
  const elsewhere = [
    fetch(`${running.url}/v1/models?access_token=${secret}`),
    fetch(`${running.url}/v1/models`, { headers: { 'x-api-key': secret } }),
    fetch(`${running.url}/v1/chat/completions`, {
      method: 'POST',
      body: new URLSearchParams({ access_token: secret }),
    }),
  ]
  for (const answer of await Promise.all(elsewhere)) expect(answer.status).toBe(401)
  const authorized = await fetch(`${running.url}/v1/models`, { headers: { authorization: `Bearer ${secret}` } })
  expect(authorized.status).toBe(200)
})

test('refuses other Gatehouse secrets in place of an access token', async () => {
  for (const kind of ['oauthRefresh', 'oauthCode', 'session'] as const) {
    const secret = makeSecret(kind, (size) => crypto.getRandomValues(new Uint8Array(size)))
    expect((await running.chat(question, { secret })).status).toBe(401)
  }
})

test('publishes the metadata of the gateway and of its MCP endpoint', async () => {
  const read = async (path: string) => await (await fetch(running.url + path)).json()
  const common = { authorization_servers: ['http://127.0.0.1:7070'], bearer_methods_supported: ['header'] }
  expect(await read('/.well-known/oauth-protected-resource')).toEqual({
    resource: 'http://127.0.0.1:7080',
    scopes_supported: ['gateway:invoke'],
    ...common,
  })
  expect(await read('/.well-known/oauth-protected-resource/mcp')).toEqual({
    resource: 'http://127.0.0.1:7080/mcp',
    scopes_supported: ['mcp:invoke'],
    ...common,
  })
})
