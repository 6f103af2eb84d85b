import { expect, spyOn, test } from 'bun:test'
import { createHash, createHmac } from 'node:crypto'
import { EventStreamCodec } from '@smithy/eventstream-codec'
import fc from 'fast-check'
import { cut } from '../../../test/fakes/splits.ts'
import type { Provider, UpstreamCall } from '../provider.ts'
import { bedrock } from './bedrock.ts'

const provider = (members: Partial<Provider> = {}): Provider => ({
  id: 'p',
  name: 'bedrock',
  kind: 'bedrock',
  baseUrl: 'https://bedrock-runtime.eu-central-1.amazonaws.com',
  apiKey: 'AKIDEXAMPLE:secret:session-token',
  headers: {},
  allowUnlistedModels: true,
  ...members,
})

const body = '{"messages":[{"role":"user","content":[{"text":"é"}]}]}'
const call = (members: Partial<UpstreamCall> = {}): UpstreamCall => ({
  family: 'chat',
  model: 'eu.anthropic.claude-sonnet-4:0',
  stream: false,
  body: Buffer.from(body),
  contentType: 'application/json',
  headers: { accept: 'text/event-stream', 'user-agent': 'test' },
  signal: new AbortController().signal,
  answerLimit: 1_000_000,
  ...members,
})

/** What a call sends, and what becomes of the answer to it. */
async function sent(of: Provider, members: Partial<UpstreamCall> = {}, answer = Response.json({})) {
  let url = ''
  let headers = new Headers()
  const response = await bedrock.send(of, call(members), async (to, init) => {
    url = to
    headers = new Headers(init.headers)
    return answer
  })
  return { url, headers, response }
}

const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest()
const sha = (text: string) => createHash('sha256').update(text).digest('hex')

test('a call is signed by version 4, with the path encoded once more', async () => {
  const { url, headers } = await sent(provider())
  expect(url).toBe('https://bedrock-runtime.eu-central-1.amazonaws.com/model/eu.anthropic.claude-sonnet-4%3A0/converse')
  const authorization = headers.get('authorization') ?? ''
  const names = /SignedHeaders=([^,]+)/.exec(authorization)?.[1] ?? ''
  const date = headers.get('x-amz-date') ?? ''
  expect(names.split(';')).toContain('x-amz-security-token')
  expect(headers.get('x-amz-security-token')).toBe('session-token')
  const canonical = [
    'POST',
    '/model/eu.anthropic.claude-sonnet-4%253A0/converse',
    '',
    ...names
      .split(';')
      .map((name) => `${name}:${name === 'host' ? 'bedrock-runtime.eu-central-1.amazonaws.com' : headers.get(name)}`),
    '',
    names,
    sha(body),
  ].join('\n')
  const scope = `${date.slice(0, 8)}/eu-central-1/bedrock/aws4_request`
  const day = hmac('AWS4secret', date.slice(0, 8))
  const key = hmac(hmac(hmac(day, 'eu-central-1'), 'bedrock'), 'aws4_request')
  const signature = hmac(key, ['AWS4-HMAC-SHA256', date, scope, sha(canonical)].join('\n')).toString('hex')
  expect(authorization).toContain(`Credential=AKIDEXAMPLE/${scope}`)
  expect(authorization).toEndWith(`Signature=${signature}`)
})

test('sends a Bedrock API key unchanged and uses the region header only for the address', async () => {
  const { url, headers } = await sent(
    provider({ apiKey: 'ABSKkey', baseUrl: null, headers: { region: 'us-west-2' } }),
    {
      stream: true,
    },
  )
  expect(url).toStartWith('https://bedrock-runtime.us-west-2.amazonaws.com/model/')
  expect(url).toEndWith('/converse-stream')
  expect(headers.get('authorization')).toBe('Bearer ABSKkey')
  expect([headers.get('region'), headers.get('accept')]).toEqual([null, null])
})

test('a call without a region fails', async () => {
  await expect(sent(provider({ baseUrl: null }))).rejects.toThrow('region')
  await expect(sent(provider({ baseUrl: 'http://127.0.0.1:1/proxy' }))).rejects.toThrow('region')
})

