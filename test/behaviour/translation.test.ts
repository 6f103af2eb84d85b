/**
 * Clients of one language and providers of another through the real executable: what is loaded only then is in it too.
 * What becomes of each feature is in `test/golden`, what the gateway makes of it in `src/gateway/translated.test.ts`.
 */
import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import { EventStreamCodec } from '@smithy/eventstream-codec'
import OpenAI from 'openai'
import { z } from 'zod'
import { api, createToken, expectAnswer } from '../client.ts'
import { eventually } from '../eventually.ts'
import { chatStream } from '../fakes/chat.ts'
import { messagesStream } from '../fakes/messages.ts'
import { splitPlans } from '../fakes/splits.ts'
import { type FakeUpstream, type Reply, startFakeUpstream, streamReply } from '../fakes/upstream.ts'
import { type Gatehouse, startGatehouse } from '../harness.ts'
import { eventsOfRequest, outcomesOf } from '../recorded.ts'

setDefaultTimeout(120_000)

let upstream: FakeUpstream
let gatehouse: Gatehouse
let openai: OpenAI
let anthropic: Anthropic

const record = z.looseObject({ id: z.string() })
const make = async (path: string, body: object) => expectAnswer(await api(gatehouse, path, { body }), 201, record)
const hello = [{ role: 'user' as const, content: 'hello' }]

/** A provider of this kind at the fake, and a model of the kind's name. */
async function addModel(kind: string, baseUrl: string, more: object): Promise<void> {
  const provider = await make('/v1/catalog/providers', { name: `fake-${kind}`, kind, base_url: baseUrl, ...more })
  await make('/v1/catalog/models', {
    id: kind,
    provider_id: provider.id,
    upstream_model: kind === 'bedrock' ? 'anthropic.claude:0' : 'up',
    price: { input_per_million: 1, output_per_million: 2 },
  })
}

beforeAll(async () => {
  upstream = await startFakeUpstream()
  gatehouse = await startGatehouse({ upstream })
  const token = (await createToken(gatehouse)).token_value
  const clients = { apiKey: token, maxRetries: 0 }
  openai = new OpenAI({ ...clients, baseURL: `${gatehouse.gatewayUrl}/v1` })
  anthropic = new Anthropic({ ...clients, baseURL: gatehouse.gatewayUrl })
  const { origin } = new URL(upstream.baseUrl)
  await addModel('anthropic', origin, { api_key: 'key' })
  await addModel('gemini', origin, { api_key: 'key' })
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

async function costOf(requestId: string): Promise<unknown> {
  const [outcome] = outcomesOf(await eventsOfRequest(gatehouse, requestId), requestId)
  return outcome?.event_cost_attribution?.cost
}

const plans = Object.entries(splitPlans)

test('a chat client reads Bedrock’s event streams, however they are cut, and pays by their usage', async () => {
  for (const [name, split] of plans) {
    upstream.next({ ...eventStream, split })
    expect([name, await said('bedrock', 'bedrock-1')]).toEqual([name, words])
  }
  expect(upstream.calls[0]?.path).toBe('/model/anthropic.claude%3A0/converse-stream')
  expect(await costOf('bedrock-1')).toBe((4 * 1 + 6 * 2) / 1e6)
})

test('a chat client reads Gemini’s and Anthropic’s streams, however they are cut', async () => {
  const part = (text: string, more: object = {}) => ({
    candidates: [{ content: { role: 'model', parts: [{ text }] }, ...more }],
    usageMetadata: { promptTokenCount: 4, candidatesTokenCount: 6, totalTokenCount: 10 },
  })
  const frames = [part('Grüße'), part(' aus'), part(' 東京', { finishReason: 'STOP' })]
  const gemini = Buffer.from(frames.map((frame) => `data: ${JSON.stringify(frame)}\r\n\r\n`).join(''))
  for (const [name, split] of plans) {
    upstream.next({ ...streamReply(gemini), split })
    expect([name, await said('gemini', 'gemini-1')]).toEqual([name, words])
    upstream.next({ ...streamReply(messagesStream()), split })
    expect([name, await said('anthropic', 'anthropic-1')]).toEqual([name, words])
  }
  expect(await costOf('gemini-1')).toBe((4 * 1 + 6 * 2) / 1e6)
  expect(await costOf('anthropic-1')).toBe((11 * 1 + 9 * 2) / 1e6)
})

test('a messages client reads a chat provider’s stream', async () => {
  const { id } = await make('/v1/catalog/providers', { name: 'spare', kind: 'openai', base_url: upstream.baseUrl })
  await make('/v1/catalog/models', { id: 'spare', provider_id: id })
  await eventually(async () => {
    upstream.next(streamReply(chatStream({ parts: ['Grüße', ' aus 東京'] })))
    expect(await anthropic.messages.stream({ model: 'spare', max_tokens: 50, messages: hello }).finalText()).toBe(words)
  })
  expect(upstream.calls.at(-1)?.path).toBe('/v1/chat/completions')
})
