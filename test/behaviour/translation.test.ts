/**
 * Clients of one language and providers of another through the real executable: what is loaded only then is in it too.
 * What becomes of each feature is in `test/golden`, what the gateway makes of it in
 * `src/gateway/request/translated.test.ts`.
 */
import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import { EventStreamCodec } from '@smithy/eventstream-codec'
import OpenAI from 'openai'
import { z } from 'zod'
import { chatStream } from '../fakes/chat.ts'
import { messagesStream } from '../fakes/messages.ts'
import { splitPlans } from '../fakes/splits.ts'
import { type FakeUpstream, jsonReply, type Reply, startFakeUpstream, streamReply } from '../fakes/upstream.ts'
import { api, createToken, expectAnswer } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'
import { eventsOfRequest, outcomesOf } from '../support/recorded.ts'

setDefaultTimeout(120_000)

let upstream: FakeUpstream
let gatehouse: Gatehouse
let openai: OpenAI
let anthropic: Anthropic

const record = z.looseObject({ id: z.string() })
const make = async (path: string, body: object) => expectAnswer(await api(gatehouse, path, { body }), 201, record)
const hello = [{ role: 'user' as const, content: 'hello' }]

const price = { input_per_million: 1, output_per_million: 2 }

/** A provider of this kind at the fake, and a model of the kind's name. */
async function addModel(kind: string, baseUrl: string, more: object): Promise<string> {
  const { id } = await make('/v1/catalog/providers', { name: `fake-${kind}`, kind, base_url: baseUrl, ...more })
  const upstream_model = kind === 'bedrock' ? 'anthropic.claude:0' : 'up'
  await make('/v1/catalog/models', { id: kind, provider_id: id, upstream_model, price })
  return id
}

/** Models with a price of their own that fall back to another dialect's, and some of Gemini's under policies. */
async function addPathsAndPolicies(gemini: string, anthropicProvider: string): Promise<void> {
  const { id: chats } = await make('/v1/catalog/providers', {
    name: 'chats',
    kind: 'openai',
    base_url: upstream.baseUrl,
  })
  const dear = { input_per_million: 50, output_per_million: 50 }
  const models = [
    { id: 'chats', provider_id: chats, upstream_model: 'up-chats', price },
    { id: 'chats-first', provider_id: chats, upstream_model: 'up-failing', price: dear, fallbacks: ['gemini'] },
    {
      id: 'messages-first',
      provider_id: anthropicProvider,
      upstream_model: 'up-failing',
      price: dear,
      fallbacks: ['gemini'],
    },
    { id: 'gemini-redacted', provider_id: gemini, upstream_model: 'up', price },
    { id: 'gemini-blocked', provider_id: gemini, upstream_model: 'up', price },
  ]
  for (const model of models) await make('/v1/catalog/models', model)
  for (const action of ['redact', 'block']) {
    await make('/v1/policies', {
      name: `${action} the term`,
      kind: 'term-filter',
      stages: ['pre_response'],
      config: { terms: ['forbidden'], action },
      targets: { models: [action === 'redact' ? 'gemini-redacted' : 'gemini-blocked'] },
    })
  }
}

beforeAll(async () => {
  upstream = await startFakeUpstream()
  gatehouse = await startGatehouse({ upstream })
  const token = (await createToken(gatehouse)).token_value
  const clients = { apiKey: token, maxRetries: 0 }
  openai = new OpenAI({ ...clients, baseURL: `${gatehouse.gatewayUrl}/v1` })
  anthropic = new Anthropic({ ...clients, baseURL: gatehouse.gatewayUrl })
  const { origin } = new URL(upstream.baseUrl)
  const anthropicProvider = await addModel('anthropic', origin, { api_key: 'key' })
  const gemini = await addModel('gemini', origin, { api_key: 'key' })
  await addPathsAndPolicies(gemini, anthropicProvider)
  await addModel('bedrock', origin, { api_key: 'AKID:secret', headers: { region: 'eu-central-1' } })
  await eventually(async () => {
    const { data } = await openai.models.list()
    expect(data.map(({ id }) => id)).toContain('bedrock')
    upstream.next(eventStream)
    await said('bedrock', 'ready')
  })
}, 240_000)
beforeEach(() => upstream.forget())
afterAll(async () => {
  await gatehouse?.stop()
  await upstream?.close()
})

const words = 'Grüße aus 東京'

const codec = new EventStreamCodec(
  (bytes) => Buffer.from(bytes).toString(),
  (text) => Buffer.from(text),
)
const eventStream: Reply = {
  headers: { 'content-type': 'application/vnd.amazon.eventstream' },
  framing: 'chunked',
  body: Buffer.concat(
    [
      ['messageStart', { role: 'assistant' }],
      ...words
        .split(' ')
        .map((text, at) => [
          'contentBlockDelta',
          { contentBlockIndex: 0, delta: { text: at === 0 ? text : ` ${text}` } },
        ]),
      ['messageStop', { stopReason: 'end_turn' }],
      ['metadata', { usage: { inputTokens: 4, outputTokens: 6 } }],
    ].map(([event, payload]) =>
      codec.encode({
        headers: {
          ':event-type': { type: 'string', value: String(event) },
          ':message-type': { type: 'string', value: 'event' },
        },
        body: Buffer.from(JSON.stringify(payload)),
      }),
    ),
  ),
}

