import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import { connect } from 'node:net'
import OpenAI from 'openai'
import { chatAnswer, chatStream, providerError } from '../fakes/chat.ts'
import { splitPlans } from '../fakes/splits.ts'
import { type FakeUpstream, jsonReply, silentReply, startFakeUpstream, streamReply } from '../fakes/upstream.ts'
import { createToken } from '../support/client.ts'
import { eventually, until } from '../support/eventually.ts'
import { type Gatehouse, providerKey, startGatehouse } from '../support/harness.ts'
import { eventsOfRequest, outcomesOf } from '../support/recorded.ts'

setDefaultTimeout(120_000)

let upstream: FakeUpstream
let gatehouse: Gatehouse
let token: string
let client: OpenAI

beforeAll(async () => {
  upstream = await startFakeUpstream()
  gatehouse = await startGatehouse({ upstream })
  token = (await createToken(gatehouse)).token_value
  client = new OpenAI({ apiKey: token, baseURL: `${gatehouse.gatewayUrl}/v1`, maxRetries: 0 })
}, 240_000)
beforeEach(() => upstream?.forget())
afterAll(async () => {
  await gatehouse?.stop()
  await upstream?.close()
})

const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'hello' }]
const wholeText = 'Grüße aus 東京 👩‍👩‍👧!'
const atEveryFrame = splitPlans['at every frame'] ?? (() => [])

/** Sends bytes as they are. */
const post = (body: string | Uint8Array, headers: Record<string, string> = {}) =>
  fetch(`${gatehouse.gatewayUrl}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
    body,
  })

/** Asks for usage too, so that the gateway has nothing to ask for and to take out again. */
const streamed = '{"model":"fake-model","messages":[],"stream":true,"stream_options":{"include_usage":true}}'

const bytesOf = async (answer: Response): Promise<Buffer> => Buffer.from(await answer.arrayBuffer())

test('the official client reads a whole answer', async () => {
  const answer = await client.chat.completions.create({ model: 'fake-model', messages })
  expect(answer.choices[0]?.message.content).toBe(wholeText)
  expect(answer.usage?.total_tokens).toBe(18)
})

test('the official client reads a streamed answer', async () => {
  const stream = await client.chat.completions.create({ model: 'fake-model', messages, stream: true })
  let text = ''
  for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? ''
  expect(text).toBe(wholeText)
})

test('the official client raises typed errors', async () => {
  const create = (apiKey: string, model: string) =>
    new OpenAI({ apiKey, baseURL: `${gatehouse.gatewayUrl}/v1`, maxRetries: 0 }).chat.completions
      .create({ model, messages })
      .catch((error: unknown) => error)
  expect(await create('gth_nothing', 'fake-model')).toBeInstanceOf(OpenAI.AuthenticationError)
  const narrow = await createToken(gatehouse, { bindings: { model_filter: ['simulator/*'] } })
  expect(await create(narrow.token_value, 'fake-model')).toBeInstanceOf(OpenAI.PermissionDeniedError)
  upstream.when('busy', { ...jsonReply(providerError('busy')), status: 429 })
  expect(await create(token, 'busy')).toBeInstanceOf(OpenAI.RateLimitError)
})

test('the request reaches the provider byte for byte', async () => {
  const bodies = [
    '{"model":"fake-model","messages":[{"role":"user","content":"hi"}]}',
    ' {\n\t"messages" : [ ] ,"model"\r\n:"fake-model", "x": 1.0, "big": 12345678901234567890, "e": 1E+2 }  ',
    '{"model":"fake-model","messages":[{"role":"user","content":"\\u00fc \\ud83d\\ude00 ü 😀 \\/"}],"unknown":{"a":[null]}}',
    '{"model":"fake-model","messages":[],"temperature":0.10000000000000000000001,"stream":false}',
  ]
  for (const body of bodies) {
    const answer = await post(body)
    await answer.arrayBuffer()
    expect([body, answer.status]).toEqual([body, 200])
    expect(upstream.calls.at(-1)?.body.toString()).toBe(body)
  }
})

test('the provider receives its own key and no credential of the caller', async () => {
  const answer = await post('{"model":"fake-model","messages":[]}', {
    cookie: 'session=private',
    'x-forwarded-for': '203.0.113.9',
    'x-api-key': token,
  })
  await answer.arrayBuffer()
  const call = upstream.calls.at(-1)
  expect(call?.path).toBe('/v1/chat/completions')
  expect(call?.headers.authorization).toBe(`Bearer ${providerKey}`)
  expect(call?.headers['content-type']).toBe('application/json')
  const sent = JSON.stringify(call?.headers)
  for (const own of [token, 'session=private', '203.0.113.9']) expect(sent).not.toContain(own)
})

test('a whole answer comes back byte for byte at every split', async () => {
  for (const [name, split] of Object.entries(splitPlans)) {
    for (const framing of ['length', 'chunked', 'close'] as const) {
      upstream.next({ ...jsonReply(), split, framing })
      const answer = await post('{"model":"fake-model","messages":[]}')
      const bytes = await bytesOf(answer)
      expect([name, framing, bytes.toString()]).toEqual([name, framing, chatAnswer().toString()])
    }
  }
})

test('a streamed answer comes back byte for byte at every split and with either line ending', async () => {
  for (const [name, split] of Object.entries(splitPlans)) {
    for (const lineEnding of ['\n', '\r\n'] as const) {
      const body = chatStream({ lineEnding })
      upstream.next({ ...streamReply(body), split })
      const answer = await post(streamed)
      expect(answer.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
      const bytes = await bytesOf(answer)
      expect([name, lineEnding, bytes.toString()]).toEqual([name, lineEnding, body.toString()])
    }
  }
})

test('frames are passed on as they arrive', async () => {
  upstream.next({ ...streamReply(), split: atEveryFrame, stop: { after: 3, by: 'stall' } })
  const leaving = new AbortController()
  const answer = await fetch(`${gatehouse.gatewayUrl}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: '{"model":"fake-model","messages":[],"stream":true,"stream_options":{"include_usage":true}}',
    signal: leaving.signal,
  })
  const reader = answer.body?.getReader()
  let text = ''
  while (!text.includes('Grüße')) {
    const { value, done } = (await reader?.read()) ?? { value: undefined, done: true }
    if (done) throw new Error(`The stream ended with only: ${text}`)
    text += new TextDecoder().decode(value)
  }
  expect(upstream.running()).toBe(1)
  leaving.abort()
})

