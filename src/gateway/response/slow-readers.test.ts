/** Who still reads an answer has what is left of the drain's time; who never reads it holds no stop up for longer. */
import { expect, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import { completion, question, startTestGateway, type TestGateway, waitUntil } from '../testing/gateway.ts'

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
  await waitUntil(() => running.worker.journal.outcomes().length === 1)
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
