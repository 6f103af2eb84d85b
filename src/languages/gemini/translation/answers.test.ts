/** How Gemini's answers are read, and how its signatures come back through another language. */
import { describe, expect, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import fc from 'fast-check'
import { messages } from '../../messages/translation/language.ts'
import type { NeutralEvent } from '../../neutral.ts'
import { framesOf } from '../../testing/streams.ts'
import { collected } from '../../translation/collect-stream.ts'
import { gemini } from './language.ts'

const { provider } = gemini

const chunk = (parts: object[], members: object = {}) => ({
  candidates: [{ content: { role: 'model', parts }, index: 0, ...members }],
  responseId: 'r-1',
  modelVersion: 'gemini-3-pro',
  usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 4, thoughtsTokenCount: 3, cachedContentTokenCount: 6 },
})

const stream = [
  chunk([{ text: 'I think', thought: true }]),
  chunk([{ text: ' so', thought: true }]),
  chunk([{ text: 'Loo' }]),
  chunk([{ text: 'king' }]),
  chunk([
    { functionCall: { name: 'look', args: { a: 'ä' } }, thoughtSignature: 'sig+/=' },
    { functionCall: { name: 'look', args: {} } },
  ]),
  chunk([], { finishReason: 'STOP' }),
]
const bytesOf = (chunks: readonly object[]) =>
  Buffer.from(chunks.map((each) => `data: ${JSON.stringify(each)}\r\n\r\n`).join(''))

function eventsOf(bytes: Uint8Array, cuts: readonly number[] = []): NeutralEvent[] {
  const reader = provider.streamReader()
  const events = framesOf(bytes, cuts).flatMap(({ event, data }) => (data === null ? [] : reader.frame(event, data)))
  return [...events, ...reader.end()]
}

const expected: readonly object[] = [
  { kind: 'thought', text: 'I think so', signature: null },
  { kind: 'text', text: 'Looking' },
  {
    kind: 'tool_call',
    id: 'call_r-1_0',
    name: 'look',
    arguments: '{"a":"ä"}',
    signature: { text: 'sig+/=', language: 'gemini' },
  },
  { kind: 'tool_call', id: 'call_r-1_1', name: 'look', arguments: '{}' },
]
const usage = { inputTokens: 10, outputTokens: 7, cachedInputTokens: 6, cacheWriteTokens: null, reasoningTokens: 3 }

