import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { eventually } from '../../../test/support/eventually.ts'
import { question, startTestGateway, type TestGateway } from '../testing/gateway.ts'
import { openSocket, type TestSocket } from '../testing/socket.ts'

let running: TestGateway
let answer: (request: Request, body: string) => Response | Promise<Response>

const chunk = (content: string) => `{"choices": [{"index": 0,  "delta": {"content": ${JSON.stringify(content)}}}]}`
const stream = (...datas: string[]) =>
  new Response(datas.map((data) => `data: ${data}\n\n`).join(''), { headers: { 'content-type': 'text/event-stream' } })

beforeEach(async () => {
  answer = () => stream(chunk('Grüße 東京'), '[DONE]')
  running = await startTestGateway((request, body) => answer(request, body), { body_limit_bytes: 4096 })
})
afterEach(() => running.stop())

const connect = (headers: Record<string, string> = {}, path = '/v1/chat/completions/ws'): Promise<TestSocket> =>
  openSocket(`${running.url.replace('http', 'ws')}${path}`, { authorization: `Bearer ${running.secret}`, ...headers })

const errorFrameOf = (text: string | undefined) => JSON.parse(text ?? '{}')

describe('an exchange over a WebSocket', () => {
  test('sends the provider’s events byte for byte, one a frame, with the end', async () => {
    const socket = await connect({ 'x-request-id': 'hand-1' })
    socket.send(JSON.stringify(question))
    expect(await socket.frames(2)).toEqual([chunk('Grüße 東京'), '[DONE]'])
    expect(running.worker.journal.outcomes()).toMatchObject([
      { request_id: 'hand-1.1', verdict: 'allow', details: { route: 'GET /v1/chat/completions/ws', stream: true } },
    ])
    socket.close()
  })

  test('forwards the frame’s own bytes with streaming on', async () => {
    const socket = await connect()
    const usage = '"stream_options":{"include_usage":true}'
    const bodies = [
      [
        `{ "model":"gpt-test",  "n": 1.0, "stream": true, ${usage}}`,
        `{ "model":"gpt-test",  "n": 1.0, "stream": true, ${usage}}`,
      ],
      [`{ "model":"gpt-test",  "n": 1.0, ${usage} }`, `{ "model":"gpt-test",  "n": 1.0, ${usage},"stream":true }`],
      [
        `{"model":"gpt-test","stream" : false,${usage},"x":"\\u00e9"}`,
        `{"model":"gpt-test","stream" : true,${usage},"x":"\\u00e9"}`,
      ],
    ] as const
    for (const [sent] of bodies) {
      socket.send(sent)
      await socket.frames(2)
    }
    expect(running.seen.map(({ body }) => body)).toEqual(bodies.map(([, expected]) => expected))
    socket.close()
  })

  test('answers 100 frames that arrive at once in order', async () => {
    answer = (_, body) => stream(JSON.stringify({ echo: JSON.parse(body).seed }), '[DONE]')
    const socket = await connect()
    for (let n = 0; n < 100; n++) socket.send(JSON.stringify({ model: 'm', seed: n }))
    const frames = await socket.frames(200)
    const numbers = frames.filter((frame) => frame !== '[DONE]').map((frame) => JSON.parse(frame).echo)
    expect(numbers).toEqual(Array.from({ length: 100 }, (_, n) => n))
    expect(new Set(running.worker.journal.outcomes().map(({ request_id }) => request_id)).size).toBe(100)
    socket.close()
  })

  test('sends the same frames wherever the provider splits them', async () => {
    const bytes = new TextEncoder().encode(`: ping\r\n\r\ndata: ${chunk('é👩‍👧')}\r\n\r\ndata: [DONE]\r\n\r\n`)
    const socket = await connect()
    for (let at = 1; at < bytes.length; at++) {
      answer = () =>
        new Response(
          new ReadableStream({
            start(controller) {
              controller.enqueue(bytes.slice(0, at))
              controller.enqueue(bytes.slice(at))
              controller.close()
            },
          }),
          { headers: { 'content-type': 'text/event-stream' } },
        )
      socket.send(JSON.stringify(question))
      expect(await socket.frames(2)).toEqual([chunk('é👩‍👧'), '[DONE]'])
    }
    socket.close()
  })

  test('ends with an error frame on a provider refusal, and the next exchange runs', async () => {
    answer = () => Response.json({ error: { message: 'slow down', type: 'rate', code: 'slow' } }, { status: 429 })
    const socket = await connect({ 'x-request-id': 'hand' })
    socket.send(JSON.stringify(question))
    expect(errorFrameOf((await socket.frames(1))[0])).toEqual({
      type: 'error',
      status: 429,
      error: { message: 'slow down', type: 'rate', code: 'slow' },
      request_id: 'hand.1',
    })
    answer = () => stream('[DONE]')
    socket.send(JSON.stringify(question))
    expect(await socket.frames(1)).toEqual(['[DONE]'])
    socket.close()
  })

  test('adds the missing end of a whole answer, as over HTTP', async () => {
    const finish = '{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}'
    answer = () => stream(chunk('all'), finish)
    const socket = await connect()
    socket.send(JSON.stringify(question))
    expect(await socket.frames(3)).toEqual([chunk('all'), finish, '[DONE]'])
    socket.send(JSON.stringify({ ...question, n: 2 }))
    const [, , last] = await socket.frames(3)
    expect(errorFrameOf(last)).toMatchObject({ status: 502, error: { code: 'upstream_provider_error' } })
    expect(running.worker.journal.outcomes()).toMatchObject([{ verdict: 'allow' }, { verdict: 'error' }])
    socket.close()
  })

  test('ends in an error frame when the provider breaks after the beginning', async () => {
    answer = () => stream(chunk('half'))
    const socket = await connect()
    socket.send(JSON.stringify(question))
    const [, last] = await socket.frames(2)
    expect(errorFrameOf(last)).toMatchObject({
      type: 'error',
      status: 502,
      error: { code: 'upstream_provider_error' },
    })
    socket.close()
  })
})

