/** The whole way of a call, rule by rule; long because each convention of api/README.md has its test here. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { Elysia } from 'elysia'
import { z } from 'zod'
import { emptyTestDatabases, openTestDatabases, type TestDatabases } from '../events/testing/ledger.ts'
import { Failure } from '../failure.ts'
import { anonymous, type Principal } from '../identity/principal.ts'
import type { Clock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import { createAnswerStore } from './answer-store.ts'
import { createApplication } from './application.ts'
import { conventions } from './conventions.ts'

let now = 0
const clock: Clock = { now: () => now, monotonic: () => now }
let databases: TestDatabases
let server: { fetch(request: Request): Promise<Response> | Response }
let made = 0
let making: Promise<void> = Promise.resolve()
let thrown: unknown = null
const logged: unknown[] = []
const answered: unknown[] = []
const refusals: unknown[] = []
let ledgerFails = false
const note = (fields: unknown) => void logged.push(fields)

const writer: Principal = { ...anonymous, kind: 'token', name: 'token:1', permissions: new Set(['tokens:write']) }

const things = new Elysia({ name: 'things' })
  .use(conventions)
  .post(
    '/v1/things/:id',
    async ({ body, requestId, set, status }) => {
      made += 1
      const count = made
      await making
      if (thrown !== null) throw thrown
      set.headers.etag = `"${requestId}"`
      return status(201, { name: `${body.name}`, count })
    },
    {
      access: 'tokens:write',
      params: z.object({ id: z.uuid() }),
      query: z.strictObject({ limit: z.coerce.number().int().max(100).optional() }),
      body: z.strictObject({ name: z.string(), bindings: z.strictObject({ team_id: z.string() }).optional() }),
      response: { 201: z.object({ name: z.string(), count: z.number() }) },
    },
  )
  .post(
    '/v1/secrets',
    ({ showsSecretOf }) => {
      showsSecretOf('secret-7')
      return { secret: 'once only' }
    },
    { access: 'signed-in', response: z.object({ secret: z.string() }) },
  )
  .post('/v1/lines', ({ body }) => ({ text: new TextDecoder().decode(body) }), {
    access: 'runtime:session',
    internal: true,
    bodyType: 'application/x-ndjson',
    body: z.instanceof(Uint8Array),
    response: z.object({ text: z.string() }),
  })
  .get('/v1/open', ({ principal }) => ({ kind: principal.kind }), {
    access: 'public',
    anyOrigin: true,
    response: z.object({ kind: z.string() }),
  })

const principals: Record<string, Principal> = {
  'Bearer writer': writer,
  'Bearer other': { ...writer, name: 'token:2' },
  'Bearer reader': { ...writer, name: 'token:3', permissions: new Set(['tokens:read']) },
  'Bearer worker': { ...writer, kind: 'runtime', name: 'runtime:1' },
}

beforeAll(async () => {
  databases = await openTestDatabases()
  server = createApplication({
    features: [things],
    async authenticate(request) {
      const header = request.headers.get('authorization')
      if (header === null) throw new Failure('missing_api_key')
      if (header === 'Bearer broken') throw Object.assign(new Error('disk I/O error'), { name: 'LibsqlError' })
      const principal = principals[header]
      if (principal === undefined) throw new Failure('invalid_api_token')
      return principal
    },
    answers: createAnswerStore({ ledger: databases.ledger, clock, key: new Uint8Array(32) }),
    clock,
    newId,
    log: { error: note, warn: note, info: note, debug: note },
    baseUrl: 'http://localhost:7070',
    gatewayUrl: 'http://localhost:7080',
    gatewayRoutes: async () => [],
    ready: () => ({ ok: false, reason: 'the state is still loading' }),
    metrics: async () => 'gatehouse_test 1\n',
    answered: (answer) => answered.push(answer),
    async refused(told) {
      refusals.push(told)
      if (ledgerFails) throw new Error('disk full')
    },
  })
})
afterAll(() => databases.remove())
beforeEach(async () => {
  now = Date.parse('2026-01-01T00:00:00Z')
  made = 0
  making = Promise.resolve()
  thrown = null
  logged.length = 0
  answered.length = 0
  await emptyTestDatabases(databases)
})

const thing = '/v1/things/01900000-0000-7000-8000-000000000001'

function send(path: string, options: { method?: string; body?: Body; headers?: Record<string, string> } = {}) {
  const { method = 'POST', body, headers = {} } = options
  const sent = { authorization: 'Bearer writer', 'content-type': 'application/json', ...headers }
  return server.fetch(new Request(`http://localhost${path}`, { method, headers: sent, ...(body && { body }) }))
}
type Body = string | Uint8Array<ArrayBuffer> | ReadableStream

const name = '{"name":"a"}'

async function refusal(
  response: Response,
): Promise<{ status: number; code: string; param: string | null; text: string }> {
  const text = await response.text()
  const { error, request_id } = JSON.parse(text)
  expect(request_id).toBe(response.headers.get('x-request-id'))
  return { status: response.status, code: error.code, param: error.param, text }
}

describe('every answer', () => {
  test('carries the request id that was sent, or a new one where that has another form', async () => {
    const id = async (sent: string) =>
      (await send(thing, { body: name, headers: { 'x-request-id': sent } })).headers.get('x-request-id')
    expect(await id('a.B-9:_')).toBe('a.B-9:_')
    expect(await id('has space')).toMatch(/^[0-9a-f-]{36}$/)
    expect(await id('x'.repeat(129))).toMatch(/^[0-9a-f-]{36}$/)
  })

  test('may not be cached, sniffed, framed or run', async () => {
    for (const response of [await send(thing, { body: name }), await send('/nowhere', { method: 'GET' })]) {
      expect(response.headers.get('cache-control')).toBe('no-store')
      expect(response.headers.get('x-content-type-options')).toBe('nosniff')
      expect(response.headers.get('referrer-policy')).toBe('no-referrer')
      expect(response.headers.get('content-security-policy')).toContain("default-src 'none'")
    }
  })

  test('is reported with its route pattern, never with its address', async () => {
    await send(thing, { body: name })
    await send('/v1/unknown/01900000', { body: name })
    expect(answered).toMatchObject([
      { method: 'POST', path: '/v1/things/{id}', status: 201 },
      { method: 'POST', path: null, status: 404 },
    ])
  })
})

describe('who may call', () => {
  /** RFC 9728 section 5.1 */
  const learnMore = 'resource_metadata="http://localhost:7070/.well-known/oauth-protected-resource"'

  test('answers a missing, a wrong and an insufficient credential differently', async () => {
    const missing = await server.fetch(new Request(`http://localhost${thing}`, { method: 'POST' }))
    expect(missing.headers.get('www-authenticate')).toBe(`Bearer ${learnMore}`)
    expect(await refusal(missing)).toMatchObject({ status: 401, code: 'missing_api_key' })
    const wrong = await send(thing, { body: name, headers: { authorization: 'Bearer wrong' } })
    expect(wrong.headers.get('www-authenticate')).toBe(`Bearer error="invalid_token", ${learnMore}`)
    expect(await refusal(wrong)).toMatchObject({ status: 401, code: 'invalid_api_token' })
    const reader = await send(thing, { body: name, headers: { authorization: 'Bearer reader' } })
    const refused = await refusal(reader)
    expect(refused).toMatchObject({ status: 403, code: 'permission_denied' })
    expect(refused.text).toContain('tokens:write')
  })

  test('is decided before the body is looked at', async () => {
    const response = await send(thing, { body: '{', headers: { authorization: 'Bearer reader' } })
    expect(response.status).toBe(403)
  })

  test('a route between our own processes takes their sessions only', async () => {
    const lines = { 'content-type': 'application/x-ndjson' }
    expect((await send('/v1/lines', { body: 'a\nb', headers: lines })).status).toBe(403)
    const taken = await send('/v1/lines', { body: 'a\nb', headers: { ...lines, authorization: 'Bearer worker' } })
    expect(await taken.json()).toEqual({ text: 'a\nb' })
  })

  test('a public route needs no credential', async () => {
    const response = await send('/v1/open', { method: 'GET', headers: { authorization: 'Bearer broken' } })
    expect(await response.json()).toEqual({ kind: 'anonymous' })
  })

  test('a database that fails while authenticating is 503, never 401', async () => {
    const response = await send(thing, { body: name, headers: { authorization: 'Bearer broken' } })
    expect(await refusal(response)).toMatchObject({ status: 503, code: 'dependency_unavailable' })
    expect(response.headers.get('x-should-retry')).toBeNull()
  })
})

