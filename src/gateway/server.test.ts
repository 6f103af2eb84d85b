/** What callers are told: who may call, what may be sent, what comes back; over HTTP, before a provider of the test. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import { completion, question, startTestGateway, type TestGateway } from './testing/gateway.ts'
import { testGatewayId, testModel, testProvider } from './testing/worker.ts'

let running: TestGateway
let answer: () => Response = () => Response.json(completion)

beforeEach(async () => {
  answer = () => Response.json(completion)
  running = await startTestGateway(() => answer(), {
    body_limit_bytes: 4096,
    answer_limit_bytes: 65_536,
    drain_seconds: 0,
  })
})
afterEach(() => running.stop())

/** The status, code and governing headers of an error answer; asserts the envelope. */
async function errorOf(response: Response) {
  const body = (await response.json()) as {
    error: { message: string; type: string; code: string; param: string | null }
    request_id: string
  }
  const { error } = body
  expect([typeof error.message, typeof error.type, typeof error.code]).toEqual(['string', 'string', 'string'])
  expect(body.request_id).toBe(response.headers.get('x-request-id') ?? '')
  expect(response.headers.get('x-service-error-source')).toBe('gateway')
  expect(response.headers.get('x-service-verdict')).toBe(response.status >= 500 ? 'ERROR' : 'DENY')
  expect(response.headers.get('x-should-retry')).toBe(response.status < 500 ? 'false' : null)
  const event = running.worker.journal.outcomes().at(-1)
  expect(event).toMatchObject({
    verdict: response.status >= 500 ? 'error' : 'deny',
    details: { status: response.status },
  })
  return { status: response.status, code: error.code, message: error.message, param: error.param }
}

const post = (headers: Record<string, string>, body: string | Uint8Array | ReadableStream = JSON.stringify(question)) =>
  fetch(`${running.url}/v1/chat/completions`, { method: 'POST', headers, body })

describe('authentication', () => {
  test('answers missing_api_key without a usable Authorization header', async () => {
    for (const headers of [{}, { authorization: 'Basic abc' }, { authorization: 'Bearer ' }]) {
      expect(await errorOf(await post(headers as Record<string, string>))).toMatchObject({
        status: 401,
        code: 'missing_api_key',
      })
    }
  })

  test('answers invalid_api_token without a lookup for a secret of another form', async () => {
    running.worker.broken = true
    const mistyped = running.secret.slice(0, -1) + (running.secret.endsWith('0') ? '1' : '0')
    for (const secret of ['sk-something', mistyped]) {
      const response = await post({ authorization: `Bearer ${secret}` })
      expect(await errorOf(response)).toMatchObject({ status: 401, code: 'invalid_api_token' })
    }
  })

  test('answers 503 when the state cannot be read, never invalid_api_token', async () => {
    running.worker.broken = true
    expect(await errorOf(await running.chat(question))).toMatchObject({ status: 503, code: 'dependency_unavailable' })
    running.worker.broken = false
    running.worker.stale = 'token_state_stale'
    expect(await errorOf(await running.chat(question))).toMatchObject({ status: 503, code: 'token_state_stale' })
  })

  test('names the cause for revoked, rotated and expired tokens and never shows them', async () => {
    const past = Date.now() - 1000
    const cases = [
      { members: { revokedAt: past }, code: 'invalid_api_token', cause: 'revoked' },
      { members: { rotatedAt: past }, code: 'invalid_api_token', cause: 'rotated' },
      { members: { expiresAt: past }, code: 'tokens.expired', cause: 'expired' },
    ]
    for (const { members, code, cause } of cases) {
      const secret = running.worker.addToken({ id: `token-${cause}`, ...members })
      const refused = await errorOf(await running.chat(question, { secret }))
      expect(refused).toMatchObject({ status: 401, code })
      expect(refused.message).toContain(`:token/token-${cause} has`)
      expect(refused.message).toContain(cause)
      expect(refused.message).not.toContain(secret)
    }
  })

  test('refuses a token with a revocation entry although its record is still active', async () => {
    for (const hash of running.worker.tokens.keys()) running.worker.revocations.add(hash)
    expect(await errorOf(await running.chat(question))).toMatchObject({ status: 401, code: 'invalid_api_token' })
  })

  test('refuses by purpose, permission and bindings, each with its own code', async () => {
    running.worker.catalog.push(
      testModel({ id: 'listed', providerId: 'provider-upstream', upstreamModel: 'listed', createdAt: 0 }),
    )
    const cases = [
      {
        members: { purpose: 'gateway_runtime' as const, roles: ['runtime' as const] },
        code: 'tokens.purpose_not_allowed',
      },
      { members: { roles: ['auditor' as const] }, code: 'permission_denied' },
      { members: { gatewayId: 'another' }, code: 'tokens.gateway_not_allowed' },
      { members: { provider: 'another' }, code: 'tokens.provider_not_allowed' },
      { members: { modelFilter: ['claude-*'] }, code: 'tokens.model_not_allowed' },
    ]
    for (const { members, code } of cases) {
      const secret = running.worker.addToken(members)
      expect(await errorOf(await running.chat(question, { secret }))).toMatchObject({ status: 403, code })
    }
    const secret = running.worker.addToken({ gatewayId: testGatewayId, provider: 'upstream', modelFilter: ['gpt-*'] })
    expect((await running.chat(question, { secret })).status).toBe(200)
    expect(running.seen.length).toBe(1)
  })

  test('does not dispatch a request whose token is revoked while the open record is written', async () => {
    const { journal, tokens, revocations } = running.worker
    const open = journal.open.bind(journal)
    journal.open = async (id, ...rest) => {
      await open(id, ...rest)
      for (const hash of tokens.keys()) revocations.add(hash)
    }
    expect(await errorOf(await running.chat(question))).toMatchObject({ status: 401, code: 'invalid_api_token' })
    expect(running.seen.length).toBe(0)
    expect(journal.closed.size).toBe(1)
  })
})

