/**
 * Walks every way an exchange can end and counts: one outcome event for each request that got as far as the gateway,
 * exactly one close for each exchange that was opened.
 */
import { expect, test } from 'bun:test'
import { connect } from 'node:net'
import { eventually } from '../../../test/support/eventually.ts'
import { completion, question, startTestGateway, type TestGateway } from '../testing/gateway.ts'

type Upstream = (request: Request, body: string) => Response | Promise<Response>

interface Path {
  name: string
  upstream: Upstream
  /** Makes the one request, and waits until it is over for the caller. */
  walk(running: TestGateway): Promise<unknown>
  reason: string
  opened: boolean
  prepare?(running: TestGateway): void
}

const never: Upstream = () => new Promise<Response>(() => undefined)
const sse = (...frames: string[]): Upstream => {
  return () =>
    new Response(
      new ReadableStream({
        start(controller) {
          for (const frame of frames) controller.enqueue(new TextEncoder().encode(frame))
          if (frames.at(-1) !== 'hang') controller.close()
        },
      }),
      { headers: { 'content-type': 'text/event-stream' } },
    )
}
const frame = 'data: {"choices":[{"delta":{"content":"x"}}]}\n\n'
const ask = (running: TestGateway) => running.chat(question).then((response) => response.text())
const stream = (running: TestGateway) => running.chat({ ...question, stream: true }).then((response) => response.text())
const leaveAfter = (body: unknown, ready: (running: TestGateway) => boolean) => async (running: TestGateway) => {
  const abort = new AbortController()
  const asked = running.chat(body, { signal: abort.signal }).then((response) => response.text())
  await eventually(() => ready(running))
  abort.abort()
  await asked.catch(() => undefined)
}
const dispatched = (running: TestGateway) => running.seen.length > 0

const paths: readonly Path[] = [
  { name: 'answered', upstream: () => Response.json(completion), walk: ask, reason: 'ok', opened: true },
  { name: 'streamed', upstream: sse(frame, 'data: [DONE]\n\n'), walk: stream, reason: 'ok', opened: true },
  { name: 'cut stream', upstream: sse(frame), walk: stream, reason: 'provider.interrupted', opened: true },
  { name: 'empty stream', upstream: sse(), walk: stream, reason: 'provider.interrupted', opened: true },
  {
    name: 'error frame',
    upstream: sse('data: {"error":{}}\n\n'),
    walk: stream,
    reason: 'provider.error',
    opened: true,
  },
  {
    name: 'error status',
    upstream: () => new Response('x', { status: 500 }),
    walk: ask,
    reason: 'provider.error',
    opened: true,
  },
  {
    name: 'garbage',
    upstream: () => new Response('<html>'),
    walk: ask,
    reason: 'provider.invalid_answer',
    opened: true,
  },
  { name: 'silent provider', upstream: never, walk: ask, reason: 'provider.timeout', opened: true },
  { name: 'silent stream', upstream: sse(frame, 'hang'), walk: stream, reason: 'provider.timeout', opened: true },
  {
    name: 'left before headers',
    upstream: never,
    walk: leaveAfter(question, dispatched),
    reason: 'client.left',
    opened: true,
  },
  {
    name: 'left in the stream',
    upstream: sse(frame, 'hang'),
    walk: leaveAfter({ ...question, stream: true }, dispatched),
    reason: 'client.left',
    opened: true,
  },
  {
    name: 'drained while waiting',
    upstream: never,
    walk: async (running) => {
      const asked = ask(running)
      await eventually(() => dispatched(running))
      await running.gateway.drain()
      await asked
    },
    reason: 'gateway.drained',
    opened: true,
  },
  {
    name: 'refused token',
    upstream: never,
    walk: (running) => running.chat(question, { secret: 'x' }),
    reason: 'invalid_api_token',
    opened: false,
  },
  {
    name: 'refused body',
    upstream: never,
    walk: (running) => running.chat('{'),
    reason: 'invalid_json',
    opened: false,
  },
  {
    name: 'outbox full at open',
    upstream: never,
    prepare: ({ worker }) => {
      worker.journal.full = { open: true }
    },
    walk: ask,
    reason: 'event_outbox_full',
    opened: false,
  },
  {
    name: 'models',
    upstream: never,
    walk: ({ url, secret }) => fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${secret}` } }),
    reason: 'ok',
    opened: false,
  },
]

for (const { name, upstream, walk, reason, opened, prepare } of paths) {
  test(`records exactly one outcome: ${name}`, async () => {
    // Elsewhere a busy machine could pass a short deadline before the provider's answer.
    const deadlines =
      reason === 'provider.timeout' ? { first_byte_timeout_seconds: 0.2, idle_timeout_seconds: 0.2 } : {}
    const running = await startTestGateway(upstream, { ...deadlines, drain_seconds: 0 })
    const { journal } = running.worker
    prepare?.(running)
    await walk(running)
    await eventually(() => journal.outcomes().length > 0)
    await running.stop()
    expect(journal.outcomes().map((event) => event.reason_code)).toEqual([reason])
    expect(journal.closeCalls).toBe(opened ? 1 : 0)
    expect([...journal.opened.keys()]).toEqual([...journal.closed.keys()])
    expect(journal.opened.size).toBe(opened ? 1 : 0)
    for (const [exchangeId, interrupted] of journal.opened) {
      expect(interrupted).toMatchObject({
        verdict: 'error',
        reason_code: 'gateway.interrupted',
        exchange_id: exchangeId,
      })
      expect(interrupted.event_id).toBe(journal.outcomes()[0]?.event_id ?? '')
    }
    const reasons = journal.attempts().map((event) => event.reason_code)
    expect([...new Set(reasons)]).toEqual(opened ? [reason] : [])
  })
}

test('answers 503 event_outbox_full when not even a refusal can be recorded', async () => {
  const running = await startTestGateway(never, { drain_seconds: 0 })
  running.worker.journal.full = { refuse: true }
  const response = await running.chat(question, { secret: 'x' })
  expect(response.status).toBe(503)
  expect(await response.json()).toMatchObject({ error: { code: 'event_outbox_full' } })
  running.worker.journal.full = { close: true }
  await running.stop()
})

test('records a client that disconnects while it sends its body', async () => {
  const running = await startTestGateway(never, { drain_seconds: 0 })
  const socket = connect(Number(new URL(running.url).port), '127.0.0.1')
  const head = `Host: x\r\nAuthorization: Bearer ${running.secret}\r\nContent-Length: 100`
  socket.write(`POST /v1/chat/completions HTTP/1.1\r\n${head}\r\n\r\n{"model"`)
  await eventually(async () => (await running.gateway.metrics().metrics()).includes('gatehouse_requests_in_flight 1\n'))
  socket.destroy()
  await eventually(() => running.worker.journal.outcomes().length > 0)
  expect(running.worker.journal.outcomes()).toMatchObject([{ verdict: 'error', reason_code: 'client.left' }])
  await running.stop()
})