describe('a body', () => {
  const deep = `{"name":${'['.repeat(64)}${']'.repeat(64)}}`
  const chunked = (size: number) =>
    new ReadableStream({
      pull(controller) {
        for (let sent = 0; sent < size; sent += 65_536) controller.enqueue(new Uint8Array(65_536))
        controller.close()
      },
    })
  const cases: [string, Body, Record<string, string>, number, string, string | null][] = [
    ['of another type', name, { 'content-type': 'text/plain' }, 415, 'unsupported_media_type', null],
    [
      'in another charset',
      name,
      { 'content-type': 'application/json; charset=latin1' },
      415,
      'unsupported_media_type',
      null,
    ],
    ['that is cut off', '{"name":', {}, 400, 'invalid_json', null],
    ['that gives a member twice', '{"name":"a","name":"b"}', {}, 400, 'invalid_json', 'name'],
    ['that spells the second one otherwise', '{"name":"a","n\\u0061me":"b"}', {}, 400, 'invalid_json', 'name'],
    [
      'that gives an inner member twice',
      '{"name":"a","bindings":{"team_id":"a","team_id":"b"}}',
      {},
      400,
      'invalid_json',
      'bindings.team_id',
    ],
    ['that is no object', '["name"]', {}, 400, 'invalid_json', null],
    ['that is not UTF-8', Uint8Array.from(Buffer.from('{"name":"\xff"}', 'latin1')), {}, 400, 'invalid_json', null],
    ['nested too deep', deep, {}, 400, 'json_too_deep', null],
    ['above 10 MiB', ' '.repeat(10 * 1024 * 1024 + 1), {}, 413, 'request_too_large', null],
    ['above 10 MiB in chunks', chunked(11 * 1024 * 1024), {}, 413, 'request_too_large', null],
    ['without a field', '{}', {}, 422, 'invalid_parameter', 'name'],
    [
      'with a field of another type',
      '{"name":"n","bindings":{"team_id":9}}',
      {},
      422,
      'invalid_parameter',
      'bindings.team_id',
    ],
    ['with an unknown field', '{"name":"n","nmae":"hidden"}', {}, 422, 'unknown_parameter', 'nmae'],
    [
      'with an unknown field within',
      '{"name":"n","bindings":{"team_id":"t","x":"hidden"}}',
      {},
      422,
      'unknown_parameter',
      'bindings.x',
    ],
  ]
  test.each(cases)('%s is refused', async (_what, body, headers, status, code, param) => {
    const response = await send(thing, { body, headers })
    expect(response.headers.get('x-should-retry')).toBe('false')
    const refused = await refusal(response)
    expect(refused).toMatchObject({ status, code, param })
    expect(refused.text).not.toContain('hidden')
    expect(made).toBe(0)
  })

  test('may be a megabyte of brackets inside a string', async () => {
    expect((await send(thing, { body: JSON.stringify({ name: '[{"'.repeat(300_000) }) })).status).toBe(201)
  })

  test('is not needed if the route has no body', async () => {
    expect((await send('/v1/secrets')).status).toBe(200)
  })
})

