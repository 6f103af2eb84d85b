/** What Gemini is asked and how its answers are read, and how its signatures come back through another language. */
import { describe, expect, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import fc from 'fast-check'
import { framesOf } from '../dialects/test-streams.ts'
import { Failure } from '../failure.ts'
import { collected } from './collected.ts'
import { gemini } from './gemini.ts'
import { messages } from './messages.ts'
import type { LanguageName, NeutralEvent, NeutralPart, NeutralRequest } from './neutral.ts'

const { provider } = gemini

const request = (members: Partial<NeutralRequest> = {}): NeutralRequest => ({
  model: 'gemini-3-pro',
  instructions: [],
  turns: [{ role: 'user', parts: [{ kind: 'text', text: 'hello', at: 'messages.0.content' }], at: 'messages.0' }],
  tools: [],
  toolChoice: null,
  parallelTools: null,
  output: null,
  reasoning: null,
  sampling: {},
  endUser: null,
  stream: false,
  extras: new Map(),
  ...members,
})

function refused(members: Partial<NeutralRequest>): string | null {
  try {
    provider.writeRequest(request(members))
  } catch (thrown) {
    if (thrown instanceof Failure && thrown.code === 'translation_unsupported') return thrown.param
    throw thrown
  }
  return null
}

const asking = (...parts: NeutralPart[]): Partial<NeutralRequest> => ({
  turns: [{ role: 'user', parts, at: 'messages.0' }],
})
const at = 'messages.0.content.1'
const call = (id: string, signature?: string, language: LanguageName = 'gemini'): NeutralPart => ({
  kind: 'tool_call',
  id,
  name: 'look',
  arguments: '{"a":1}',
  ...(signature !== undefined && { signature: { text: signature, language } }),
  at,
})
const result = (callId: string, isError = false): NeutralPart => ({
  kind: 'tool_result',
  callId,
  name: null,
  parts: [{ kind: 'text', text: 'seen', at }],
  isError,
  at,
})

describe('a request for Gemini', () => {
  test('has instructions, tools, output, sampling and thinking where the API has them', () => {
    const schema = { type: 'object', properties: { a: { type: 'string' } } }
    const written = provider.writeRequest(
      request({
        instructions: [{ kind: 'text', text: 'Be brief', at: 'system' }],
        tools: [{ name: 'look', description: 'Looks', parameters: schema, strict: true, at: 'tools.0' }],
        output: {
          value: { form: 'schema', name: 'n', description: 'd', schema, strict: true },
          at: 'response_format',
        },
        sampling: {
          maxOutputTokens: { value: 9, at: 'max_tokens' },
          topK: { value: 3, at: 'top_k' },
          seed: { value: 5, at: 'seed' },
          stop: { value: ['!'], at: 'stop' },
        },
        reasoning: { value: { effort: 'low', budgetTokens: null, visible: true }, at: 'reasoning_effort' },
      }),
    )
    expect(written).toEqual({
      contents: [{ role: 'user', parts: [{ text: 'hello' }] }],
      systemInstruction: { parts: [{ text: 'Be brief' }] },
      tools: [{ functionDeclarations: [{ name: 'look', description: 'Looks', parametersJsonSchema: schema }] }],
      toolConfig: { functionCallingConfig: { mode: 'VALIDATED' } },
      generationConfig: {
        maxOutputTokens: 9,
        topK: 3,
        seed: 5,
        stopSequences: ['!'],
        responseMimeType: 'application/json',
        responseJsonSchema: { ...schema, description: 'd' },
        thinkingConfig: { thinkingLevel: 'LOW', includeThoughts: true },
      },
    })
  })

  test('thinks by a budget before the third generation', () => {
    const thinking = (model: string, effort: 'none' | 'medium' | null, budgetTokens: number | null = null) =>
      provider.writeRequest(
        request({ model, reasoning: { value: { effort, budgetTokens, visible: null }, at: 'reasoning_effort' } }),
      ).generationConfig
    expect(thinking('gemini-2.5-flash', 'medium')).toEqual({ thinkingConfig: { thinkingBudget: 8192 } })
    expect(thinking('gemini-2.5-flash', 'none')).toEqual({ thinkingConfig: { thinkingBudget: 0 } })
    expect(thinking('gemini-2.5-flash', null)).toEqual({
      thinkingConfig: { thinkingBudget: -1, includeThoughts: true },
    })
    expect(thinking('gemini-3-pro', null, 500)).toEqual({
      thinkingConfig: { thinkingBudget: 500, includeThoughts: true },
    })
    expect(() => thinking('gemini-3-pro', 'none')).toThrow()
  })

  test('answers calls in the user’s turn right after them, with the calls’ names', () => {
    const { contents } = provider.writeRequest(
      request({
        turns: [
          { role: 'assistant', parts: [call('a', 'signed'), call('b')], at: 'm' },
          { role: 'tool', parts: [result('a')], at: 'm' },
          { role: 'tool', parts: [result('b', true)], at: 'm' },
          { role: 'user', parts: [{ kind: 'text', text: 'and?', at }], at: 'm' },
        ],
      }),
    )
    expect(contents).toEqual([
      {
        role: 'model',
        parts: [
          { functionCall: { id: 'a', name: 'look', args: { a: 1 } }, thoughtSignature: 'signed' },
          { functionCall: { id: 'b', name: 'look', args: { a: 1 } } },
        ],
      },
      {
        role: 'user',
        parts: [
          { functionResponse: { id: 'a', name: 'look', response: { output: 'seen' } } },
          { functionResponse: { id: 'b', name: 'look', response: { error: 'seen' } } },
          { text: 'and?' },
        ],
      },
    ])
  })

  test('lets the first call of a step without a signature pass the check of newer models', () => {
    const parts = (model: string) =>
      provider.writeRequest(request({ model, ...fromModel(call('a'), call('b')) })).contents
    expect(JSON.stringify(parts('gemini-3-pro')).match(/skip_thought_signature_validator/g)).toHaveLength(1)
    expect(JSON.stringify(parts('gemini-2.5-pro'))).not.toContain('skip_thought_signature_validator')
  })

  test('leaves out what it has not signed itself', () => {
    const thought = { kind: 'thought', text: 'hm', signature: 's', redacted: null, at } as const
    const parts: NeutralPart[] = [
      { ...thought, language: 'messages' },
      { ...thought, language: 'gemini' },
      call('a', "another's", 'chat'),
      call('b', 'own'),
    ]
    expect(provider.writeRequest(request({ model: 'gemini-2.5-pro', ...fromModel(...parts) })).contents).toEqual([
      {
        role: 'model',
        parts: [
          { text: 'hm', thought: true, thoughtSignature: 's' },
          { functionCall: { id: 'a', name: 'look', args: { a: 1 } } },
          { functionCall: { id: 'b', name: 'look', args: { a: 1 } }, thoughtSignature: 'own' },
        ],
      },
    ])
  })

  test('takes media as bytes and by address', () => {
    const png = { kind: 'image', mediaType: 'image/png', source: { base64: 'AA==' }, at } as const
    const pdf = {
      kind: 'document',
      mediaType: null,
      source: { url: 'https://host/a.pdf' },
      title: 'a.pdf',
      at,
    } as const
    const low = { detail: { value: 'low', at: `${at}.detail` } }
    const { contents } = provider.writeRequest(request(asking(png, pdf)))
    expect(contents).toEqual([
      {
        role: 'user',
        parts: [
          { inlineData: { mimeType: 'image/png', data: 'AA==' } },
          { text: 'a.pdf' },
          { fileData: { fileUri: 'https://host/a.pdf' } },
        ],
      },
    ])
    expect(provider.writeRequest(request(asking({ ...png, ...low }))).generationConfig).toEqual({
      mediaResolution: 'MEDIA_RESOLUTION_LOW',
    })
    expect(refused(asking({ ...png, ...low }, png))).toBe(`${at}.detail`)
  })

  test('refuses what it cannot say, and names the caller’s field', () => {
    const tools = [{ name: 'look', description: null, parameters: null, strict: null, at: 'tools.0' }]
    expect(refused({ parallelTools: { value: false, at: 'parallel_tool_calls' }, tools })).toBe('parallel_tool_calls')
    expect(refused({ turns: [{ role: 'system', parts: [], at: 'messages.3' }] })).toBe('messages.3')
    expect(refused({ extras: new Map([['logprobs', { value: true, at: 'logprobs' }]]) })).toBe('logprobs')
    expect(refused({ sampling: { stop: { value: [...'abcdef'], at: 'stop' } } })).toBe('stop')
    expect(refused(asking({ kind: 'image', mediaType: null, source: { fileId: 'f' }, at }))).toBe(at)
    expect(refused(asking(result('unheard-of')))).toBe(at)
    const hard = { value: { effort: 'xhigh', budgetTokens: null, visible: null }, at: 'reasoning_effort' } as const
    expect(refused({ reasoning: hard })).toBe('reasoning_effort')
  })
})

const fromModel = (...parts: NeutralPart[]): Partial<NeutralRequest> => ({
  turns: [{ role: 'assistant', parts, at: 'messages.0' }],
})

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

  test('says why it is over', () => {
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

  test('that fails says how', () => {
    const error = { code: 429, message: 'Quota exceeded', status: 'RESOURCE_EXHAUSTED' }
    const read = { status: 429, code: 'resource_exhausted', message: 'Quota exceeded' }
    expect(provider.readError(429, { error })).toEqual(read)
    expect(provider.readError(429, [{ error }])).toEqual(read)
    expect(provider.readError(500, 'none')).toMatchObject({ status: 500, code: null })
    expect(eventsOf(bytesOf([{ error }]))).toEqual([{ type: 'error', error: { ...read, status: null } }])
  })
})

test('signatures come back to Gemini through a caller of messages who sends the answer back as it came', async () => {
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