const endless = () =>
  new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode(`data: ${chunk('a')}\n\n`)) })

describe('the end of a connection', () => {
  test('in the middle of an answer aborts the provider and is recorded', async () => {
    answer = () => new Response(endless(), { headers: { 'content-type': 'text/event-stream' } })
    const socket = await connect()
    socket.send(JSON.stringify(question))
    await socket.frames(1)
    socket.close()
    await eventually(() => running.aborted() === 1 && running.worker.journal.outcomes().length === 1)
    expect(running.worker.journal.outcomes()[0]).toMatchObject({ reason_code: 'client.left' })
  })

  test('before the first byte of an answer aborts the provider too', async () => {
    answer = () => new Promise(() => undefined)
    const socket = await connect()
    socket.send(JSON.stringify(question))
    await eventually(() => running.seen.length === 1)
    socket.close()
    await eventually(() => running.aborted() === 1 && running.worker.journal.outcomes().length === 1)
  })

  test('has code 1003 for a binary frame', async () => {
    const socket = await connect()
    socket.send(new Uint8Array([1, 2, 3]))
    expect((await socket.ended).code).toBe(1003)
  })

  test('has code 1007 after an error frame for a frame that is no JSON object', async () => {
    for (const text of ['{"model":', '[1]', '"text"', 'null', '{"a":1,"a":2}', `${'['.repeat(65)}`]) {
      const socket = await connect()
      socket.send(text)
      expect(errorFrameOf((await socket.frames(1))[0])).toMatchObject({
        type: 'error',
        status: 400,
        error: { code: 'invalid_json' },
      })
      expect((await socket.ended).code).toBe(1007)
    }
    expect(running.worker.journal.outcomes()).toHaveLength(6)
    expect(running.seen).toHaveLength(0)
  })

  test('has code 1009 for a frame over the body limit', async () => {
    const socket = await connect()
    socket.send(JSON.stringify({ ...question, pad: 'x'.repeat(5000) }))
    expect((await socket.ended).code).toBe(1009)
    expect(running.seen).toHaveLength(0)
  })

  test('has code 1008 once the token is refused', async () => {
    const socket = await connect()
    socket.send(JSON.stringify(question))
    await socket.frames(2)
    for (const hash of running.worker.tokens.keys()) running.worker.revocations.add(hash)
    socket.send(JSON.stringify(question))
    const [frame] = await socket.frames(1)
    expect(errorFrameOf(frame)).toMatchObject({ type: 'error', status: 401, error: { code: 'invalid_api_token' } })
    expect((await socket.ended).code).toBe(1008)
    expect(running.seen).toHaveLength(1)
  })

  test('has code 1008 at once when the sessions of the token are ended, in the middle of an answer or idle', async () => {
    answer = () => new Response(endless(), { headers: { 'content-type': 'text/event-stream' } })
    const [busy, idle] = [await connect(), await connect()]
    busy.send(JSON.stringify(question))
    await busy.frames(1)
    running.gateway.cutTokens([...running.worker.tokens.keys()])
    for (const socket of [busy, idle]) {
      const [frame] = await socket.frames(1)
      expect(errorFrameOf(frame)).toMatchObject({ type: 'error', status: 401, error: { code: 'invalid_api_token' } })
      expect(frame).toMatch(/:token\/\S+ has been revoked/)
      expect((await socket.ended).code).toBe(1008)
    }
    await eventually(() => running.aborted() === 1)
    expect(running.worker.journal.outcomes()).toMatchObject([{ reason_code: 'token.revoked' }])
  })

  test('has code 1013 when a peer queues more than the limit', async () => {
    answer = () => new Promise(() => undefined)
    const socket = await connect()
    socket.send(JSON.stringify(question))
    await eventually(() => running.seen.length === 1)
    for (let n = 0; n < 300; n++) socket.send(JSON.stringify({ model: 'gpt-test', mark: n }))
    expect((await socket.ended).code).toBe(1013)
    expect(running.seen).toHaveLength(1)
  })

  test('has code 1001 on a shutdown, after the frame that is being answered', async () => {
    const gate = Promise.withResolvers<void>()
    answer = async () => {
      await gate.promise
      return stream(chunk('last'), '[DONE]')
    }
    const [busy, idle] = [await connect(), await connect()]
    busy.send(JSON.stringify(question))
    await eventually(() => running.seen.length === 1)
    const drained = running.gateway.drain()
    expect((await idle.ended).code).toBe(1001)
    expect((await fetch(`${running.url}/v1/chat/completions/ws`, { headers: handshake() })).status).toBe(503)
    gate.resolve()
    expect(await busy.frames(2)).toEqual([chunk('last'), '[DONE]'])
    expect((await busy.ended).code).toBe(1001)
    await drained
  })
})