describe('an address', () => {
  test('that is not served is 404, an unknown id too', async () => {
    expect(await refusal(await send('/v1/nothing', { body: name }))).toMatchObject({ status: 404, code: 'not_found' })
    expect(await refusal(await send('/v1/things/one', { body: name }))).toMatchObject({
      status: 404,
      code: 'not_found',
    })
    expect((await send(`${thing}/`, { body: name })).status).toBe(404)
  })

  test('answers 405 with the allowed methods if the path has other methods', async () => {
    const response = await send(thing, { method: 'GET' })
    expect(response.headers.get('allow')).toBe('POST')
    expect(await refusal(response)).toMatchObject({ status: 405, code: 'method_not_allowed' })
  })

  test('refuses a JSON body that is not an object', async () => {
    for (const body of ['[]', '"name"', '5', 'null']) {
      const { text } = await refusal(await send(thing, { body }))
      expect(text).toContain('JSON, but not an object')
    }
    expect((await refusal(await send(thing, { body: '{' }))).text).toContain('not valid JSON')
  })

  test('with two hosts is 400', async () => {
    const response = await send(thing, { body: name, headers: { host: 'a, b' } })
    expect(await refusal(response)).toMatchObject({ status: 400, code: 'bad_request' })
  })

  test('with an unknown or wrong query is 422', async () => {
    expect(await refusal(await send(`${thing}?limt=1`, { body: name }))).toMatchObject({ status: 422, param: 'limt' })
    expect(await refusal(await send(`${thing}?limit=101`, { body: name }))).toMatchObject({
      status: 422,
      param: 'limit',
    })
  })
})

