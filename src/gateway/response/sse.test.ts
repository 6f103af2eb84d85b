import { afterEach, beforeEach, expect, test } from 'bun:test'
import { question, startTestGateway, type TestGateway, waitUntil } from '../testing/gateway.ts'

const encoder = new TextEncoder()
const streamed = { ...question, stream: true }
const chunk = (content: string) => `data: {"choices":[{"index":0,"delta":{"content":"${content}"}}]}\n\n`
const usageChunk = (prompt: number, completion: number) =>
  `data: {"choices":[],"usage":{"prompt_tokens":${prompt},"completion_tokens":${completion}}}\n\n`
const done = 'data: [DONE]\n\n'
const opening = ': open\n\n'

/** An upstream whose stream the test feeds by hand. */
let feed: ReadableStreamDefaultController<Uint8Array>
let running: TestGateway
const send = (text: string) => feed.enqueue(encoder.encode(text))

const eventStream = () =>
  new Response(
    new ReadableStream<Uint8Array>({
      start(controller) {
        feed = controller
        // A server sends its headers with the first bytes of the body.
        send(opening)
      },
    }),
    { headers: { 'content-type': 'text/event-stream; charset=utf-8' } },
  )

beforeEach(async () => {
  running = await startTestGateway(eventStream, { answer_limit_bytes: 65_536, drain_seconds: 0 })
})
afterEach(() => running.stop())

/** Reads the answer piece by piece. */
function readerOf(response: Response) {
  const reader = response.body?.getReader()
  const decoder = new TextDecoder()
  return {
    next: async () => {
      const result = await reader?.read()
      return result?.done === false ? decoder.decode(result.value) : null
    },
    rest: async () => {
      let text = ''
      for (;;) {
        const result = await reader?.read()
        if (result === undefined || result.done) return text
        text += decoder.decode(result.value)
      }
    },
  }
}

const begin = async () => {
  const response = await running.chat(streamed)
  expect(response.status).toBe(200)
  const reader = readerOf(response)
  expect(await reader.next()).toBe(opening)
  return reader
}
const outcome = () => running.worker.journal.outcomes()[0]

test('answers an error when a stream ends before its first whole frame', async () => {
  const headers = { 'content-type': 'text/event-stream' }
  const broken = await startTestGateway(() => new Response('data: {"choices":[{"in', { headers }))
  const answer = await broken.chat(streamed)
  expect([answer.status, answer.headers.get('content-type')]).toEqual([502, 'application/json'])
  expect(await answer.json()).toMatchObject({ error: { code: 'upstream_provider_error' } })
  await broken.stop()
})

test('passes whole frames at once, byte for byte', async () => {
  const reader = await begin()
  const first = ': keep-alive\r\n\r\ndata: {"choices":[{"index":0,"delta":{"content":"Hé"}}],"x":1.0}\r\n\r\n'
  send(first)
  expect(await reader.next()).toBe(first)
  send(chunk('a').slice(0, 20))
  send(chunk('a').slice(20) + chunk('b'))
  expect(await reader.next()).toBe(chunk('a') + chunk('b'))
  send(done)
  feed.close()
  expect(await reader.rest()).toBe(done)
  expect(outcome()).toMatchObject({ verdict: 'allow', reason_code: 'ok', details: { stream: true, status: 200 } })
  expect(typeof outcome()?.details?.first_token_ms).toBe('number')
})

test('holds the terminal frame until the outcome is committed', async () => {
  running.worker.journal.closeDelay = 50
  const reader = await begin()
  send(chunk('a') + done)
  expect(await reader.next()).toBe(chunk('a'))
  expect(running.worker.journal.closed.size).toBe(0)
  expect(await reader.next()).toBe(done)
  expect(running.worker.journal.closed.size).toBe(1)
})

test('finishes after the terminal frame although the provider keeps the connection open', async () => {
  const reader = await begin()
  send(chunk('a') + done)
  expect(await reader.rest()).toBe(chunk('a') + done)
})

test('takes the last cumulative usage', async () => {
  const reader = await begin()
  send(usageChunk(5, 1) + chunk('a') + usageChunk(5, 9) + done)
  await reader.rest()
  expect(outcome()?.event_cost_attribution).toMatchObject({ input_tokens: 5, output_tokens: 9, estimated: false })
})

test('does not take the usage of the first frame for the text after it', async () => {
  const reader = await begin()
  send(usageChunk(5, 1) + chunk('abcdefgh').repeat(30) + done)
  await reader.rest()
  expect(outcome()?.event_cost_attribution).toMatchObject({ input_tokens: 5, output_tokens: 60, estimated: true })
})

test('takes the last usage when figures fall', async () => {
  const reader = await begin()
  send(usageChunk(10, 50) + chunk('a') + usageChunk(10, 2) + done)
  await reader.rest()
  expect(outcome()?.event_cost_attribution).toMatchObject({ input_tokens: 10, output_tokens: 2, estimated: false })
})