/** What a chat client gathers from a stream of the model. */
async function said(model: string, requestId: string): Promise<string | null | undefined> {
  const options = { headers: { 'x-request-id': requestId } }
  const final = await openai.chat.completions.stream({ model, messages: hello }, options).finalChatCompletion()
  return final.choices[0]?.message.content
}

function geminiStream(parts: readonly string[], finishReason: string | null = 'STOP'): Buffer {
  const frames = parts.map((text, index) => ({
    candidates: [
      {
        content: { role: 'model', parts: [{ text }] },
        ...(finishReason !== null && index === parts.length - 1 && { finishReason }),
      },
    ],
    usageMetadata: { promptTokenCount: 4, candidatesTokenCount: 6, totalTokenCount: 10 },
  }))
  return Buffer.from(frames.map((frame) => `data: ${JSON.stringify(frame)}\r\n\r\n`).join(''))
}

async function costOf(requestId: string): Promise<unknown> {
  const [outcome] = outcomesOf(await eventsOfRequest(gatehouse, requestId), requestId)
  return outcome?.event_cost_attribution?.cost
}

const plans = Object.entries(splitPlans)

test('a chat client reads Bedrock’s event streams at every split and is charged by their usage', async () => {
  for (const [name, split] of plans) {
    upstream.next({ ...eventStream, split })
    expect([name, await said('bedrock', 'bedrock-1')]).toEqual([name, words])
  }
  expect(upstream.calls[0]?.path).toBe('/model/anthropic.claude%3A0/converse-stream')
  expect(await costOf('bedrock-1')).toBe((4 * 1 + 6 * 2) / 1e6)
})

test('a chat client reads Gemini’s and Anthropic’s streams at every split', async () => {
  const gemini = geminiStream(['Grüße', ' aus', ' 東京'])
  for (const [name, split] of plans) {
    upstream.next({ ...streamReply(gemini), split })
    expect([name, await said('gemini', 'gemini-1')]).toEqual([name, words])
    upstream.next({ ...streamReply(messagesStream()), split })
    expect([name, await said('anthropic', 'anthropic-1')]).toEqual([name, words])
  }
  expect(await costOf('gemini-1')).toBe((4 * 1 + 6 * 2) / 1e6)
  expect(await costOf('anthropic-1')).toBe((11 * 1 + 9 * 2) / 1e6)
})

const asking = (model: string, requestId: string) =>
  [{ model, messages: hello }, { headers: { 'x-request-id': requestId } }] as const
const failing: Reply = { ...jsonReply(Buffer.from('{"error":{"message":"down"}}')), status: 500 }
const thrownBy = (call: Promise<unknown>): Promise<unknown> => call.catch((error: unknown) => error)

test('a messages client reads a chat provider’s stream', async () => {
  upstream.next(streamReply(chatStream({ parts: ['Grüße', ' aus 東京'] })))
  expect(await anthropic.messages.stream({ model: 'chats', max_tokens: 50, messages: hello }).finalText()).toBe(words)
  expect(upstream.calls.at(-1)?.path).toBe('/v1/chat/completions')
})

test('a fallback of another dialect answers each caller in its own dialect at the fallback’s price', async () => {
  upstream.when('up-failing', failing)
  for (const [model, first] of [
    ['chats-first', 'chats'],
    ['messages-first', 'fake-anthropic'],
  ] as const) {
    // Gemini is told the model in the path alone.
    upstream.when('', streamReply(geminiStream(['Grüße', ' aus 東京'])))
    expect(await said(model, model)).toBe(words)
    const native = await anthropic.messages
      .stream({ model, max_tokens: 50, messages: hello }, { headers: { 'x-request-id': `${model}-messages` } })
      .finalMessage()
    expect(native).toMatchObject({ stop_reason: 'end_turn', usage: { input_tokens: 4, output_tokens: 6 } })
    for (const requestId of [model, `${model}-messages`]) {
      const events = await eventsOfRequest(gatehouse, requestId)
      const providers = events
        .filter(({ event_type }) => event_type === 'gateway.provider.attempt')
        .map(({ verdict, details }) => [verdict, details?.provider])
      expect(providers.at(0)).toEqual(['error', first])
      expect(providers.at(-1)).toEqual(['allow', 'fake-gemini'])
      expect(await costOf(requestId)).toBe((4 * 1 + 6 * 2) / 1e6)
    }
  }
})

test('a path that breaks before its first byte falls back, and one that breaks later ends in an error', async () => {
  upstream.when('up-failing', { ...streamReply(chatStream()), stop: { after: 'nothing', by: 'reset' } })
  upstream.when('', streamReply(geminiStream(['Grüße', ' aus 東京'])))
  expect(await said('chats-first', 'reset-1')).toBe(words)
  upstream.next(streamReply(geminiStream(['so', ' far'], null)))
  const thrown = await thrownBy(openai.chat.completions.stream({ model: 'gemini', messages: hello }).done())
  expect(String(thrown)).toContain('could not be used')
})

