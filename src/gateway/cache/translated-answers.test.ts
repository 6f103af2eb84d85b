/** Kept answers of providers in other languages: what a client reads from the cache is what it read from the provider. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { EventStreamCodec } from '@smithy/eventstream-codec'
import { messagesAnswer, messagesStream } from '../../../test/fakes/messages.ts'
import { compilePolicySet } from '../../policies/chain.ts'
import { policy } from '../testing/policies.ts'
import { geminiFrames, splitResponse, sse, startTranslating, type TranslatingGateway } from '../testing/translating.ts'

let translating: TranslatingGateway
beforeEach(async () => {
  translating = await startTranslating()
  translating.running.worker.policies = compilePolicySet([
    policy({ id: 'cache', kind: 'answer-cache', config: {} }),
    policy({
      id: 'look',
      kind: 'term-filter',
      config: { terms: ['absent'], action: 'block' },
      stages: ['post_request'],
    }),
  ])
})
afterEach(() => translating.running.stop())

const codec = new EventStreamCodec(
  (bytes) => Buffer.from(bytes).toString(),
  (text) => Buffer.from(text),
)
const converseFrame = (event: string, payload: object): Uint8Array =>
  codec.encode({
    headers: {
      ':event-type': { type: 'string', value: event },
      ':message-type': { type: 'string', value: 'event' },
    },
    body: Buffer.from(JSON.stringify(payload)),
  })
const converse = Buffer.concat([
  converseFrame('messageStart', { role: 'assistant' }),
  converseFrame('contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'Grüße' } }),
  converseFrame('contentBlockStop', { contentBlockIndex: 0 }),
  converseFrame('messageStop', { stopReason: 'end_turn' }),
  converseFrame('metadata', { usage: { inputTokens: 4, outputTokens: 6 } }),
])
const gemini = [
  { candidates: [{ content: { role: 'model', parts: [{ text: 'Grüße' }] } }] },
  {
    candidates: [{ content: { role: 'model', parts: [{ text: '!' }] }, finishReason: 'STOP' }],
    usageMetadata: { promptTokenCount: 4, candidatesTokenCount: 6, totalTokenCount: 10 },
  },
]

const cases: Record<string, readonly [model: string, path: string, stream: boolean, answer: () => Response]> = {
  'a stream of Messages': ['anthropic', '/v1/messages', true, sse(messagesStream())],
  'a whole answer of Messages': ['anthropic', '/v1/messages', false, () => new Response(messagesAnswer(), json)],
  'a stream of Gemini': ['gemini', '/v1beta/models/up-gemini:streamGenerateContent', true, sse(geminiFrames(gemini))],
  'a stream of Converse': [
    'bedrock',
    '/model/anthropic.claude:0/converse-stream',
    true,
    () => splitResponse(converse, 'application/vnd.amazon.eventstream'),
  ],
}
const json = { headers: { 'content-type': 'application/json' } }
/** Ids and times of translated answers are the gateway's own. */
const withoutOwn = (text: string): string => text.replaceAll(/"(?:id|created)":("[^"]*"|\d+)/g, '')

test.each(Object.keys(cases))('%s is read from the cache as it was from the provider', async (name) => {
  const [model, path, stream, answer] = cases[name] ?? ['', '', false, () => new Response()]
  const { running, answers } = translating
  answers[path] = answer
  const ask = async () => {
    const { status, headers, body } = await running.chat({ model, stream, messages: [{ role: 'user', content: 'Hi' }] })
    return { status, cache: headers.get('x-service-cache'), text: await new Response(body).text() }
  }
  const first = await ask()
  const second = await ask()
  expect([first.status, first.cache, second.status, second.cache]).toEqual([200, 'miss', 200, 'hit'])
  expect(withoutOwn(second.text)).toBe(withoutOwn(first.text))
  expect(second.text.length).toBeGreaterThan(50)
  expect(running.seen.length).toBe(1)
})