const handshake = (headers: Record<string, string> = {}) => ({
  authorization: `Bearer ${running.secret}`,
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  ...headers,
})

describe('a handshake', () => {
  const open = (headers: Record<string, string>, method = 'GET') =>
    fetch(`${running.url}/v1/chat/completions/ws`, { method, headers })

  test('is refused before the upgrade when the token is refused, and recorded', async () => {
    const { authorization: _, ...without } = handshake()
    const runtime = running.worker.addToken({ purpose: 'gateway_runtime', roles: ['runtime'] })
    const cases = [
      { headers: without, status: 401, code: 'missing_api_key' },
      { headers: handshake({ authorization: 'Bearer nonsense' }), status: 401, code: 'invalid_api_token' },
      {
        headers: handshake({ authorization: `Bearer ${runtime}` }),
        status: 403,
        code: 'tokens.purpose_not_allowed',
      },
    ]
    for (const { headers, status, code } of cases) {
      const response = await open(headers)
      expect(response.status).toBe(status)
      expect(await response.json()).toMatchObject({ error: { code } })
    }
    expect(running.worker.journal.outcomes().map(({ reason_code }) => reason_code)).toEqual(
      cases.map(({ code }) => code),
    )
  })

  test('is answered 426 or 400 without valid headers, and 405 for other methods', async () => {
    const plain = await open({ authorization: `Bearer ${running.secret}` })
    expect([plain.status, plain.headers.get('upgrade')]).toEqual([426, 'websocket'])
    expect(await plain.json()).toMatchObject({ error: { code: 'upgrade_required' } })
    const old = await open(handshake({ 'sec-websocket-version': '8' }))
    expect([old.status, old.headers.get('sec-websocket-version')]).toEqual([426, '13'])
    expect((await open(handshake({ 'sec-websocket-key': 'short' }))).status).toBe(400)
    const posted = await open({}, 'POST')
    expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET'])
  })
})

test('slows the provider for a peer that does not read', async () => {
  let written = 0
  const block = `data: ${chunk('x'.repeat(60_000))}\n\n`
  answer = () =>
    new Response(
      new ReadableStream({
        async pull(controller) {
          if (written >= 1000) return controller.close()
          written += 1
          controller.enqueue(new TextEncoder().encode(block))
          await Bun.sleep(0)
        },
      }),
      { headers: { 'content-type': 'text/event-stream' } },
    )
  const socket = await connect()
  socket.pause()
  socket.send(JSON.stringify(question))
  await eventually(() => written > 10)
  let before = -1
  while (before !== written) {
    before = written
    await Bun.sleep(250)
  }
  // What stands in the buffers of four connections' ends, far from all there is.
  expect(written).toBeLessThan(900)
  socket.resume()
  await eventually(() => written > before)
  socket.close()
})
