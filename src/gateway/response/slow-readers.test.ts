/** Who still reads an answer has what is left of the drain's time; who never reads it holds no stop up for longer. */
import { expect, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import { eventually } from '../../../test/support/eventually.ts'
import { completion, question, startTestGateway, type TestGateway } from '../testing/gateway.ts'

/** More than two systems keep of a connection that is not read. */
const long = 'x'.repeat(16 * 1024 * 1024)

async function answeredUnread(drainSeconds: number): Promise<{ running: TestGateway; socket: Socket }> {
  const answer = { ...completion, padding: long }
  const running = await startTestGateway(() => Response.json(answer), { drain_seconds: drainSeconds })
  const { hostname, port } = new URL(running.url)
  const body = JSON.stringify(question)
  const socket = connect(Number(port), hostname).pause()
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${running.secret}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
  await eventually(() => running.worker.journal.outcomes().length === 1)
  return { running, socket }
}

test('waits in a drain for an answer that is read slowly', async () => {
  const { running, socket } = await answeredUnread(60)
  let stopped = false
  const stopping = running.gateway.drain().then(() => {
    stopped = true
  })
  await Bun.sleep(700)
  expect(stopped).toBe(false)
  let received = ''
  for await (const bytes of socket) {
    received += bytes
    if (received.endsWith(`${long}"}`)) break
  }
  await stopping
  await running.stop()
})

test('does not wait longer than the drain timeout for an answer that nobody reads', async () => {
  const { running, socket } = await answeredUnread(1)
  await running.gateway.drain()
  socket.destroy()
  await running.stop()
})

const largeFrame = `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta: { content: 'x'.repeat(64 * 1024) } }] })}\n\n`

/** A stream without end to a client that does not read, once the provider waits too. */
async function streamedUnread() {
  let sent = 0
  const stream = () =>
    new ReadableStream({
      pull(controller) {
        sent += 1
        controller.enqueue(Buffer.from(largeFrame))
      },
    })
  const running = await startTestGateway(
    () => new Response(stream(), { headers: { 'content-type': 'text/event-stream' } }),
  )
  const { hostname, port } = new URL(running.url)
  const body = JSON.stringify({ ...question, stream: true })
  const socket = connect(Number(port), hostname).pause()
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${running.secret}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
  let before = 0
  await eventually(async () => {
    before = sent
    await Bun.sleep(200)
    expect(sent).toBeGreaterThan(0)
    expect(sent).toBe(before)
  })
  return { running, socket, sent: () => sent }
}

test('reads no more of a stream than its client, and goes on when the client does', async () => {
  const { running, socket, sent } = await streamedUnread()
  const before = sent()
  expect(before * largeFrame.length).toBeLessThan(64 * 1024 * 1024)
  let received = 0
  for await (const bytes of socket) {
    received += bytes.length
    if (received > (before + 100) * largeFrame.length) break
  }
  expect(sent()).toBeGreaterThan(before)
  await eventually(() =>
    expect(running.worker.journal.outcomes().map(({ reason_code }) => reason_code)).toEqual(['client.left']),
  )
  await running.stop()
})

test('ends the stream of a slow client when its token is revoked, after the outcome', async () => {
  const { running, socket } = await streamedUnread()
  const { journal } = running.worker
  const close = journal.close.bind(journal)
  journal.close = async (...outcome) => {
    await Bun.sleep(300)
    await close(...outcome)
  }
  running.gateway.cutTokens([new Bun.CryptoHasher('sha256').update(running.secret).digest('hex')])
  let received = ''
  for await (const bytes of socket) {
    received = (received + bytes).slice(-1024)
    if (received.includes('[DONE]')) break
  }
  expect(received).toContain('"error"')
  expect(journal.outcomes().map(({ reason_code }) => reason_code)).toEqual(['token.revoked'])
  await running.stop()
})