test('a very long streamed answer comes back whole', async () => {
  const parts = Array.from({ length: 5000 }, (_, index) => `part ${index} ü `)
  const body = chatStream({ parts })
  upstream.next(streamReply(body))
  const answer = await post(streamed)
  expect(Bun.hash(await bytesOf(answer))).toBe(Bun.hash(body))
})

test('a large whole answer comes back whole', async () => {
  const body = chatAnswer({ parts: ['x'.repeat(8 * 1024 * 1024)] })
  upstream.next({ ...jsonReply(body), framing: 'chunked' })
  expect(Bun.hash(await bytesOf(await post('{"model":"fake-model","messages":[]}')))).toBe(Bun.hash(body))
})

test('a compressed answer is readable and has correct headers', async () => {
  const reply = jsonReply(Bun.gzipSync(new Uint8Array(chatAnswer())))
  upstream.next({ ...reply, headers: { ...reply.headers, 'content-encoding': 'gzip' } })
  const answer = await post('{"model":"fake-model","messages":[]}')
  expect((await bytesOf(answer)).toString()).toBe(chatAnswer().toString())
})

test('a client disconnect before the headers aborts the call to the provider', async () => {
  for (const stream of [false, true]) {
    upstream.next(silentReply)
    const leaving = new AbortController()
    const call = stream
      ? client.chat.completions.create({ model: 'fake-model', messages, stream }, { signal: leaving.signal })
      : client.chat.completions.create({ model: 'fake-model', messages }, { signal: leaving.signal })
    const ended = call.then(
      () => 'answered',
      (error: unknown) => error,
    )
    await until('the provider has the request', () => upstream.running() === 1)
    leaving.abort()
    expect(await ended).toBeInstanceOf(OpenAI.APIUserAbortError)
    await eventually(() => expect(upstream.calls.at(-1)?.state).toBe('cancelled before headers'))
    expect(upstream.running()).toBe(0)
  }
})