test('an error has its name in its body', async () => {
  const answer = (text: string) =>
    new Response(text, { status: 429, headers: { 'x-amzn-errortype': 'Throttling:http' } })
  expect(await (await sent(provider(), {}, answer('{"message":"Slow"}'))).response.json()).toEqual({
    message: 'Slow',
    __type: 'Throttling',
  })
  expect(await (await sent(provider(), {}, answer('plain'))).response.text()).toBe('plain')
})

const codec = new EventStreamCodec(
  (bytes) => Buffer.from(bytes).toString(),
  (text) => Buffer.from(text),
)

const message = (event: string, payload: object, type = 'event'): Uint8Array =>
  codec.encode({
    headers: {
      [`:${type}-type`]: { type: 'string', value: event },
      ':message-type': { type: 'string', value: type },
      ':content-type': { type: 'string', value: 'application/json' },
    },
    body: Buffer.from(JSON.stringify(payload)),
  })

async function streamed(pieces: readonly Uint8Array[]): Promise<{ text: string; broken: boolean }> {
  const waiting = [...pieces]
  const source = new ReadableStream<Uint8Array>({
    pull(controller) {
      const piece = waiting.shift()
      if (piece === undefined) controller.close()
      else controller.enqueue(piece)
    },
  })
  const headers = { 'content-type': 'application/vnd.amazon.eventstream' }
  const { response } = await sent(provider(), { stream: true }, new Response(source, { headers }))
  const reader = (response.body ?? new Blob([]).stream()).getReader()
  let text = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return { text, broken: false }
      text += Buffer.from(value).toString()
    }
  } catch {
    // What is expected of some streams here.
    return { text, broken: true }
  }
}

const first = message('contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'é' } })
const last = message('throttlingException', { message: 'Slow' }, 'exception')
const whole = Buffer.concat([first, last])
const frames = [
  'event: contentBlockDelta\ndata: {"contentBlockIndex":0,"delta":{"text":"é"}}\n\n',
  'event: throttlingException\ndata: {"message":"Slow"}\n\n',
]

test('a stream comes as server-sent events, however its bytes are split', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(fc.integer({ min: 1, max: whole.length - 1 })), async (cuts) => {
      const { text, broken } = await streamed(
        cut(
          whole,
          cuts.toSorted((a, b) => a - b),
        ),
      )
      expect([text, broken]).toEqual([frames.join(''), false])
    }),
    { numRuns: 50 },
  )
})

test('breaks a stream at any changed byte and keeps the frames before it', async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(last.length - 1), fc.integer({ min: 1, max: 255 }), async (at, by) => {
      const bytes = Buffer.from(whole)
      const place = first.length + at
      bytes[place] = (bytes[place] ?? 0) ^ by
      expect(await streamed([bytes])).toEqual({ text: frames[0] ?? '', broken: true })
    }),
    { numRuns: 50 },
  )
})

test('joins a long message in small pieces once, and refuses an announced length above the limit at once', async () => {
  const long = message('contentBlockDelta', { delta: { text: 'a'.repeat(2 ** 20) } })
  const concat = spyOn(Buffer, 'concat')
  const pieces = Array.from({ length: Math.ceil(long.length / 1024) }, (_, index) =>
    long.subarray(index * 1024, (index + 1) * 1024),
  )
  const { text, broken } = await streamed(pieces)
  const joined = concat.mock.calls.reduce((sum, [parts]) => sum + parts.reduce((all, { length }) => all + length, 0), 0)
  concat.mockRestore()
  expect([text.length > 2 ** 20, broken]).toEqual([true, false])
  expect(joined).toBeLessThan(3 * long.length)
  const tooLong = Buffer.alloc(4)
  tooLong.writeUInt32BE(16 * 1024 * 1024 + 1)
  expect(await streamed([tooLong, long])).toEqual({ text: '', broken: true })
})

test('a stream that ends within a message is broken', async () => {
  expect(await streamed([whole.subarray(0, -1)])).toEqual({ text: frames[0] ?? '', broken: true })
})
