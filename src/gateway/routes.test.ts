import { afterAll, beforeAll, expect, test } from 'bun:test'
import { z } from 'zod'
import { gatewayRouteDescriptions } from './openapi/http-routes.ts'
import { completion, question, startTestGateway, type TestGateway } from './testing/gateway.ts'
import { testModel, testProvider } from './testing/worker.ts'

let running: TestGateway
beforeAll(async () => {
  running = await startTestGateway(() => Response.json(completion), { drain_seconds: 0 })
  running.worker.upstreams.push(
    testProvider({ id: 'sim', name: 'simulator', kind: 'simulator', allowUnlistedModels: false }),
  )
  for (const id of ['simulator/echo', 'simulator/lorem']) {
    running.worker.catalog.push(testModel({ id, providerId: 'sim', upstreamModel: id, createdAt: 1_700_000_000_000 }))
  }
  running.worker.catalog.push(testModel({ id: 'orphan', providerId: 'gone', upstreamModel: 'orphan', createdAt: 0 }))
})
afterAll(() => running.stop())

const get = (path: string, secret = running.secret) =>
  fetch(`${running.url}${path}`, { headers: { authorization: `Bearer ${secret}` } })

test('answers HEAD on the process endpoints', async () => {
  const answer = await fetch(`${running.url}/healthz`, { method: 'HEAD' })
  expect([answer.status, await answer.text()]).toEqual([200, ''])
})

test('answers HEAD / with 200, because agents try a connection with it', async () => {
  const answer = await fetch(running.url, { method: 'HEAD' })
  expect([answer.status, await answer.text()]).toEqual([200, ''])
})

test('hints at a missing or a doubled /v1 in the message of the 404, in the language of the path', async () => {
  const message = async (path: string) => {
    const answer = await fetch(`${running.url}${path}`, { method: 'POST' })
    expect(answer.status).toBe(404)
    const { error } = z.object({ error: z.object({ message: z.string() }) }).parse(await answer.json())
    return error.message
  }
  expect(await message('/chat/completions')).toBe(
    'This path has no /v1 at its beginning: send the request to /v1/chat/completions, by changing the base URL of the client',
  )
  expect(await message('/v1/v1/messages')).toStartWith('This path has /v1 twice: send the request to /v1/messages')
  expect(await message('/models/a')).toContain('send the request to /v1/models,')
  for (const path of ['/v1/vector_stores', '/vector_stores', '/v1/v1/vector_stores']) {
    expect(await message(path)).toBe('There is nothing at this path: see /v1/openapi.json')
  }
  const answer = await fetch(`${running.url}/messages`, { method: 'POST' })
  expect(await answer.json()).toMatchObject({ type: 'error', error: { type: 'not_found_error' } })
})

test('lists the models of the token on GET /v1/models in the form both clients read', async () => {
  const response = await get('/v1/models')
  expect(response.headers.get('x-service-verdict')).toBe('ALLOW')
  expect(await response.json()).toEqual({
    object: 'list',
    data: ['simulator/echo', 'simulator/lorem'].map((id) => ({
      id,
      object: 'model',
      created: 1_700_000_000,
      owned_by: 'simulator',
      type: 'model',
      display_name: id,
      created_at: '2023-11-14T22:13:20.000Z',
    })),
    has_more: false,
    first_id: 'simulator/echo',
    last_id: 'simulator/lorem',
  })
  const narrow = running.worker.addToken({ modelFilter: ['*/lorem'] })
  expect(await (await get('/v1/models', narrow)).json()).toMatchObject({ first_id: 'simulator/lorem' })
})

test('accepts plain and encoded slashes in GET /v1/models/{id} and hides forbidden models', async () => {
  for (const path of ['/v1/models/simulator/echo', '/v1/models/simulator%2Fecho']) {
    expect(await (await get(path)).json()).toMatchObject({ id: 'simulator/echo' })
  }
  const narrow = running.worker.addToken({ modelFilter: ['*/lorem'] })
  for (const [path, secret] of [
    ['/v1/models/simulator/echo', narrow],
    ['/v1/models/none', running.secret],
    ['/v1/models/%ff', running.secret],
  ] as const) {
    expect((await get(path, secret)).status).toBe(404)
  }
  expect((await fetch(`${running.url}/v1/models`)).status).toBe(401)
})

test('records an outcome for model discovery', async () => {
  const before = running.worker.journal.outcomes().length
  await get('/v1/models')
  const events = running.worker.journal.outcomes().slice(before)
  expect(events).toMatchObject([{ verdict: 'allow', reason_code: 'ok', details: { route: 'GET /v1/models' } }])
})

test('answers 404 to an unknown path and 405 to another method, and forwards nothing', async () => {
  const forwarded = running.seen.length
  for (const path of ['/', '/v1/vector_stores', '/v1/models/', '/v1/chat/completions/']) {
    const response = await get(path)
    expect([path, response.status]).toEqual([path, 404])
    expect(await response.json()).toMatchObject({ error: { code: 'not_found' } })
  }
  const wrong = await get('/v1/chat/completions?x=1')
  expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'POST'])
  expect((await fetch(`${running.url}/healthz`, { method: 'DELETE' })).status).toBe(405)
  expect(running.seen.length).toBe(forwarded)
})

