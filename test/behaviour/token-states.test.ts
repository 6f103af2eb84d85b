/**
 * Every state a token can be in, on every route that the gateway describes: the status and code seen, and that a
 * refusal names the token and the cause and never the secret. `SHOW_TABLE=1` prints what was seen.
 *
 * No API makes a token expire sooner than in a minute, so expiry is written into the databases while nothing runs.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { makeSecret } from '../../src/identity/secret.ts'
import { openDatabase } from '../../src/store/open.ts'
import { type CreatedToken, createdToken, tokenRecord } from '../support/answers.ts'
import { api, createToken, expectAnswer, installation, parseOrKeep, revoke } from '../support/client.ts'
import { eventually, until } from '../support/eventually.ts'
import { type Gatehouse, startGatehouse, temporaryDirectory } from '../support/harness.ts'

setDefaultTimeout(120_000)

interface Refusal {
  status: number
  code: string
  /** A word of the message that says why. */
  cause: string
}

interface Case {
  secret: string | null
  /** What the message must name; null where the gateway knows no token. */
  resource: string | null
  /** Null where every route answers. */
  refusal: Refusal | null
}

const refused = (cause: string): Refusal => ({ status: 401, code: 'invalid_api_token', cause })
const expiredRefusal: Refusal = { status: 401, code: 'tokens.expired', cause: 'expired' }

const model = 'simulator/echo'
const messages = [{ role: 'user', content: 'hello' }]
const formWith = (name: string) => () => {
  const fields = new FormData()
  fields.set('model', model)
  fields.set('prompt', 'hello')
  fields.set(name, new File([new Uint8Array(64)], 'a.wav', { type: 'audio/wav' }))
  return fields
}
const contents = [{ role: 'user', parts: [{ text: 'hello' }] }]

const mcpClient = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'a-test', version: '1' } }

/** A body that the route answers; a described route that is not here fails the test that asks for it. */
const bodies: Readonly<Record<string, (method: string) => object | null>> = {
  '/v1/chat/completions': () => ({ model, messages }),
  '/v1/responses': () => ({ model, input: 'hello' }),
  '/v1/messages': () => ({ model, messages, max_tokens: 16 }),
  '/v1/messages/count_tokens': () => ({ model, messages }),
  '/v1/embeddings': () => ({ model, input: 'hello' }),
  '/v1/completions': () => ({ model, prompt: 'hello' }),
  '/v1/moderations': () => ({ model, input: 'hello' }),
  '/v1/audio/speech': () => ({ model, input: 'hello', voice: 'alloy' }),
  '/v1/audio/transcriptions': formWith('file'),
  '/v1/audio/translations': formWith('file'),
  '/v1/images/generations': () => ({ model, prompt: 'hello' }),
  '/v1/images/edits': formWith('image'),
  '/v1/rerank': () => ({ model, query: 'hello', documents: ['hello'] }),
  '/v1beta/models/{model}:generateContent': () => ({ contents }),
  '/v1beta/models/{model}:streamGenerateContent': () => ({ contents }),
  '/v1beta/models/{model}:countTokens': () => ({ contents }),
  '/v1beta/models': () => null,
  '/v1beta/models/{model}': () => null,
  '/mcp': () => ({ jsonrpc: '2.0', id: 1, method: 'initialize', params: mcpClient }),
  '/v1/models': () => null,
  '/v1/models/{model_id}': () => null,
  '/v1/responses/compact': () => ({ model, input: [] }),
  '/v1/responses/{response_id}': () => null,
  '/v1/responses/{response_id}/cancel': () => null,
  '/v1/responses/{response_id}/input_items': () => null,
  '/v1/conversations': () => ({}),
  '/v1/conversations/{conversation_id}': (method) => (method === 'POST' ? { metadata: {} } : null),
  '/v1/conversations/{conversation_id}/items': (method) => (method === 'POST' ? { items: [] } : null),
  '/v1/conversations/{conversation_id}/items/{item_id}': () => null,
  '/v1/chat/completions/ws': () => null,
  '/v1/responses/ws': () => null,
  '/v1/realtime': () => null,
  '/managed/settings': () => null,
  '/v1/metrics': () => ({ resourceMetrics: [] }),
  '/v1/logs': () => ({ resourceLogs: [] }),
  '/v1/traces': () => ({ resourceSpans: [] }),
}

const isSocket = (path: string): boolean => path.endsWith('/ws') || path === '/v1/realtime'

/** OpenTelemetry's clients get a status of gRPC, which has no code of ours. */
const isTelemetry = (path: string): boolean => /^\/v1\/(?:metrics|logs|traces)$/.test(path)

const addressOf = (path: string): string =>
  path.replace(/\{model(?:_id)?\}/, encodeURIComponent(model)) +
  (path === '/v1/realtime' ? `?model=${encodeURIComponent(model)}` : '')

const handshake = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
}

const directory = temporaryDirectory()
const dataDirectory = join(directory, 'data')
let gatehouse: Gatehouse
let cases: Map<string, Case>
let routes: { method: string; path: string }[]
let dying: CreatedToken