describe('an internal error', () => {
  test('answers 500 without details and logs the error with the request id', async () => {
    thrown = new Error('the secret detail')
    const response = await send(thing, { body: '{"name":"the body"}', headers: { 'x-request-id': 'r-1' } })
    const refused = await refusal(response)
    expect(refused).toMatchObject({ status: 500, code: 'internal' })
    expect(refused.text).not.toContain('secret')
    expect(logged).toMatchObject([{ request_id: 'r-1', stack: expect.stringContaining('the secret detail') }])
    expect(JSON.stringify(logged)).not.toContain('the body')
  })

  test('is 503 where a database failed, and 500 where we broke its constraint', async () => {
    const failed = (message: string) => Object.assign(new Error(message), { name: 'LibsqlError' })
    thrown = new Error('Failed query, params: hidden', { cause: failed('SQLITE_IOERR: disk I/O error') })
    expect((await send(thing, { body: name })).status).toBe(503)
    expect(JSON.stringify(logged)).not.toContain('hidden')
    thrown = failed('SQLITE_CONSTRAINT: UNIQUE constraint failed: things.name')
    expect((await send(thing, { body: name })).status).toBe(500)
  })

  test('says when to try again', async () => {
    thrown = new Failure('dependency_unavailable', { retryAfter: 3 })
    expect((await send(thing, { body: name })).headers.get('retry-after')).toBe('3')
  })
})

