/** Requests of a session that another worker has. */
import { expect, test } from 'bun:test'
import { mcp } from '../../languages/mcp/dialect.ts'
import { testListener } from '../testing/gateway.ts'
import { prepareExchange } from '../testing/relay.ts'
import { forwardToOwner } from './other-worker.ts'
import type { ForwardedRequest } from './sibling-workers.ts'

/** Asks a gateway beside which another worker answers so. */
async function asking(method: string, answer: (request: ForwardedRequest) => Promise<Response>, signal?: AbortSignal) {
  const { gateway } = await prepareExchange(mcp, { stream: false })
  Object.assign(gateway.mcp, { siblings: { sessionPrefix: '0.a.', ownerOf: () => answer } })
  const { limits, listener: connection } = testListener()
  const headers = { 'mcp-session-id': '1.b.c' }
  const body = method === 'POST' ? { body: 'asked' } : {}
  const request = new Request('http://localhost/mcp', { method, headers, ...body, ...(signal && { signal }) })
  const asked = { request, connection, memory: gateway.memory.forBody(), requestId: 'r' }
  const here = async (request: Request) => new Response(`answered ${request.method} here: ${await request.text()}`)
  const answering = forwardToOwner(gateway, asked, here) ?? Promise.reject(new Error())
  return { limits, answering, running: gateway.running }
}

const methods = ['GET', 'POST', 'DELETE']

test.each(methods)('suspends the idle timeout while %s waits for another worker', async (method) => {
  const { limits, answering } = await asking(method, async ({ body }) => new Response(body))
  expect(await (await answering).text()).toBe(method === 'POST' ? 'asked' : '')
  expect(limits).toEqual([0, 120])
})

/** A stream that says one word and ends when it is told. */
function openStream() {
  const { promise, resolve } = Promise.withResolvers<ReadableStreamDefaultController<Uint8Array>>()
  const readable = new ReadableStream<Uint8Array>({ start: resolve })
  const said = promise.then((controller) => {
    controller.enqueue(new TextEncoder().encode('said'))
    return controller
  })
  const end = async () => (await said).close()
  const breakOff = async () => (await said).error(new Error('It broke off'))
  return { readable, end, breakOff }
}

test('waits in a drain for a whole forwarded answer, but not for a listening stream', async () => {
  const stream = openStream()
  const { limits, answering, running } = await asking('POST', async () => new Response(stream.readable))
  const answer = await answering
  expect(limits).toEqual([0])
  let isOver = false
  const drained = running.drain(60_000).then(() => {
    isOver = true
  })
  await Bun.sleep(0)
  expect(isOver).toBe(false)
  void stream.end()
  expect(await answer.text()).toBe('said')
  await drained
  const listening = await asking('GET', async () => new Response(openStream().readable))
  await listening.answering
  await listening.running.drain(60_000)
})

test('does not wait in a drain for an answer whose worker or client is gone or that has no body', async () => {
  const gone = await asking('POST', () => Promise.reject(new Error('It has ended')))
  expect(await gone.answering.catch(({ status }) => status)).toBe(404)
  await gone.running.drain(60_000)
  const empty = await asking('POST', async () => new Response(null, { status: 202 }))
  await empty.answering
  await empty.running.drain(60_000)
  const broken = openStream()
  const cutShort = await asking('POST', async () => new Response(broken.readable))
  const reading = (await cutShort.answering).text()
  await broken.breakOff()
  expect(await reading.catch(() => 'broken off')).toBe('broken off')
  await cutShort.running.drain(60_000)
  const left = await asking('POST', async () => new Response(openStream().readable))
  await (await left.answering).body?.cancel()
  await left.running.drain(60_000)
})

test('records a disconnect while another worker is called, and reports the session of a stopped worker as ended', async () => {
  const leaving = new AbortController()
  const ended = async (): Promise<Response> => {
    throw new Error('The connection ended')
  }
  const left = () => {
    leaving.abort()
    return ended()
  }
  const thrown = (answering: Promise<Response>) => answering.catch((error: unknown) => error)
  expect(await thrown((await asking('POST', left, leaving.signal)).answering)).toMatchObject({ code: 'client_left' })
  expect(await thrown((await asking('POST', ended)).answering)).toMatchObject({ status: 404 })
})

test.each(methods)('answers %s itself when the other worker has ended before', async (method) => {
  const gone = async (): Promise<Response> => {
    throw Object.assign(new TypeError('Unable to connect'), { code: 'ECONNREFUSED' })
  }
  const answer = await (await asking(method, gone)).answering
  expect(await answer.text()).toBe(method === 'POST' ? 'answered POST here: asked' : `answered ${method} here: `)
})