beforeAll(async () => {
  const first = await startGatehouse({ dataDirectory })
  gatehouse = first
  const made = await makeCases()
  const expired = await createToken(first)
  dying = await createToken(first)
  await first.end('SIGTERM')
  await first.stop()
  await expireAt(expired.id, Date.now() - 1000)
  await expireAt(dying.id, Date.now() + 6000)
  gatehouse = await startGatehouse({ dataDirectory, adminToken: first.adminToken })
  cases = new Map([...made, ['expired', of(expired, expiredRefusal)]])
  routes = await describedRoutes()
}, 240_000)
afterAll(async () => {
  await gatehouse?.stop()
  rmSync(directory, { recursive: true, force: true })
})

const of = ({ token_value, resource_vrn }: CreatedToken, refusal: Refusal | null): Case => ({
  secret: token_value,
  resource: resource_vrn,
  refusal,
})

async function makeCases(): Promise<[string, Case][]> {
  const [active, revoked, emergency, rotated, graced] = await Promise.all(
    Array.from({ length: 5 }, () => createToken(gatehouse)),
  )
  if (!active || !revoked || !emergency || !rotated || !graced) throw new Error('Not all tokens were made')
  await revoke(gatehouse, revoked.id)
  const act = (id: string, action: string, body: object) => api(gatehouse, `/v1/tokens/${id}/${action}`, { body })
  await act(emergency.id, 'emergency-revoke', { explanation: 'for a test' })
  await act(rotated.id, 'rotate', {})
  const grace = await act(graced.id, 'rotate', { grace_period_seconds: 3600 })
  const { gatewayId, teamId } = await installation(gatehouse)
  const runtime = await createToken(gatehouse, {
    purpose: 'gateway_runtime',
    bindings: { gateway_id: gatewayId, team_id: teamId },
  })
  const unknown = makeSecret('token', (size) => crypto.getRandomValues(new Uint8Array(size)))
  const mistyped = active.token_value.slice(0, -1) + (active.token_value.endsWith('0') ? '1' : '0')
  return [
    ['active', of(active, null)],
    ['rotated, in its grace period', of(graced, null)],
    ['made by a rotation', of(expectAnswer(grace, 201, createdToken), null)],
    ['revoked', of(revoked, refused('revoked'))],
    ['revoked in emergency', of(emergency, refused('revoked'))],
    ['rotated', of(rotated, refused('rotated'))],
    [
      'a runtime token',
      { ...of(runtime, { status: 403, code: 'tokens.purpose_not_allowed', cause: 'purpose' }), resource: null },
    ],
    ['unknown, with a good checksum', { secret: unknown, resource: null, refusal: refused('not valid') }],
    ['with a wrong checksum', { secret: mistyped, resource: null, refusal: refused('not valid') }],
    ['none', { secret: null, resource: null, refusal: { status: 401, code: 'missing_api_key', cause: 'Bearer' } }],
  ]
}

/** Writes an expiry where both databases keep it, while nobody has them open. */
async function expireAt(id: string, instant: number): Promise<void> {
  for (const file of ['state.db', 'ledger.db']) {
    const database = await openDatabase(join(dataDirectory, file), dataDirectory)
    await database.write([{ sql: 'update tokens set expires_at = ? where id = ?', args: [instant, id] }])
    database.close()
  }
}

const described = z.object({ paths: z.record(z.string(), z.record(z.string(), z.looseObject({}))) })

async function describedRoutes() {
  const document = await eventually(async () =>
    described.parse(await (await fetch(`${gatehouse.gatewayUrl}/v1/openapi.json`)).json()),
  )
  return Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations)
      .filter(([, operation]) => operation['x-policy-stages'] !== undefined)
      .map(([method]) => ({ method: method.toUpperCase(), path }))
      // Its other methods are of a session, which a `POST` opens.
      .filter(({ method }) => path !== '/mcp' || method === 'POST'),
  )
}

interface Seen {
  status: number
  code: string | null
  text: string
}

/** JSON-RPC has a number for the code, and what HTTP says elsewhere in `data`. */
const rpcError = z.object({ error: z.object({ data: z.object({ code: z.string(), status: z.number() }) }) })

/** Google's form has the code in its details. */
const googleError = z.object({
  error: z.object({ code: z.number(), details: z.array(z.looseObject({ reason: z.string().optional() })) }),
})

