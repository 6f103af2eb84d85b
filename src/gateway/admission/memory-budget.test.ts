import { expect, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import { eventually } from '../../../test/support/eventually.ts'
import { completion, startTestGateway } from '../testing/gateway.ts'
import { createMemoryBudget, MemoryBudget, smallBodyBytes } from './memory-budget.ts'

const mebibyte = 1024 * 1024
const budget = (waitMilliseconds = 60_000) => new MemoryBudget({ bytes: 24 * mebibyte, waitMilliseconds })

test('makes a body that does not fit wait until another is released', async () => {
  const memory = budget()
  const [first, second] = [memory.forBody(), memory.forBody()]
  expect(first.admit(3 * mebibyte)).toBeUndefined()
  const waiting = second.admit(3 * mebibyte)
  expect(waiting).toBeInstanceOf(Promise)
  expect(memory.waiting).toBe(1)
  first.release()
  await waiting
  expect(memory).toMatchObject({ waiting: 0, largeBytes: 9 * mebibyte })
  second.release()
  expect(memory.largeBytes).toBe(0)
})

test('admits bodies in order of arrival, so a shorter one does not overtake', async () => {
  const memory = budget()
  const [running, long, short] = [memory.forBody(), memory.forBody(), memory.forBody()]
  running.admit(2 * mebibyte)
  const order: string[] = []
  const longAdmitted = Promise.resolve(long.admit(4 * mebibyte)).then(() => order.push('long'))
  const shortAdmitted = Promise.resolve(short.admit(mebibyte)).then(() => order.push('short'))
  running.release()
  await longAdmitted
  long.release()
  await shortAdmitted
  expect(order).toEqual(['long', 'short'])
})

test('admits small bodies while large ones wait', async () => {
  const memory = budget()
  const running = memory.forBody()
  running.admit(4 * mebibyte)
  const waiting = memory.forBody().admit(4 * mebibyte)
  expect(waiting).toBeInstanceOf(Promise)
  expect(memory.forBody().admit(smallBodyBytes)).toBeUndefined()
  running.release()
  await waiting
})

test('admits a single body larger than the whole budget', async () => {
  const memory = budget()
  const [huge, other] = [memory.forBody(), memory.forBody()]
  expect(huge.admit(100 * mebibyte)).toBeUndefined()
  const waiting = other.admit(mebibyte)
  expect(waiting).toBeInstanceOf(Promise)
  huge.release()
  await waiting
})

test('refuses a body that waits too long with Retry-After and frees its place in the queue', async () => {
  const memory = budget(1)
  memory.forBody().admit(4 * mebibyte)
  const refused = Promise.resolve(memory.forBody().admit(mebibyte)).catch((failure: unknown) => failure)
  expect(await refused).toMatchObject({ code: 'gateway_busy', status: 503, retryAfter: 1 })
  expect(memory.waiting).toBe(0)
})

test('removes a released body from the queue', async () => {
  const memory = budget()
  const [running, gone, next] = [memory.forBody(), memory.forBody(), memory.forBody()]
  running.admit(4 * mebibyte)
  // It is never admitted and times out after the test.
  void Promise.resolve(gone.admit(4 * mebibyte)).catch(() => undefined)
  const waiting = next.admit(mebibyte)
  gone.release()
  running.release()
  await waiting
  expect(memory).toMatchObject({ waiting: 0, largeBytes: 3 * mebibyte })
})

test('keeps the memory of parsed values reserved after the body was sent', () => {
  const memory = budget()
  const body = memory.forBody()
  body.admit(2 * mebibyte)
  body.sent()
  expect(memory.largeBytes).toBe(2 * mebibyte)
})

test('counts whole bytes when a share and a length do not divide evenly', () => {
  const memory = new MemoryBudget({ bytes: 100 * mebibyte + 1 / 3, waitMilliseconds: 0 })
  const bodies = [1, 7, 100_001, 10 * mebibyte + 1].map((length) => {
    const body = memory.forBody()
    body.admit(length)
    body.sent()
    expect(Number.isInteger(memory.smallBytes) && Number.isInteger(memory.largeBytes)).toBe(true)
    return body
  })
  for (const body of bodies) body.release()
  expect([memory.smallBytes, memory.largeBytes]).toEqual([0, 0])
})

test('reads answers beyond the budget one at a time, oldest first', async () => {
  const memory = budget()
  const [first, second] = [memory.forAnswer(), memory.forAnswer()]
  expect(first.grow(mebibyte)).toBeUndefined()
  expect(second.grow(mebibyte / 2)).toBeUndefined()
  const held = second.grow(2 * mebibyte)
  expect(held).toBeInstanceOf(Promise)
  expect(first.grow(10 * mebibyte)).toBeUndefined()
  first.release()
  await held
  second.release()
  expect(memory).toMatchObject({ waiting: 0, answerBytes: 0 })
})

test('divides the configured memory among workers', () => {
  const settings = { memory_bytes: 64 * mebibyte, memory_wait_seconds: 3, gateway_workers: 4 }
  expect(createMemoryBudget(settings)).toEqual({ bytes: 16 * mebibyte, waitMilliseconds: 3000 })
  expect(createMemoryBudget({ ...settings, memory_bytes: undefined, gateway_workers: 1 }).bytes).toBeGreaterThan(0)
})

const chatBody = (bytes: number) =>
  JSON.stringify({ model: 'gpt-test', messages: [{ role: 'user', content: 'x'.repeat(bytes) }] })

test('refuses a large body unread when memory is exhausted, in the dialect of the route, and serves small ones', async () => {
  const { promise: asked, resolve: answer } = Promise.withResolvers<void>()
  const running = await startTestGateway(
    async (_, body) => {
      if (body.length > mebibyte) await asked
      return Response.json(completion)
    },
    { memory_bytes: 12 * mebibyte, memory_wait_seconds: 0 },
  )
  const held = running.chat(chatBody(2 * mebibyte - 100))
  await eventually(() => running.seen.length === 1)
  const refused = await running.chat(chatBody(mebibyte))
  expect(refused.status).toBe(503)
  expect(refused.headers.get('retry-after')).toBe('1')
  expect(await refused.json()).toMatchObject({ error: { type: 'service_unavailable', code: 'gateway_busy' } })
  const compressed = await running.chat(gzipSync(chatBody(mebibyte)), { headers: { 'content-encoding': 'gzip' } })
  expect(compressed.status).toBe(503)
  const chunked = await fetch(`${running.url}/v1/messages`, {
    method: 'POST',
    headers: { authorization: `Bearer ${running.secret}`, 'content-type': 'application/json' },
    body: new Blob([chatBody(mebibyte)]).stream(),
  })
  expect(chunked.status).toBe(503)
  expect(await chunked.json()).toMatchObject({ type: 'error', error: { type: 'api_error' } })
  expect((await running.chat(chatBody(10))).status).toBe(200)
  expect(await running.gateway.metrics().metrics()).toContain('gatehouse_memory_waiting 0\n')
  answer()
  expect((await held).status).toBe(200)
  expect(await running.gateway.metrics().metrics()).toContain('gatehouse_request_memory_bytes 0\n')
  expect((await running.chat(chatBody(mebibyte))).status).toBe(200)
  await running.stop()
})

test('forwards a large body whole with its Content-Length', async () => {
  const running = await startTestGateway(() => Response.json(completion))
  const body = chatBody(3 * mebibyte)
  expect((await running.chat(body)).status).toBe(200)
  expect(running.seen[0]?.body).toBe(body)
  expect(running.seen[0]?.request.headers.get('content-length')).toBe(String(body.length))
  await running.stop()
})

test('sends a large body again whole on a retry', async () => {
  let calls = 0
  const running = await startTestGateway(() => {
    calls += 1
    return calls === 1 ? Response.json({ error: { message: 'busy' } }, { status: 503 }) : Response.json(completion)
  })
  const body = chatBody(mebibyte)
  expect((await running.chat(body)).status).toBe(200)
  expect(running.seen.map((each) => each.body === body)).toEqual([true, true])
  await running.stop()
})