describe('request bodies', () => {
  test('refuses a body over the limit by its Content-Length, or while reading without one', async () => {
    const big = JSON.stringify({ ...question, pad: 'x'.repeat(5000) })
    const authorization = `Bearer ${running.secret}`
    expect(await errorOf(await post({ authorization }, big))).toMatchObject({ status: 413, code: 'request_too_large' })
    const chunked = new ReadableStream({
      start(controller) {
        for (let index = 0; index < 10; index++) controller.enqueue(new TextEncoder().encode('x'.repeat(1000)))
        controller.close()
      },
    })
    expect(await errorOf(await post({ authorization }, chunked))).toMatchObject({
      status: 413,
      code: 'request_too_large',
    })
  })

  test('answers invalid_json for an ambiguous object, another value or invalid UTF-8', async () => {
    const bodies = ['{"model":"a"', '[]', '"text"', '', 'null', '{"model":"a","model":"b","messages":[]}']
    for (const body of [...bodies, new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])]) {
      expect(await errorOf(await running.chat(body))).toMatchObject({ status: 400, code: 'invalid_json' })
    }
    const deep = `{"model":"a","x":${'['.repeat(64)}${']'.repeat(64)}}`
    expect(await errorOf(await running.chat(deep))).toMatchObject({ status: 400, code: 'json_too_deep' })
  })

  test('answers a field error for a missing model and not found for an unknown one', async () => {
    expect(await errorOf(await running.chat({ messages: [] }))).toMatchObject({ status: 422, param: 'model' })
    running.worker.upstreams.splice(0, 1, testProvider({ allowUnlistedModels: false }))
    expect(await errorOf(await running.chat(question))).toMatchObject({
      status: 404,
      code: 'model_not_found',
      param: 'model',
    })
  })

  test('forwards the bytes unchanged, chunked or not', async () => {
    const odd =
      '{ "model" : "gpt-test",\n "temperature": 1.0, "messages":[{"role":"user","content":"\\u00e9 é"}], "x":1e2 }'
    await running.chat(odd)
    await post(
      { authorization: `Bearer ${running.secret}` },
      new ReadableStream({
        start(controller) {
          for (const part of odd.match(/.{1,7}/gs) ?? []) controller.enqueue(new TextEncoder().encode(part))
          controller.close()
        },
      }),
    )
    expect(running.seen.map(({ body }) => body)).toEqual([odd, odd])
  })

  test('changes only the model value for an alias', async () => {
    running.worker.catalog.push(
      testModel({
        id: 'alias',
        providerId: 'provider-upstream',
        upstreamModel: 'real-model',
        createdAt: 0,
      }),
    )
    await running.chat('{"a":1.0, "model" : "alias","messages":[]}')
    expect(running.seen[0]?.body).toBe('{"a":1.0, "model" : "real-model","messages":[]}')
  })

  test('forwards only listed headers, with the provider’s own credential', async () => {
    await running.chat(question, {
      headers: {
        cookie: 'a=b',
        'x-api-key': 'mine',
        'openai-beta': 'x',
        'accept-encoding': 'gzip',
        'x-request-id': 'mine-1',
      },
    })
    const headers = running.seen[0]?.request.headers
    expect(headers?.get('authorization')).toBe('Bearer sk-operator')
    expect(headers?.get('accept-encoding')).toBe('identity')
    expect([headers?.get('cookie'), headers?.get('x-api-key')]).toEqual([null, null])
    expect([headers?.get('openai-beta'), headers?.get('x-request-id')]).toEqual(['x', null])
  })
})