async function ask({ method, path }: { method: string; path: string }, secret: string | null): Promise<Seen> {
  const makeBody = bodies[path]
  if (makeBody === undefined) throw new Error(`This test has no body for ${method} ${path}`)
  const body = makeBody(method)
  const isForm = body instanceof FormData
  const response = await fetch(gatehouse.gatewayUrl + addressOf(path), {
    method,
    headers: {
      ...(secret !== null && { authorization: `Bearer ${secret}` }),
      ...(body !== null && !isForm && { 'content-type': 'application/json' }),
      ...(path === '/mcp' && { accept: 'application/json, text/event-stream' }),
      ...(isSocket(path) && handshake),
    },
    ...(body !== null && { body: isForm ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  const rpcRefusal = rpcError.safeParse(parseOrKeep(text))
  if (rpcRefusal.success) return { ...rpcRefusal.data.error.data, text }
  const googleRefusal = googleError.safeParse(parseOrKeep(text))
  if (googleRefusal.success) {
    const { code: status, details } = googleRefusal.data.error
    return { status, code: details[0]?.reason ?? null, text }
  }
  const refusal = z.object({ error: z.object({ code: z.string() }) }).safeParse(parseOrKeep(text))
  return { status: response.status, code: refusal.success ? refusal.data.error.code : null, text }
}

/** What a good token is told of what this installation does not have: stored objects, settings, a collector. */
function missing(path: string): [number, string | null] | null {
  if (isTelemetry(path)) return [501, null]
  if (path === '/managed/settings') return [404, 'not_found']
  if (path === '/v1/responses/compact' || path === '/v1/conversations') return [501, 'stored_responses_unsupported']
  return /\{(?:response|conversation)_id\}/.test(path) ? [404, 'stored_object_not_found'] : null
}

/** Whether a WebSocket opens with this secret; what it answers by HTTP where it does not is asked by `ask`. */
async function opens(path: string, secret: string): Promise<boolean> {
  const socket = new WebSocket(gatehouse.gatewayUrl.replace('http', 'ws') + addressOf(path), {
    headers: { authorization: `Bearer ${secret}` },
  })
  const opened = await new Promise<boolean>((resolve) => {
    socket.addEventListener('open', () => resolve(true))
    socket.addEventListener('error', () => resolve(false))
  })
  socket.close()
  return opened
}

async function expectSaid(route: { method: string; path: string }, state: string, { secret, resource, refusal }: Case) {
  const name = `${state}: ${route.method} ${route.path}`
  if (refusal === null) {
    if (isSocket(route.path)) {
      expect([name, await opens(route.path, secret ?? '')]).toEqual([name, true])
      return '101'
    }
    const seen = await ask(route, secret)
    const answered = missing(route.path) ?? [200, null]
    expect([name, seen.status, seen.code]).toEqual([name, ...answered])
    return `${seen.status}`
  }
  const seen = await ask(route, secret)
  expect([name, seen.status, seen.code]).toEqual([name, refusal.status, isTelemetry(route.path) ? null : refusal.code])
  expect(seen.text).toContain(refusal.cause)
  if (resource !== null) expect(seen.text).toContain(resource)
  if (secret !== null) expect(seen.text).not.toContain(secret)
  return `${seen.status} ${seen.code}`
}

test('every route refuses a token in each state with the same resource and cause, without the secret', async () => {
  const table: Record<string, Record<string, string>> = {}
  for (const [state, each] of cases) {
    const row: Record<string, string> = {}
    for (const route of routes) row[route.path] = await expectSaid(route, state, each)
    table[state] = row
  }
  expect(routes.length).toBeGreaterThan(3)
  if (process.env.SHOW_TABLE !== undefined) console.table(table)
})

test('an expiry that passes while the gateway runs takes effect on time', async () => {
  const chat = { method: 'POST', path: '/v1/chat/completions' }
  const before = await ask(chat, dying.token_value)
  expect(before.code === null || before.code === 'tokens.expired').toBe(true)
  await until('it has expired', async () => (await ask(chat, dying.token_value)).status === 401)
  for (const route of routes) await expectSaid(route, 'expired while running', of(dying, expiredRefusal))
  const record = await api(gatehouse, `/v1/tokens/${dying.id}`)
  expect(expectAnswer(record, 200, tokenRecord).status).toBe('expired')
})

const depletion = z.looseObject({ depletion: z.object({ current_requests: z.number().nullable() }) })

test('a used-up token is refused before the provider call and listed as used up', async () => {
  const limits = { key_class: 'disposable', expires_in_seconds: 3600 }
  const once = await createToken(gatehouse, { ...limits, max_requests: 1 })
  const poor = await createToken(gatehouse, { ...limits, max_budget: 0.000001 })
  const chat = { method: 'POST', path: '/v1/chat/completions' }
  expect((await ask(chat, once.token_value)).status).toBe(200)
  const { depletion: counted } = expectAnswer(await api(gatehouse, `/v1/tokens/${once.id}`), 200, depletion)
  // An installation that counts nothing refuses nothing and says so in the record.
  if (counted.current_requests === null) return
  const cases = [
    { token: once, refusal: { status: 403, code: 'tokens.request_limit_exhausted', cause: 'request' } },
    { token: poor, refusal: { status: 402, code: 'tokens.budget_exhausted', cause: 'budget' } },
  ]
  const inference = routes.filter(({ method, path }) => method === 'POST' && path !== '/mcp')
  for (const { token, refusal } of cases) {
    for (const route of inference) {
      // Counting tokens and stored objects cost nothing, so what is left pays for them.
      const isFree = /count_?tokens$/i.test(route.path) || missing(route.path) !== null
      if (token === poor && isFree) continue
      await expectSaid(route, refusal.code, of(token, refusal))
    }
  }
  await until('it is listed as used up', async () => {
    const page = await api(gatehouse, '/v1/tokens?status=request_exhausted')
    return JSON.stringify(page.body).includes(once.id)
  })
})