test('answers /livez, /readyz, /openapi.json and /metrics itself', async () => {
  expect(await (await get('/healthz')).json()).toEqual({ status: 'ok', version: '0.2.0' })
  expect(await (await get('/readyz')).json()).toEqual({ ok: true })
  running.worker.stale = 'token_state_stale'
  expect((await get('/readyz')).status).toBe(503)
  running.worker.stale = null
  expect(await (await get('/v1/openapi.json')).json()).toEqual({ openapi: '3.1.0' })
  await running.chat({ ...question, model: 'simulator/echo' })
  const text = await (await get('/metrics')).text()
  expect(text).toContain('gatehouse_requests_total{family="chat",verdict="allow",status="2xx"} 1\n')
  expect(text).toContain('gatehouse_request_duration_seconds_bucket{le="+Inf",family="chat"}')
  expect(text).toContain('gatehouse_outbox_unacknowledged_events 0\n')
  expect(text).not.toContain(running.secret)
})

test('serves a server card and the catalog that leads to it to pages of any origin', async () => {
  const catalog = await get('/.well-known/ai-catalog.json')
  expect(catalog.headers.get('content-type')).toBe('application/ai-catalog+json')
  const { entries } = (await catalog.json()) as { entries: [{ url: string }] }
  expect(entries[0].url).toBe('http://127.0.0.1:7080/mcp/server-card')
  const card = await get('/mcp/server-card')
  expect(card.headers.get('content-type')).toBe('application/mcp-server-card+json')
  expect(card.headers.get('access-control-allow-origin')).toBe('*')
  expect(await card.json()).toMatchObject({ remotes: [{ url: 'http://127.0.0.1:7080/mcp' }] })
})

test('serves exactly the described routes', async () => {
  for (const { method, path, permission, errorFrame } of gatewayRouteDescriptions) {
    const response = await fetch(running.url + path.replace('{model_id}', 'x'), { method })
    const refusal = errorFrame === undefined ? 401 : 426
    expect([path, response.status]).toEqual([path, permission === null ? 200 : refusal])
  }
})

test('refuses requests before the gateway knows its identity and records no event', async () => {
  const { journal, status } = running.worker
  const { gatewayId } = status
  const before = journal.outcomes().length
  status.gatewayId = ''
  const answer = await running.chat(question, { secret: 'unknown' })
  status.gatewayId = gatewayId
  expect(answer.status).toBe(503)
  expect(await answer.json()).toMatchObject({ error: { code: 'not_ready' } })
  expect(journal.outcomes()).toHaveLength(before)
})

test('accepts x-api-key on the Anthropic routes, and prefers Authorization', async () => {
  const ask = (path: string, headers: Record<string, string>) =>
    fetch(running.url + path, {
      method: path === '/v1/models' ? 'GET' : 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      ...(path === '/v1/models' ? {} : { body: '{"model":"simulator/echo","max_tokens":9,"messages":[]}' }),
    })
  const { secret } = running
  for (const path of ['/v1/messages', '/v1/models']) {
    expect((await ask(path, { 'x-api-key': secret })).status).toBe(200)
    expect((await ask(path, { 'x-api-key': secret, authorization: 'Bearer gth_wrong' })).status).toBe(401)
    expect((await ask(path, { 'x-api-key': 'gth_wrong', authorization: `Bearer ${secret}` })).status).toBe(200)
    expect((await ask(path, { 'x-api-key': '' })).status).toBe(401)
  }
  expect((await ask('/v1/chat/completions', { 'x-api-key': secret })).status).toBe(401)
})

test('answers every refusal below /v1/messages in the messages form', async () => {
  const authorization = `Bearer ${running.secret}`
  const json = { authorization, 'content-type': 'application/json' }
  const ask = async (init: RequestInit, path = '/v1/messages') => {
    const response = await fetch(running.url + path, init)
    const body: unknown = await response.json()
    const requestId = response.headers.get('x-request-id')
    expect(body).toMatchObject({ type: 'error', error: { message: expect.any(String) }, request_id: requestId })
    expect(response.headers.get('request-id')).toBe(requestId)
    const { error } = body as { error: { type: string; code: string } }
    return [response.status, error.type, error.code]
  }
  const post = (body: string, headers: Record<string, string> = json) => ({ method: 'POST', headers, body })
  const invalid = 'invalid_request_error'
  expect(await ask(post('{', {}))).toEqual([401, 'authentication_error', 'missing_api_key'])
  expect(await ask(post('{'))).toEqual([400, invalid, 'invalid_json'])
  expect(await ask(post('{}'))).toEqual([422, invalid, 'invalid_parameter'])
  expect(await ask(post('{"model":"..","messages":[]}'))).toEqual([404, 'not_found_error', 'model_not_found'])
  expect(await ask({ headers: json })).toEqual([405, invalid, 'method_not_allowed'])
  expect(await ask(post('{}'), '/v1/messages/batches')).toEqual([404, 'not_found_error', 'not_found'])
  const narrow = { ...json, authorization: `Bearer ${running.worker.addToken({ modelFilter: ['other'] })}` }
  expect(await ask(post('{"model":"simulator/echo","messages":[]}', narrow))).toEqual([
    403,
    'permission_error',
    'tokens.model_not_allowed',
  ])
  const big = post(`{"model":"simulator/echo","messages":[],"pad":"${'x'.repeat(11 * 1024 * 1024)}"}`)
  expect(await ask(big)).toEqual([413, 'request_too_large', 'request_too_large'])
})
