import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { completion, question, startTestGateway, type TestGateway } from '../testing/gateway.ts'
import { testModel } from '../testing/worker.ts'

let running: TestGateway
beforeEach(async () => {
  running = await startTestGateway(() => Response.json(completion), {
    body_limit_bytes: 4096,
    upload_limit_bytes: 8192,
    body_timeout_seconds: 1,
    drain_seconds: 0,
  })
})
afterEach(() => running.stop())

type SentBody = string | Uint8Array<ArrayBuffer> | FormData

const text = JSON.stringify(question)

const send = (body: SentBody, headers: Record<string, string> = {}, path = '/v1/chat/completions') =>
  fetch(running.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${running.secret}`, ...headers },
    body,
  })

async function codeOf(response: Response): Promise<[number, unknown]> {
  const body: unknown = await response.json()
  expect(body).toMatchObject({ error: { code: expect.any(String) } })
  return [response.status, (body as { error: { code: string } }).error.code]
}

describe('the content type of a body', () => {
  test('is accepted and forwarded unchanged for every name of JSON', async () => {
    for (const type of ['application/json', 'application/json; charset=utf-8', 'application/vnd.api+json']) {
      expect((await send(text, { 'content-type': type })).status).toBe(200)
      expect(running.seen.at(-1)?.request.headers.get('content-type')).toBe(type)
    }
  })

  test('defaults to JSON', async () => {
    expect((await send(new TextEncoder().encode(text))).status).toBe(200)
    expect(running.seen.at(-1)?.request.headers.get('content-type')).toBe('application/json')
  })

  test('is refused with 415 in the dialect of the route for anything else', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=b', 'json']) {
      expect(await codeOf(await send(text, { 'content-type': type }))).toEqual([415, 'unsupported_media_type'])
    }
    const refused = await send(text, { 'content-type': 'text/plain' }, '/v1/messages')
    expect(await refused.json()).toMatchObject({
      type: 'error',
      error: { type: 'invalid_request_error', code: 'unsupported_media_type' },
    })
    const json = await send(text, { 'content-type': 'application/json' }, '/v1/audio/transcriptions')
    expect(await codeOf(json)).toEqual([415, 'unsupported_media_type'])
    expect(running.seen.length).toBe(0)
  })
})

describe('a compressed body', () => {
  const encodings = {
    gzip: gzipSync,
    'x-gzip': gzipSync,
    deflate: deflateSync,
    br: brotliCompressSync,
    zstd: zstdCompressSync,
  }

  test('is decompressed and forwarded without its encoding', async () => {
    for (const [name, compress] of Object.entries(encodings)) {
      const headers = { 'content-encoding': name, 'content-type': 'application/json' }
      expect([name, (await send(new Uint8Array(compress(text)), headers)).status]).toEqual([name, 200])
      expect(running.seen.at(-1)?.body).toBe(text)
      expect(running.seen.at(-1)?.request.headers.get('content-encoding')).toBeNull()
    }
    expect((await send(text, { 'content-encoding': 'identity', 'content-type': 'application/json' })).status).toBe(200)
  })

  test('is held to the limit by its decompressed size', async () => {
    const bomb = JSON.stringify({ ...question, pad: 'x'.repeat(1_000_000) })
    for (const [name, compress] of Object.entries(encodings)) {
      const body = new Uint8Array(compress(bomb))
      expect(body.length).toBeLessThan(4096)
      const refused = await send(body, { 'content-encoding': name, 'content-type': 'application/json' })
      expect(await codeOf(refused)).toEqual([413, 'request_too_large'])
    }
    expect(running.seen.length).toBe(0)
  })

  test('is refused when it is malformed or its encoding is unknown', async () => {
    const json = { 'content-type': 'application/json' }
    expect(await codeOf(await send(text, { 'content-encoding': 'gzip', ...json }))).toEqual([400, 'invalid_encoding'])
    for (const name of ['snappy', 'gzip, br', 'GZIP;q=1']) {
      const refused = await send(text, { 'content-encoding': name, ...json })
      expect(await codeOf(refused)).toEqual([415, 'unsupported_media_type'])
    }
  })
})

test('ends a body that trickles in when its time is over, however many bytes arrive', async () => {
  const { hostname, port, host } = new URL(running.url)
  const socket = connect(Number(port), hostname)
  let received = ''
  socket.on('data', (bytes) => {
    received += bytes
  })
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${running.secret}\r\n`
  socket.write(`${head}content-type: application/json\r\ncontent-length: 4000\r\n\r\n{`)
  const trickle = setInterval(() => socket.write(' '), 50)
  socket.on('error', () => clearInterval(trickle))
  for (let round = 0; round < 300 && !received.includes('request_timeout'); round++) await Bun.sleep(10)
  clearInterval(trickle)
  socket.destroy()
  expect(received).toStartWith('HTTP/1.1 408')
  expect(received.toLowerCase()).not.toContain('x-should-retry')
  expect(running.worker.journal.outcomes().at(-1)).toMatchObject({ reason_code: 'request_timeout' })
})

