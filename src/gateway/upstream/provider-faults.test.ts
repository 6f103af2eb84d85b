/** Providers that answer what no client could use, or what no caller may see. */
import { afterEach, expect, test } from 'bun:test'
import { createServer, type Server } from 'node:net'
import { completion, question, startTestGateway, type TestGateway } from '../testing/gateway.ts'
import { testProvider } from '../testing/worker.ts'

let running: TestGateway | null = null
let raw: Server | null = null
afterEach(async () => {
  await running?.stop()
  raw?.close()
  running = raw = null
})

/** A gateway in front of a provider that writes these pieces to each connection, with a pause after each. */
async function before(pieces: readonly string[], pauseMilliseconds = 0, settings = {}): Promise<TestGateway> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', async () => {
      for (const piece of pieces) {
        socket.write(piece)
        await Bun.sleep(pauseMilliseconds)
      }
      socket.end()
    })
  })
  raw = server
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : null
  running = await startTestGateway(() => Response.json(completion), { path_retries: 0, ...settings })
  running.worker.upstreams[0] = testProvider({ baseUrl: `http://127.0.0.1:${port}` })
  return running
}

const outcomeOf = (gateway: TestGateway) => {
  const [outcome] = gateway.worker.journal.outcomes()
  return { verdict: outcome?.verdict, reason: outcome?.reason_code }
}

test.each([600, 999])('answers 502 upstream_provider_error for the provider status %d', async (status) => {
  const gateway = await before([
    `HTTP/1.1 ${status} Odd\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`,
  ])
  const answer = await gateway.chat(question)
  expect(answer.status).toBe(502)
  expect(await answer.json()).toMatchObject({ error: { type: 'server_error', code: 'upstream_provider_error' } })
  expect(outcomeOf(gateway)).toEqual({ verdict: 'error', reason: 'provider.invalid_answer' })
})

test('accepts a slow JSON answer with a length as long as bytes arrive', async () => {
  const body = JSON.stringify(completion)
  const pieces = body.match(/.{1,40}/gs) ?? []
  const head = `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`
  const gateway = await before([head, ...pieces], 100, { idle_timeout_seconds: 0.5 })
  expect(pieces.length).toBeGreaterThan(8)
  const answer = await gateway.chat(question)
  expect(answer.status).toBe(200)
  expect(await answer.text()).toBe(body)
})

test('cuts a JSON answer with a length after the idle timeout', async () => {
  const head = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{'
  const gateway = await before([head], 5000, { idle_timeout_seconds: 0.2 })
  expect((await gateway.chat(question)).status).toBe(502)
  expect(outcomeOf(gateway).reason).toBe('provider.timeout')
})

const paths = {
  chat: '/v1/chat/completions',
  completions: '/v1/completions',
  messages: '/v1/messages',
  responses: '/v1/responses',
  embeddings: '/v1/embeddings',
  moderations: '/v1/moderations',
}
const families = Object.keys(paths) as (keyof typeof paths)[]

test.each(families)(
  'answers 502 upstream_provider_error and records an error for an invalid answer of %s',
  async (family) => {
    const bodies = [
      '[]',
      'null',
      '{}',
      '"text"',
      '1',
      '{"choices":null}',
      '{"id":"x"}',
      '{"text":"x"}',
      '{"choices":[]}',
    ]
    for (const member of ['choices', 'data', 'results', 'content', 'output']) {
      bodies.push(`{"${member}":[null]}`, `{"${member}":"x"}`, `{"${member}":["x"]}`)
    }
    for (const body of bodies) {
      const gateway = await startTestGateway(
        () => new Response(body, { headers: { 'content-type': 'application/json' } }),
        { path_retries: 0 },
      )
      if (family === 'messages')
        gateway.worker.upstreams[0] = testProvider({ ...gateway.worker.upstreams[0], kind: 'anthropic' })
      const answer = await fetch(gateway.url + paths[family], {
        method: 'POST',
        headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
        body: JSON.stringify({ ...question, max_tokens: 5, prompt: 'p', input: 'i' }),
      })
      expect([family, body, answer.status]).toEqual([family, body, 502])
      expect(JSON.stringify(await answer.json())).toMatch(/upstream_(?:provider_)?error|could not be used/)
      expect(outcomeOf(gateway).verdict).toBe('error')
      await gateway.stop()
    }
  },
)

const apiKey = 'sk-proj-Ab3dEf6hIj9lMn2pQr5tUv8x'
const echoes = [
  apiKey,
  'sk-proj-********************Uv8x',
  'sk-proj-Ab3d...Uv8x',
  'sk-proj-Ab3dEf6',
  encodeURIComponent(apiKey),
]

test.each(echoes)('removes the provider key from an error that repeats it as %s', async (echo) => {
  for (const status of [400, 401, 500]) {
    const gateway = await startTestGateway(
      () =>
        Response.json(
          { error: { message: `Incorrect API key provided: ${echo}.`, type: 'invalid_request_error' } },
          { status, headers: { 'openai-version': `of ${apiKey}` } },
        ),
      { path_retries: 0 },
    )
    gateway.worker.upstreams[0] = testProvider({ ...gateway.worker.upstreams[0], apiKey })
    const answer = await gateway.chat(question)
    expect(answer.status).toBe(status)
    expect(answer.headers.get('openai-version')).toBe('of [PROVIDER_KEY]')
    const text = await answer.text()
    expect(text).toContain('Incorrect API key provided: [PROVIDER_KEY]')
    expect(text).not.toContain('Ab3d')
    expect(JSON.stringify(gateway.worker.journal.outcomes())).not.toContain('Ab3d')
    await gateway.stop()
  }
})

test('removes the provider key from an error within a stream', async () => {
  const frames = [
    { id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content: 'Hello' } }] },
    { error: { message: `Key ${apiKey} is spent`, type: 'server_error', code: 'x' } },
  ]
  const text = frames.map((each) => `data: ${JSON.stringify(each)}\n\n`).join('')
  for (const sent of [text, text.slice(text.indexOf('data: {"error"'))]) {
    const gateway = await startTestGateway(
      () => new Response(sent, { headers: { 'content-type': 'text/event-stream' } }),
      { path_retries: 0 },
    )
    gateway.worker.upstreams[0] = testProvider({ ...gateway.worker.upstreams[0], apiKey })
    const said = await (await gateway.chat({ ...question, stream: true })).text()
    expect(said).toContain('Key [PROVIDER_KEY] is spent')
    expect(said).not.toContain(apiKey)
    await gateway.stop()
  }
})