describe('answers', () => {
  test('passes a JSON answer byte for byte with its length, after its outcome', async () => {
    const odd = `{ "choices":[{ }], "usage":{"prompt_tokens":5,"completion_tokens":1}, "n":1.0 }`
    answer = () =>
      new Response(odd, {
        headers: { 'content-type': 'application/json', 'set-cookie': 'a=b', 'x-should-retry': 'true' },
      })
    running.worker.journal.closeDelay = 20
    const response = await running.chat(question, { headers: { 'x-request-id': 'caller.1' } })
    expect(running.worker.journal.closed.size).toBe(1)
    expect(await response.text()).toBe(odd)
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-length': String(odd.length),
      'x-request-id': 'caller.1',
      'x-service-verdict': 'ALLOW',
    })
    expect([response.headers.get('set-cookie'), response.headers.get('x-should-retry')]).toEqual([null, null])
  })

  test('decompresses an answer once and sends no encoding', async () => {
    answer = () => new Response(gzipSync(JSON.stringify(completion)), { headers: { 'content-encoding': 'gzip' } })
    const response = await running.chat(question)
    expect(response.headers.get('content-encoding')).toBeNull()
    expect(await response.json()).toEqual(completion)
  })

  test("passes a provider's error with status and body, and sets the retry headers by its own rules", async () => {
    answer = () =>
      new Response('{"error":{"message":"slow down"}}', {
        status: 429,
        headers: { 'retry-after': '1.2', 'x-should-retry': 'true', 'content-type': 'application/json' },
      })
    const limited = await running.chat(question)
    expect([limited.status, await limited.text()]).toEqual([429, '{"error":{"message":"slow down"}}'])
    expect(limited.headers.get('retry-after')).toBe('2')
    expect(limited.headers.get('x-should-retry')).toBeNull()
    expect(limited.headers.get('x-service-error-source')).toBe('upstream')
    expect(limited.headers.get('x-service-verdict')).toBe('ERROR')
    answer = () => new Response('nope', { status: 400 })
    expect((await running.chat(question)).headers.get('x-should-retry')).toBe('false')
    expect(running.worker.journal.outcomes().map((event) => event.reason_code)).toEqual([
      'provider.error',
      'provider.error',
    ])
  })

  test('answers 502 upstream_provider_error for an unusable answer', async () => {
    const garbage: (() => Response)[] = [
      () => new Response('<html>'),
      () => new Response('{"a":'),
      () => new Response(new Uint8Array([0x22, 0xff, 0x22])),
      () => new Response('data: x\n\n', { headers: { 'content-type': 'text/event-stream' } }),
      () => new Response(null, { status: 302, headers: { location: 'http://elsewhere.example' } }),
      () => new Response(`"${'x'.repeat(70_000)}"`),
    ]
    for (const one of garbage) {
      answer = one
      const response = await running.chat(question)
      expect(await errorOf(response)).toMatchObject({ status: 502, code: 'upstream_provider_error' })
    }
    answer = () => Response.json(completion)
    expect((await running.chat({ ...question, stream: true })).status).toBe(502)
  })

  test('reads a chunked answer no further than the limit, whatever its Content-Length says', async () => {
    const [piece, most] = [Buffer.alloc(64 * 1024, 'x'), 16 * 1024 * 1024]
    let written = 0
    const write = (socket: { write(bytes: Buffer): number; end(): void }) => {
      while (written < most) {
        const taken = socket.write(piece)
        if (taken <= 0) return
        written += taken
      }
      socket.end()
    }
    const head = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 10\r\n'
    const provider = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: {
        data(socket) {
          socket.write(`${head}Transfer-Encoding: chunked\r\n\r\nfffffff\r\n`)
          write(socket)
        },
        drain: write,
      },
    })
    running.worker.upstreams[0] = testProvider({ baseUrl: `http://127.0.0.1:${provider.port}` })
    const { status, code } = await errorOf(await running.chat(question))
    provider.stop(true)
    expect([status, code]).toEqual([502, 'upstream_provider_error'])
    expect(running.worker.journal.outcomes().at(-1)).toMatchObject({ reason_code: 'provider.answer_too_large' })
    expect(written).toBeLessThan(most)
  })

  test('answers 502 provider_primary_path_error for an unreachable provider', async () => {
    running.worker.upstreams.splice(0, 1, testProvider({ baseUrl: 'http://127.0.0.1:1/v1' }))
    expect(await errorOf(await running.chat(question))).toMatchObject({
      status: 502,
      code: 'provider_primary_path_error',
    })
    expect(running.worker.journal.outcomes()[0]?.reason_code).toBe('provider.unreachable')
  })

  test('records token, model, duration and usage in the events', async () => {
    const secret = running.worker.addToken({ id: 'token-1', userId: 'user-1', eventTeamId: 'team-1' })
    await running.chat(question, { secret, headers: { 'x-request-id': 'caller-7' } })
    const [outcome] = running.worker.journal.outcomes()
    expect(outcome).toMatchObject({
      request_id: 'caller-7',
      verdict: 'allow',
      reason_code: 'ok',
      config_version: 7,
      config_id: 'change-7',
      event_attribution: {
        token_id: 'token-1',
        team_id: 'team-1',
        user_id: 'user-1',
        gateway_id: testGatewayId,
        key_class: 'durable',
      },
      details: {
        route: 'POST /v1/chat/completions',
        model: 'gpt-test',
        provider: 'upstream',
        status: 200,
        attempts: 1,
        stream: false,
      },
      event_cost_attribution: {
        estimated: false,
        input_tokens: 11,
        output_tokens: 7,
        cached_input_tokens: 3,
        reasoning_tokens: 2,
        cost: null,
      },
    })
    expect(outcome?.prompt_hash).toStartWith('key:')
    expect(running.worker.journal.attempts()[0]).toMatchObject({
      verdict: 'allow',
      exchange_id: outcome?.exchange_id,
      details: { provider: 'upstream', model: 'gpt-test', attempt: 1, status: 200 },
    })
    expect(JSON.stringify([...running.worker.journal.closed.values()])).not.toContain(secret)
  })

  test('estimates usage from the text of an answer without a usage report', async () => {
    const { usage: _, ...unmetered } = completion
    answer = () => Response.json(unmetered)
    await running.chat(question)
    expect(running.worker.journal.outcomes()[0]?.event_cost_attribution).toMatchObject({
      estimated: true,
      input_tokens: 3,
      output_tokens: 2,
    })
  })
})