test('sends an error and records one for a stream that ends without its terminal frame', async () => {
  const reader = await begin()
  send(`${chunk('abcdefgh')}data: {"choices":`)
  expect(await reader.next()).toBe(chunk('abcdefgh'))
  feed.close()
  const [error, end] = (await reader.rest()).split('\n\n')
  expect(JSON.parse(error?.slice('data: '.length) ?? '')).toMatchObject({
    error: { code: 'upstream_provider_error', type: 'server_error' },
  })
  expect(end).toBe('data: [DONE]')
  expect(outcome()).toMatchObject({
    verdict: 'error',
    reason_code: 'provider.interrupted',
    event_cost_attribution: { estimated: true, output_tokens: 2 },
  })
})

test('accepts a terminal frame without its blank line', async () => {
  const reader = await begin()
  send(`${chunk('a')}data: [DONE]`)
  feed.close()
  expect(await reader.rest()).toBe(`${chunk('a')}data: [DONE]`)
  expect(outcome()?.reason_code).toBe('ok')
})

test("records the provider's error frame before it is passed, and ends the stream", async () => {
  const frame = 'data: {"error":{"message":"overloaded","type":"server_error","code":"overloaded"}}\n\n'
  running.worker.journal.closeDelay = 20
  const reader = await begin()
  send(frame)
  expect(await reader.next()).toBe(frame + done)
  expect(outcome()).toMatchObject({ verdict: 'error', reason_code: 'provider.error' })
})

test('cuts an answer over the size limit with an error frame', async () => {
  const reader = await begin()
  for (let index = 0; index < 20; index++) send(`: ${'x'.repeat(4000)}\n\n`)
  expect(await reader.rest()).toEndWith(done)
  expect(outcome()?.reason_code).toBe('provider.answer_too_large')
  await waitUntil(() => running.aborted() === 1)
})

test('cancels the provider call of a disconnected client and charges for the received part', async () => {
  const abort = new AbortController()
  const response = await running.chat(streamed, { signal: abort.signal })
  const reader = readerOf(response)
  await reader.next()
  send(chunk('abcdefgh'))
  await reader.next()
  abort.abort()
  await waitUntil(() => running.aborted() === 1)
  expect(outcome()).toMatchObject({
    verdict: 'error',
    reason_code: 'client.left',
    event_cost_attribution: { estimated: true, input_tokens: 3, output_tokens: 2 },
  })
  expect(running.worker.journal.closeCalls).toBe(1)
})

test('withholds the terminal frame when the outcome cannot be written', async () => {
  running.worker.journal.full = { close: true }
  const reader = await begin()
  send(chunk('a') + done)
  expect(await reader.rest()).toBe(chunk('a'))
})

test('finishes a stream in a drain and refuses new requests', async () => {
  await running.stop()
  running = await startTestGateway(eventStream, { drain_seconds: 5 })
  const reader = await begin()
  send(chunk('a'))
  await reader.next()
  const drained = running.gateway.drain()
  const refused = await running.chat(question)
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1'])
  send(done)
  expect(await reader.rest()).toBe(done)
  await drained
})

test('cuts a stream with an error frame and its outcome when the drain timeout ends', async () => {
  const reader = await begin()
  send(chunk('a'))
  await reader.next()
  await running.gateway.drain()
  expect(outcome()).toMatchObject({ verdict: 'error', reason_code: 'gateway.drained' })
  expect(await reader.rest()).toContain('"code":"draining"')
})

const foreign = (text: string) =>
  `data: ${JSON.stringify({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } })}\n\n`

test('refuses a stream in another language from its first frame', async () => {
  const headers = { 'content-type': 'text/event-stream' }
  const wrong = await startTestGateway(() => new Response(foreign('Hello'), { headers }))
  const refused = await wrong.chat(streamed)
  expect([refused.status, await refused.text()]).toEqual([502, expect.not.stringContaining('Hello')])
  expect(wrong.worker.journal.outcomes()).toMatchObject([{ reason_code: 'provider.invalid_answer' }])
  await wrong.stop()
})

test('ends a stream at the frame where it changes language and charges for the passed part', async () => {
  const reader = await begin()
  send(chunk('abcdefgh') + foreign('Hello'))
  const rest = await reader.rest()
  expect(rest).toStartWith(chunk('abcdefgh'))
  expect(rest).not.toContain('Hello')
  expect(outcome()).toMatchObject({
    reason_code: 'provider.invalid_answer',
    event_cost_attribution: { estimated: true, output_tokens: 2 },
  })
})

test('passes unknown frames unchanged and charges for their text', async () => {
  const reader = await begin()
  const unknown = `data: ${JSON.stringify({ said: { so: 'abcdefgh' } })}\n\n`
  send(unknown + unknown)
  feed.close()
  expect(await reader.rest()).toStartWith(unknown + unknown)
  expect(outcome()).toMatchObject({ event_cost_attribution: { estimated: true, output_tokens: 4 } })
})