describe('Idempotency-Key', () => {
  const repeat = (key: string, body = name, headers: Record<string, string> = {}) =>
    send(thing, { body, headers: { 'idempotency-key': key, ...headers } })

  test('gives the first answer again for 24 hours, then runs again', async () => {
    const first = await repeat('k')
    const second = await repeat('k')
    expect(second.status).toBe(201)
    expect(second.headers.get('etag')).toBe(first.headers.get('etag'))
    expect(second.headers.get('idempotency-replayed')).toBe('true')
    expect(await second.json()).toEqual(await first.json())
    expect(made).toBe(1)
    now += 24 * 60 * 60 * 1000 + 1
    expect(await (await repeat('k')).json()).toEqual({ name: 'a', count: 2 })
  })

  test('with another body or address is refused', async () => {
    await repeat('k')
    expect(await refusal(await repeat('k', '{"name":"b"}'))).toMatchObject({
      status: 422,
      code: 'idempotency_key_reused',
    })
    const elsewhere = await send(thing.replace(/1$/, '2'), { body: name, headers: { 'idempotency-key': 'k' } })
    expect(await refusal(elsewhere)).toMatchObject({ status: 422, code: 'idempotency_key_reused' })
  })

  test('belongs to who sent it', async () => {
    await repeat('k')
    await repeat('k', name, { authorization: 'Bearer other' })
    expect(made).toBe(2)
  })

  test('in use by a request that still runs is 409, and runs once', async () => {
    const gate = Promise.withResolvers<void>()
    making = gate.promise
    const first = repeat('k')
    await Bun.sleep(1)
    expect(await refusal(await repeat('k'))).toMatchObject({ status: 409, code: 'idempotency_in_flight' })
    gate.resolve()
    expect((await first).status).toBe(201)
    expect(made).toBe(1)
  })

  test('of an answer with a secret is 409 with the id and without the secret', async () => {
    const again = () => send('/v1/secrets', { headers: { 'idempotency-key': 's' } })
    expect(await (await again()).json()).toEqual({ secret: 'once only' })
    const second = await again()
    const text = await second.text()
    expect(second.status).toBe(409)
    expect(JSON.parse(text).error).toMatchObject({ code: 'idempotency_key_used', id: 'secret-7' })
    expect(text).not.toContain('once only')
    expect(JSON.stringify(await databases.ledger.read('select * from idempotency_keys'))).not.toContain('once only')
  })

  test('of a request that failed may be used again', async () => {
    thrown = new Failure('conflict')
    expect((await repeat('k')).status).toBe(409)
    thrown = null
    expect((await repeat('k')).status).toBe(201)
  })

  test('left behind by a process that died is free again after a minute, for the same request only', async () => {
    const gate = Promise.withResolvers<void>()
    making = gate.promise
    const dead = repeat('k')
    await Bun.sleep(1)
    now += 60_000
    making = Promise.resolve()
    expect((await repeat('k', '{"name":"b"}')).status).toBe(422)
    expect(await (await repeat('k')).json()).toEqual({ name: 'a', count: 2 })
    gate.resolve()
    await dead
    expect(await (await repeat('k')).json()).toEqual({ name: 'a', count: 2 })
  })

  test('has a bounded form', async () => {
    expect(await refusal(await repeat('x'.repeat(256)))).toMatchObject({ status: 422, param: 'Idempotency-Key' })
  })
})

describe('health', () => {
  const read = async (path: string) => {
    const response = await send(path, { method: 'GET' })
    return { status: response.status, text: await response.text() }
  }
  test('/healthz says that the process is alive, and its version', async () => {
    expect(await read('/healthz')).toEqual({ status: 200, text: '{"status":"ok","version":"0.2.0"}' })
  })
  test('/readyz says whether it can answer, and what is missing', async () => {
    expect(await read('/readyz')).toEqual({
      status: 503,
      text: '{"status":"unready","reason":"the state is still loading"}',
    })
  })
  test('/metrics returns the metrics', async () => {
    expect(await read('/metrics')).toEqual({ status: 200, text: 'gatehouse_test 1\n' })
  })
})

test('records a change refused for a missing permission, not a read, and refuses it even if it cannot be recorded', async () => {
  refusals.length = 0
  const asReader = (id: string) =>
    send(thing, { body: name, headers: { authorization: 'Bearer reader', 'x-request-id': id } })
  expect((await asReader('one')).status).toBe(403)
  expect(refusals).toMatchObject([
    { requestId: 'one', route: 'POST /v1/things/{id}', permission: 'tokens:write', principal: { name: 'token:3' } },
  ])
  ledgerFails = true
  expect((await asReader('two')).status).toBe(403)
  ledgerFails = false
})

test('pages of any origin read the answers of a route that is for them, refusals too, and of no other', async () => {
  const ask = async (path: string, method: string) => {
    const answer = await server.fetch(new Request(`http://localhost${path}`, { method }))
    return [answer.status, answer.headers.get('access-control-allow-origin')]
  }
  expect(await ask('/v1/open', 'GET')).toEqual([200, '*'])
  expect(await ask('/v1/open', 'OPTIONS')).toEqual([204, '*'])
  expect(await ask('/v1/open?unknown=1', 'POST')).toEqual([405, null])
  expect(await ask('/v1/secrets', 'OPTIONS')).toEqual([405, null])
  expect(await ask('/v1/secrets', 'POST')).toEqual([401, null])
  expect(await ask('/v1/nothing', 'OPTIONS')).toEqual([404, null])
})
