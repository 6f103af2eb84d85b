/** Whoever is answered while the gateway stops is told that its connection is over, and can read that answer. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { completion, question, startTestGateway, type TestGateway, waitUntil } from './testing/gateway.ts'

const held = Promise.withResolvers<void>()
const begun = { whole: { ...question, user: 'whole' }, stream: { ...question, user: 'stream', stream: true } }
const sse = { headers: { 'content-type': 'text/event-stream' } }
let running: TestGateway
let answers: Promise<Response>[]
let stopping: Promise<void>

beforeAll(async () => {
  const answer = (_: Request, body: string) =>
    held.promise.then(() =>
      body.includes('"stream":true') ? new Response('data: [DONE]\n\n', sse) : Response.json(completion),
    )
  running = await startTestGateway(answer, { drain_seconds: 60 })
  answers = Object.values(begun).map((body) => running.chat(body))
  await waitUntil(() => running.seen.length === answers.length)
  stopping = running.gateway.drain()
})
afterAll(async () => {
  await stopping
  await running.stop()
})

/** Sends one request on a connection that may be used again; gives what came until the other side ended it. */
async function untilClosed(head: readonly string[], body: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  let said = ''
  const socket = connect(Number(new URL(running.url).port), '127.0.0.1', () => {
    const length = head[0]?.startsWith('POST') ? [`Content-Length: ${body.length}`] : []
    socket.write(`${[...head, 'Host: localhost', ...length].join('\r\n')}\r\n\r\n${body}`)
  })
  socket.setEncoding('latin1')
  socket.on('data', (text) => {
    said += text
  })
  socket.on('end', () => resolve(said))
  socket.on('error', reject)
  return await promise.finally(() => socket.destroy())
}

const json = JSON.stringify(question)
const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
const handshake = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
]
const asked: readonly (readonly [string, string])[] = [
  ['POST /v1/chat/completions', json],
  ['POST /v1/chat/completions', json.padEnd(60_000)],
  ['GET /v1/models', ''],
  ['PUT /v1/models', ''],
  ['GET /v1/chat/completions/ws', ''],
  ['POST /mcp', ping],
  ['GET /mcp', ''],
  ['GET /readyz', ''],
  ['POST /nowhere', json],
]

test.each(asked)('%s', async (line, body) => {
  for (const authorization of [`Authorization: Bearer ${running.secret}`, 'Accept: */*']) {
    const headers = [authorization, ...(line.endsWith('/ws') ? handshake : ['Content-Type: application/json'])]
    const said = await untilClosed([`${line} HTTP/1.1`, ...headers], body)
    expect(said).toMatch(/^HTTP\/1\.1 (?:200|[45]\d\d) .*\r\nconnection: close\r\n/is)
    expect(said.endsWith('}')).toBe(true)
  }
})

test('keeps the connection of a client that is still sending until it has read the answer', async () => {
  const chunks = new ReadableStream({
    async pull(controller) {
      controller.enqueue(new TextEncoder().encode(' '))
      await held.promise
      controller.close()
    },
  })
  for (const body of [json.padEnd(1_000_000), chunks]) {
    const answer = await fetch(`${running.url}/v1/chat/completions`, { method: 'POST', body })
    expect([answer.status, answer.headers.get('connection')]).toEqual([503, null])
  }
})

test('keeps the connection of a client that does not finish a short body at once', async () => {
  const head = ['POST /v1/chat/completions HTTP/1.1', 'Host: localhost', `Content-Length: ${json.length}`]
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const socket = connect(Number(new URL(running.url).port), '127.0.0.1', () => {
    socket.write(`${head.join('\r\n')}\r\n\r\n${json.slice(0, 9)}`)
  })
  socket.setEncoding('latin1')
  socket.on('data', resolve)
  socket.on('error', reject)
  expect(await promise.finally(() => socket.destroy())).not.toMatch(/^connection:/im)
})

test('closes a keep-alive connection after a whole or streamed answer that was requested before the drain', async () => {
  held.resolve()
  for (const answer of await Promise.all(answers)) {
    expect([answer.status, answer.headers.get('connection')]).toEqual([200, 'close'])
    expect(await answer.text()).not.toBe('')
  }
  await stopping
})