describe('an answer of Gemini', () => {
  test('is the same streamed, whole, and by any split of its bytes', () => {
    const events = eventsOf(bytesOf(stream))
    expect(events.at(-1)).toEqual({ type: 'end' })
    const answer = { id: 'r-1', model: 'gemini-3-pro', parts: expected, finish: 'tool_calls', usage }
    expect(collected(events)).toMatchObject(answer)
    const parts = [
      { text: 'I think so', thought: true },
      { text: 'Looking' },
      ...(stream[4]?.candidates[0]?.content.parts ?? []),
    ]
    expect(provider.readAnswer(chunk(parts, { finishReason: 'STOP' }))).toMatchObject(answer)
    const bytes = bytesOf(stream)
    const cuts = fc.array(fc.integer({ min: 1, max: bytes.length - 1 }), { maxLength: 20 })
    fc.assert(
      fc.property(cuts, (places) =>
        expect(
          eventsOf(
            bytes,
            places.sort((a, b) => a - b),
          ),
        ).toEqual(events),
      ),
      { numRuns: 50 },
    )
  })

  test('cites of a text that is signed too, before the text ends', () => {
    const citationMetadata = { citationSources: [{ uri: 'https://example.com/a', startIndex: 0, endIndex: 4 }] }
    const cited = [chunk([{ text: 'Said.', thoughtSignature: 'sig' }], { citationMetadata, finishReason: 'STOP' })]
    const types = eventsOf(bytesOf(cited)).map(({ type }) => type)
    expect(types.join(' ')).toStartWith('start part text citation part_end part signature part_end ')
    expect(provider.readAnswer(cited[0]).parts).toMatchObject([
      { kind: 'text', citations: [{ url: 'https://example.com/a' }] },
      { kind: 'thought', signature: 'sig' },
    ])
  })

  test('that breaks off has no end', () => {
    expect(eventsOf(bytesOf(stream.slice(0, 5))).map(({ type }) => type)).not.toContain('end')
  })

  test('reports why it ended', () => {
    const finish = (finishReason: string) => provider.readAnswer(chunk([], { finishReason })).finish
    expect(['STOP', 'MAX_TOKENS', 'SAFETY', 'RECITATION', 'MALFORMED_FUNCTION_CALL', 'OTHER'].map(finish)).toEqual([
      'stop',
      'length',
      'content_filter',
      'content_filter',
      'error',
      'error',
    ])
    const blocked = { promptFeedback: { blockReason: 'SAFETY' }, usageMetadata: { promptTokenCount: 3 } }
    expect(provider.readAnswer(blocked)).toMatchObject({
      parts: [],
      finish: 'content_filter',
      usage: { inputTokens: 3 },
    })
    expect(eventsOf(bytesOf([blocked])).at(-1)).toEqual({ type: 'end' })
    for (const none of [null, 'text', {}, chunk([])]) expect(() => provider.readAnswer(none)).toThrow()
  })

  test('cites its sources', () => {
    const source = { startIndex: 0, endIndex: 4, uri: 'https://host', license: '' }
    const cited = chunk([{ text: 'Said' }], { citationMetadata: { citationSources: [source] }, finishReason: 'STOP' })
    expect(provider.readAnswer(cited).parts).toMatchObject([
      { text: 'Said', citations: [{ url: 'https://host', title: null, original: source }] },
    ])
  })

  test('reports its failure', () => {
    const error = { code: 429, message: 'Quota exceeded', status: 'RESOURCE_EXHAUSTED' }
    const read = { status: 429, code: 'resource_exhausted', message: 'Quota exceeded' }
    expect(provider.readError(429, { error })).toEqual(read)
    expect(provider.readError(429, [{ error }])).toEqual(read)
    expect(provider.readError(500, 'none')).toMatchObject({ status: 500, code: null })
    expect(eventsOf(bytesOf([{ error }]))).toEqual([{ type: 'error', error: { ...read, status: null } }])
  })
})

test('returns signatures to Gemini through a messages caller that sends the answer back unchanged', async () => {
  const writer = messages.caller?.streamWriter({ model: 'm', exchangeId: 'e', includeUsage: true })
  const signedText = [chunk([{ text: 'Done', thoughtSignature: 'of-text' }]), ...stream.slice(4)]
  const bytes = eventsOf(bytesOf(signedText))
    .map((event) => writer?.event(event))
    .join('')
  const headers = { 'content-type': 'text/event-stream' }
  const client = new Anthropic({ apiKey: 'none', fetch: async () => new Response(bytes, { headers }) })
  const question = { role: 'user' as const, content: 'a' }
  const { content, stop_reason, usage } = await client.messages
    .stream({ model: 'm', max_tokens: 5, messages: [question] })
    .finalMessage()
  expect([stop_reason, usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens]).toEqual([
    'tool_use',
    4,
    6,
    7,
  ])
  const results = content.flatMap((block) =>
    block.type === 'tool_use' ? [{ type: 'tool_result', tool_use_id: block.id, content: 'seen' }] : [],
  )
  const next = messages.caller?.readRequest({
    model: 'gemini-3-pro',
    max_tokens: 5,
    messages: [question, { role: 'assistant', content }, { role: 'user', content: results }],
  })
  if (next === undefined) throw new Error('Applications speak messages')
  expect(provider.writeRequest(next).contents).toEqual([
    { role: 'user', parts: [{ text: 'a' }] },
    {
      role: 'model',
      parts: [
        { text: 'Done' },
        { text: '', thoughtSignature: 'of-text' },
        { functionCall: { id: 'call_r-1_0', name: 'look', args: { a: 'ä' } }, thoughtSignature: 'sig+/=' },
        { functionCall: { id: 'call_r-1_1', name: 'look', args: {} } },
      ],
    },
    {
      role: 'user',
      parts: ['call_r-1_0', 'call_r-1_1'].map((id) => ({
        functionResponse: { id, name: 'look', response: { output: 'seen' } },
      })),
    },
  ])
})