/** The key as JSON may write it: its first character as an escape, and all of them. */
const escapedKeys = [
  `\\u0073${apiKey.slice(1)}`,
  [...apiKey].map((each) => `\\u00${each.charCodeAt(0).toString(16).toUpperCase()}`).join(''),
]

test.each(['chat', 'responses', 'embeddings'] as const)(
  'removes an escaped provider key from a JSON error of %s',
  async (family) => {
    for (const key of escapedKeys) {
      const gateway = await startTestGateway(
        () =>
          new Response(`{"error":{"message":"Key ${key} \\"x\\"","code":"c"}}`, {
            status: 401,
            headers: { 'content-type': 'application/json' },
          }),
        { path_retries: 0 },
      )
      gateway.worker.upstreams[0] = testProvider({ ...gateway.worker.upstreams[0], apiKey })
      const answer = await fetch(gateway.url + paths[family], {
        method: 'POST',
        headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
        body: JSON.stringify({ ...question, input: 'i' }),
      })
      expect(await answer.json()).toMatchObject({ error: { message: 'Key [PROVIDER_KEY] "x"' } })
      await gateway.stop()
    }
  },
)

const first = {
  chat: 'data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"Hello"}}]}\n\n',
  responses: 'event: response.created\ndata: {"type":"response.created","response":{"id":"r","object":"response"}}\n\n',
}

test.each(['chat', 'responses'] as const)('removes the provider key from a stream event of %s', async (family) => {
  const answers = [
    `event: error\ndata: Incorrect key ${apiKey}\n\n`,
    'event: error\ndata: Incorrect key sk-proj-********************Uv8x\n\n',
    `event: error\ndata: {"note":"${escapedKeys[0]}"}\n\n`,
    `data: Incorrect key ${apiKey}\n\n`,
    `: Incorrect key ${apiKey}\n\ndata: x\n\n`,
  ]
  for (const each of answers) {
    const sent = first[family] + each
    const gateway = await startTestGateway(
      () => new Response(sent, { headers: { 'content-type': 'text/event-stream' } }),
      { path_retries: 0 },
    )
    gateway.worker.upstreams[0] = testProvider({ ...gateway.worker.upstreams[0], apiKey })
    const answer = await fetch(gateway.url + paths[family], {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ ...question, input: 'i', stream: true }),
    })
    const said = await answer.text()
    expect(said).toContain('[PROVIDER_KEY]')
    expect(said).not.toMatch(/Uv8x|Ab3d/)
    await gateway.stop()
  }
})

test('passes model text that only resembles a shortened key', async () => {
  const chunk = {
    id: 'c',
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta: { content: 'Set sk-proj-...' } }],
  }
  const sent = `data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`
  const gateway = await startTestGateway(() => new Response(sent, { headers: { 'content-type': 'text/event-stream' } }))
  gateway.worker.upstreams[0] = testProvider({ ...gateway.worker.upstreams[0], apiKey })
  expect(await (await gateway.chat({ ...question, stream: true })).text()).toBe(sent)
  await gateway.stop()
})