test('a policy masks or blocks a term that the frames of a translated stream split', async () => {
  const split = streamReply(geminiStream(['the for', 'bid', 'den word']))
  upstream.next(split)
  expect(await said('gemini-redacted', 'redacted-1')).not.toContain('forbidden')
  upstream.next(split)
  const chunks: unknown[] = []
  const thrown = await thrownBy(
    (async () => {
      const stream = await openai.chat.completions.create({ ...asking('gemini-blocked', 'b')[0], stream: true })
      for await (const chunk of stream) chunks.push(chunk)
    })(),
  )
  expect(thrown).toMatchObject({ code: 'content_policy_violation' })
  expect(JSON.stringify(chunks)).not.toContain('bid')
  upstream.next(split)
  const messages = anthropic.messages.stream({ model: 'gemini-blocked', max_tokens: 50, messages: hello })
  expect(String(await thrownBy(messages.finalMessage()))).toContain('content_policy_violation')
})

test('errors of every provider kind arrive with their status in the form of the caller', async () => {
  const json = (status: number, body: object): Reply => ({ ...jsonReply(Buffer.from(JSON.stringify(body))), status })
  const kinds = [
    ['anthropic', json(400, { type: 'error', error: { type: 'invalid_request_error', message: 'No.' } })],
    ['gemini', json(400, { error: { code: 400, status: 'INVALID_ARGUMENT', message: 'No.' } })],
    ['bedrock', { ...json(400, { message: 'No.' }), headers: { 'x-amzn-errortype': 'ValidationException:http://x' } }],
  ] as const
  const codes = { anthropic: 'invalid_request_error', gemini: 'invalid_argument', bedrock: 'ValidationException' }
  for (const [kind, reply] of kinds) {
    upstream.next(reply)
    expect(await thrownBy(openai.chat.completions.create({ model: kind, messages: hello }))).toMatchObject({
      ...{ status: 400, code: codes[kind], type: 'invalid_request_error' },
      error: { message: 'No.' },
    })
    upstream.next(reply)
    expect(await thrownBy(openai.responses.create({ model: kind, input: 'hello' }))).toMatchObject({ status: 400 })
  }
  upstream.next(json(404, { error: { message: 'No.', code: 'model_not_found' } }))
  const thrown = await thrownBy(anthropic.messages.create({ model: 'chats', max_tokens: 5, messages: hello }))
  expect(thrown).toMatchObject({ status: 404, error: { type: 'error', error: { type: 'not_found_error' } } })
})

test('usage is shown when requested, and a budget is spent to the token', async () => {
  const { id, token_value } = await createToken(gatehouse, { max_budget: 1 })
  const client = new OpenAI({ apiKey: token_value, maxRetries: 0, baseURL: `${gatehouse.gatewayUrl}/v1` })
  const usageOf = async (more: object) => {
    upstream.next(streamReply(geminiStream(['Grüße'])))
    const stream = await client.chat.completions.create({
      model: 'gemini',
      messages: hello,
      max_tokens: 50,
      stream: true,
      ...more,
    })
    const shown = []
    for await (const { usage } of stream) if (usage) shown.push(usage.total_tokens)
    return shown
  }
  await eventually(async () => expect(await usageOf({})).toEqual([]))
  const before = await eventually(async () => {
    const spent = await spentBy(id)
    expect(spent).toBeGreaterThan(0)
    return spent
  })
  expect(await usageOf({ stream_options: { include_usage: true } })).toEqual([10])
  await eventually(async () => expect((await spentBy(id)) - before).toBeCloseTo(16 / 1e6, 12))
})

const spending = z.looseObject({ depletion: z.looseObject({ current_spend: z.coerce.number() }) })
async function spentBy(tokenId: string): Promise<number> {
  return expectAnswer(await api(gatehouse, `/v1/tokens/${tokenId}`), 200, spending).depletion.current_spend
}

test('a provider that sends invalid answers is 502 and never an answer', async () => {
  const html = Buffer.from('<html>busy</html>')
  for (const reply of [jsonReply(html), jsonReply(Buffer.from('{"hello":"world"}')), streamReply(html)]) {
    upstream.next(reply)
    const thrown = await thrownBy(openai.chat.completions.create({ model: 'gemini', messages: hello }))
    expect(thrown).toMatchObject({ status: 502, code: 'upstream_provider_error' })
  }
  upstream.when('', streamReply(Buffer.from('data: {no json\n\ndata: [1]\n\n')))
  expect(await thrownBy(said('gemini', 'garbage'))).toBeInstanceOf(Error)
  upstream.when('', { ...eventStream, body: Buffer.from('no event stream at all, but long enough to be read as one') })
  expect(await thrownBy(said('bedrock', 'garbage'))).toBeInstanceOf(Error)
})