describe('a multipart form', () => {
  const audio = (size: number) => new File([new Uint8Array(size).fill(7)], 'speech.wav', { type: 'audio/wav' })
  function form(fields: Record<string, string>, file: File | null = audio(64)): FormData {
    const data = new FormData()
    for (const [name, value] of Object.entries(fields)) data.append(name, value)
    if (file !== null) data.append('file', file)
    return data
  }
  const transcribe = (body: SentBody, headers: Record<string, string> = {}) =>
    send(body, headers, '/v1/audio/transcriptions')

  test('reaches the provider byte for byte', async () => {
    const request = new Request('http://localhost/', { method: 'POST', body: form({ model: 'gpt-test', prompt: 'ü' }) })
    const type = request.headers.get('content-type') ?? ''
    const body = new Uint8Array(await request.arrayBuffer())
    expect((await transcribe(body, { 'content-type': type })).status).toBe(200)
    expect(running.seen.at(-1)?.body).toBe(new TextDecoder().decode(body))
    expect(running.seen.at(-1)?.request.headers.get('content-type')).toBe(type)
  })

  test('has only its model rewritten when it names an alias', async () => {
    running.worker.catalog.push(testModel({ id: 'alias', providerId: 'provider-upstream', upstreamModel: 'real' }))
    const request = new Request('http://localhost/', {
      method: 'POST',
      body: form({ model: 'alias', prompt: 'alias' }),
    })
    const type = request.headers.get('content-type') ?? ''
    const body = await request.text()
    const answered = await transcribe(body, { 'content-type': type })
    expect([answered.status, await answered.text()]).toEqual([200, JSON.stringify(completion)])
    expect(running.seen.at(-1)?.body).toBe(body.replace('\r\n\r\nalias', '\r\n\r\nreal'))
  })

  test('is held to the file limit, not the JSON limit', async () => {
    expect((await transcribe(form({ model: 'm' }, audio(8192)))).status).toBe(200)
    expect(await codeOf(await transcribe(form({ model: 'm' }, audio(8193))))).toEqual([413, 'request_too_large'])
    const huge = form({ model: 'm' }, audio(3 * 1024 * 1024))
    expect(await codeOf(await transcribe(huge))).toEqual([413, 'request_too_large'])
  })

  test('is refused when it is malformed or repeats a field', async () => {
    const twice = form({ model: 'a' })
    twice.append('model', 'b')
    expect(await codeOf(await transcribe(twice))).toEqual([400, 'invalid_form'])
    const headers = { 'content-type': 'multipart/form-data; boundary=b' }
    expect(await codeOf(await transcribe('no form', headers))).toEqual([400, 'invalid_form'])
    const listed = form({ model: 'm' })
    for (const value of ['word', 'segment']) listed.append('timestamp_granularities[]', value)
    expect((await transcribe(listed)).status).toBe(200)
  })

  test('without a model is refused with the name of the field', async () => {
    const refused = await transcribe(form({}))
    expect(await refused.json()).toMatchObject({ error: { code: 'invalid_parameter', param: 'model' } })
  })
})

test('refuses a malformed request id on messages and replaces it elsewhere', async () => {
  const headers = { 'x-request-id': 'has a space', 'content-type': 'application/json' }
  const refused = await send(text, headers, '/v1/messages')
  expect(refused.status).toBe(400)
  expect(refused.headers.get('request-id')).toBe(refused.headers.get('x-request-id'))
  expect(await refused.json()).toMatchObject({ type: 'error', error: { code: 'invalid_request_id' } })
  expect((await send(text, headers)).status).toBe(200)
})