test('a client disconnect within a stream aborts the call to the provider and is recorded', async () => {
  const requestId = 'left-in-the-middle'
  upstream.next({ ...streamReply(), split: atEveryFrame, stop: { after: 3, by: 'stall' } })
  const leaving = new AbortController()
  const stream = await client.chat.completions.create(
    { model: 'fake-model', messages, stream: true },
    { signal: leaving.signal, headers: { 'x-request-id': requestId } },
  )
  for await (const chunk of stream) if (chunk.choices[0]?.delta.content) break
  leaving.abort()
  await eventually(() => expect(upstream.calls.at(-1)?.state).toBe('cancelled after headers'))
  const [outcome, ...more] = outcomesOf(await eventsOfRequest(gatehouse, requestId), requestId)
  expect(more).toEqual([])
  expect(outcome).toMatchObject({ verdict: 'error', reason_code: 'client.left' })
})

test('a client disconnect within a whole answer aborts the call to the provider', async () => {
  upstream.next({ ...jsonReply(), split: (body) => [body.length - 20], stop: { after: 1, by: 'stall' } })
  const leaving = new AbortController()
  const ended = client.chat.completions
    .create({ model: 'fake-model', messages }, { signal: leaving.signal })
    .catch((error: unknown) => error)
  await until('the provider has the request', () => upstream.running() === 1)
  await Bun.sleep(50)
  leaving.abort()
  expect(await ended).toBeInstanceOf(OpenAI.APIUserAbortError)
  await eventually(() => expect(upstream.calls.at(-1)?.state).toBe('cancelled after headers'))
})

test('the gateway holds 512 concurrent requests and leaves none running after all clients disconnect', async () => {
  upstream.when('silent', silentReply)
  const body = JSON.stringify({ model: 'silent', messages, stream: true })
  const { hostname, port, host } = new URL(gatehouse.gatewayUrl)
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${token}\r\n`
  const request = `${head}content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
  // Plain sockets: a process has a limit on its own fetches, which here must not be the test's.
  const callers = Array.from({ length: 512 }, () => {
    const socket = connect(Number(port), hostname, () => socket.write(request))
    return socket.on('error', () => socket.destroy())
  })
  try {
    await eventually(() => expect(upstream.running()).toBe(512))
  } finally {
    for (const socket of callers) socket.destroy()
  }
  await eventually(() => expect(upstream.running()).toBe(0))
})

test('the simulator echoes and streams through the official client', async () => {
  const callsBefore = upstream.calls.length
  const whole = await client.chat.completions.create({ model: 'simulator/echo', messages })
  expect(whole.choices[0]?.message.content).toContain('hello')
  expect(whole.usage?.total_tokens).toBeGreaterThan(0)
  const stream = await client.chat.completions.create({ model: 'simulator/lorem', messages, stream: true })
  let text = ''
  for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? ''
  expect(text.length).toBeGreaterThan(10)
  expect(upstream.calls.length).toBe(callsBefore)
})

test('the simulator gives the same answer to the same request', async () => {
  const ask = async () => {
    const answer = await client.chat.completions.create({ model: 'simulator/lorem', messages })
    return answer.choices[0]?.message.content
  }
  expect(await ask()).toBe(await ask())
})

test('the list of models shows what the token may use, and a slash in an id may be encoded', async () => {
  const ids = (await client.models.list()).data.map(({ id }) => id)
  expect(ids).toContain('simulator/echo')
  expect(ids).toContain('simulator/lorem')
  for (const path of ['simulator/echo', 'simulator%2Fecho']) {
    const answer = await fetch(`${gatehouse.gatewayUrl}/v1/models/${path}`, {
      headers: { authorization: `Bearer ${token}` },
    })
    expect([path, answer.status]).toEqual([path, 200])
    expect(await answer.json()).toMatchObject({ id: 'simulator/echo', object: 'model' })
  }
  const narrow = await createToken(gatehouse, { bindings: { model_filter: ['simulator/lorem'] } })
  const narrowed = new OpenAI({ apiKey: narrow.token_value, baseURL: `${gatehouse.gatewayUrl}/v1` })
  expect((await narrowed.models.list()).data.map(({ id }) => id)).toEqual(['simulator/lorem'])
})
