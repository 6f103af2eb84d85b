import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import fc from 'fast-check'
import { eventually, until } from '../support/eventually.ts'
import { chatAnswer, chatStream } from './chat.ts'
import { createHttpReader } from './http-reader.ts'
import { cut, splitPlans } from './splits.ts'
import { type FakeUpstream, jsonReply, silentReply, startFakeUpstream, streamReply } from './upstream.ts'

let upstream: FakeUpstream

beforeAll(async () => {
  upstream = await startFakeUpstream()
})
beforeEach(() => upstream.forget())
afterAll(() => upstream.close())

const send = (body: object, signal?: AbortSignal) =>
  fetch(`${upstream.baseUrl}/chat/completions`, {
    method: 'POST',
    body: JSON.stringify(body),
    ...(signal && { signal }),
  })

const lastState = () => upstream.calls.at(-1)?.state

test('reads a request exactly, with any split and any number on one connection', () => {
  const request = fc.record({ body: fc.uint8Array({ maxLength: 200 }), chunked: fc.boolean() })
  fc.assert(
    fc.property(fc.array(request, { maxLength: 4 }), fc.array(fc.nat(2000)), (requests, cuts) => {
      const wire = Buffer.concat(requests.map(({ body, chunked }) => written(body, chunked)))
      const at = [...new Set(cuts)].filter((offset) => offset > 0 && offset < wire.length).sort((a, b) => a - b)
      const reader = createHttpReader()
      const read = cut(wire, at).flatMap((piece) => reader.push(piece))
      expect(read.map(({ body }) => body.toString('hex'))).toEqual(
        requests.map(({ body }) => Buffer.from(body).toString('hex')),
      )
    }),
  )
})

function written(body: Uint8Array, chunked: boolean): Buffer {
  if (!chunked) return Buffer.concat([Buffer.from(`POST / HTTP/1.1\r\nContent-Length: ${body.length}\r\n\r\n`), body])
  const pieces = cut(body, body.length > 3 ? [1, 3] : [])
  const chunks = pieces.flatMap((piece) => [
    Buffer.from(`${piece.length.toString(16)}\r\n`),
    piece,
    Buffer.from('\r\n'),
  ])
  return Buffer.concat([
    Buffer.from('POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n'),
    ...chunks,
    Buffer.from('0\r\n\r\n'),
  ])
}

test('every split plan keeps every byte of the body', () => {
  const body = chatStream({ lineEnding: '\r\n' })
  for (const plan of Object.values(splitPlans)) {
    expect(Buffer.concat(cut(body, plan(body))).equals(body)).toBe(true)
  }
})

test('one plan cuts inside UTF-8 characters, and another between CR and LF', () => {
  const body = Buffer.from('é\r\n')
  expect(splitPlans['inside every UTF-8 character']?.(body)).toEqual([1])
  expect(splitPlans['inside every line ending']?.(body)).toEqual([3])
})

test('a split stream arrives as scripted', async () => {
  for (const split of Object.values(splitPlans)) {
    upstream.next({ ...streamReply(), split })
    const answer = await send({ model: 'm', stream: true })
    expect(Buffer.from(await answer.arrayBuffer()).equals(chatStream())).toBe(true)
  }
})

test('the model name selects the answer, and the log keeps the exact request', async () => {
  upstream.when('special', { ...jsonReply(Buffer.from('{"special":1}')), status: 418 })
  const answer = await send({ model: 'special', text: 'ü' })
  expect(answer.status).toBe(418)
  expect(await answer.text()).toBe('{"special":1}')
  const [call] = upstream.calls
  expect(call?.path).toBe('/v1/chat/completions')
  expect(call?.body.toString()).toBe('{"model":"special","text":"ü"}')
  await until('the call is answered', () => lastState() === 'answered')
  expect(upstream.running()).toBe(0)
})

test('notices a client that leaves before the headers', async () => {
  const leaving = new AbortController()
  upstream.next(silentReply)
  const answer = send({ model: 'm' }, leaving.signal).catch(() => 'left')
  await until('the request arrived', () => upstream.running() === 1)
  leaving.abort()
  expect(await answer).toBe('left')
  await eventually(() => expect(lastState()).toBe('cancelled before headers'))
})

test('notices a client that leaves in the middle of a stream', async () => {
  const leaving = new AbortController()
  upstream.next({
    ...streamReply(),
    split: splitPlans['at every frame'] ?? (() => []),
    stop: { after: 2, by: 'stall' },
  })
  const answer = await send({ model: 'm', stream: true }, leaving.signal)
  await answer.body?.getReader().read()
  leaving.abort()
  await eventually(() => expect(lastState()).toBe('cancelled after headers'))
})

test('a reset and a close within a body break the read', async () => {
  for (const by of ['reset', 'close'] as const) {
    upstream.next({ ...jsonReply(), split: (body) => [body.length - 5], stop: { after: 1, by } })
    const answer = await send({ model: 'm' }).then(
      (response) => response.text().catch(() => 'broken'),
      () => 'broken',
    )
    expect(answer === 'broken' || answer !== chatAnswer().toString()).toBe(true)
  }
})

test('a scripted break waits for its signal', async () => {
  for (const by of ['reset', 'close'] as const) {
    const { promise: until, resolve } = Promise.withResolvers<void>()
    upstream.next({
      ...streamReply(),
      split: splitPlans['at every frame'] ?? (() => []),
      stop: { after: 2, by, until },
    })
    const reader = (await send({ model: 'm', stream: true })).body?.getReader()
    await reader?.read()
    const rest = (async () => {
      while ((await reader?.read())?.done === false);
    })().catch(() => 'broken')
    expect(await Promise.race([rest, Bun.sleep(200).then(() => 'whole so far')])).toBe('whole so far')
    resolve()
    expect(await rest).toBe('broken')
  }
})

test('refuses connections while told to, and accepts them again afterwards', async () => {
  const refused = await upstream.refuseDuring(() =>
    send({ model: 'm' }).then(
      () => 'answered',
      () => 'refused',
    ),
  )
  expect(refused).toBe('refused')
  expect((await send({ model: 'm' })).status).toBe(200)
})
