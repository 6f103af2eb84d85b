import { expect, test } from 'bun:test'
import { Failure } from '../../failure.ts'
import type { NeutralEvent, NeutralMedia, NeutralPart, NeutralRequest, NeutralTurn } from '../neutral.ts'
import { plainRequest } from '../testing/samples.ts'
import { converse } from './language.ts'

const blank: NeutralRequest = { ...plainRequest, model: 'eu.anthropic.claude-sonnet-4-v1:0', turns: [] }

const turn = (role: NeutralTurn['role'], ...parts: NeutralPart[]): NeutralTurn => ({ role, parts, at: 'messages.0' })
const text = (value: string): NeutralPart => ({ kind: 'text', text: value, at: 'messages.0.content' })
const stated = <Value>(value: Value, at = 'field') => ({ value, at })
const write = (request: Partial<NeutralRequest>) => converse.provider.writeRequest({ ...blank, ...request })

function refused(request: Partial<NeutralRequest>): string | null {
  try {
    write(request)
  } catch (thrown) {
    if (thrown instanceof Failure && thrown.code === 'translation_unsupported') return thrown.param
    throw thrown
  }
  return 'not refused'
}

test("leaves out a turn that contains only another provider's thoughts", () => {
  const thought = { kind: 'thought', text: 'Hm', signature: 's', redacted: null, language: 'gemini', at: 'a' } as const
  const foreign = turn('assistant', thought)
  expect(write({ turns: [turn('user', text('Hi')), foreign, turn('user', text('Go on'))] })).toEqual({
    messages: [{ role: 'user', content: [{ text: 'Hi' }, { text: 'Go on' }] }],
  })
})

test('a conversation with tools: sides take turns, results are the user’s, markers are cache points', () => {
  const cache = stated({ ttl: '1h' as const })
  expect(
    write({
      instructions: [{ kind: 'text', text: 'Be brief', at: 'system', cache }],
      tools: [{ name: 'look', description: 'Looks', parameters: { type: 'object' }, strict: true, at: 'tools.0' }],
      toolChoice: stated({ name: 'look' }),
      turns: [
        turn('user', text('Hi')),
        turn(
          'assistant',
          { kind: 'thought', text: 'Hm', signature: 's', redacted: null, language: 'converse', at: 'a' },
          { kind: 'tool_call', id: 'c1', name: 'look', arguments: '{"x":1}', at: 'a' },
          { kind: 'tool_call', id: 'c2', name: 'look', arguments: '', at: 'a' },
        ),
        turn('tool', { kind: 'tool_result', callId: 'c1', name: null, parts: [], isError: true, at: 'a' }),
        turn('user', text(''), { ...text('Well?'), cache: stated({ ttl: null }) }),
      ],
    }),
  ).toEqual({
    system: [{ text: 'Be brief' }, { cachePoint: { type: 'default', ttl: '1h' } }],
    toolConfig: {
      tools: [
        { toolSpec: { name: 'look', description: 'Looks', inputSchema: { json: { type: 'object' } }, strict: true } },
      ],
      toolChoice: { tool: { name: 'look' } },
    },
    messages: [
      { role: 'user', content: [{ text: 'Hi' }] },
      {
        role: 'assistant',
        content: [
          { reasoningContent: { reasoningText: { text: 'Hm', signature: 's' } } },
          { toolUse: { toolUseId: 'c1', name: 'look', input: { x: 1 } } },
          { toolUse: { toolUseId: 'c2', name: 'look', input: {} } },
        ],
      },
      {
        role: 'user',
        content: [
          { toolResult: { toolUseId: 'c1', content: [], status: 'error' } },
          { text: 'Well?' },
          { cachePoint: { type: 'default' } },
        ],
      },
    ],
  })
})

test('images, documents under names of their own, and audio', () => {
  const media = (part: Partial<NeutralPart> & { kind: 'image' | 'document' | 'audio' }): NeutralPart => ({
    mediaType: null,
    source: { base64: 'AA==' },
    at: 'a',
    ...part,
  })
  const pdf = { kind: 'document', mediaType: 'application/pdf', title: 'a/b.pdf' } as const
  expect(
    write({
      turns: [
        turn(
          'user',
          media({ kind: 'image', mediaType: 'image/png' }),
          media({ kind: 'image', source: { url: 's3://bucket/key.webp' } }),
          media(pdf),
          media(pdf),
          media({ kind: 'document', source: { text: 'words' }, citations: stated(true) }),
          media({ kind: 'audio', mediaType: 'audio/mpeg' }),
        ),
      ],
    }).messages,
  ).toEqual([
    {
      role: 'user',
      content: [
        { image: { format: 'png', source: { bytes: 'AA==' } } },
        { image: { format: 'webp', source: { s3Location: { uri: 's3://bucket/key.webp' } } } },
        { document: { format: 'pdf', name: 'a-b-pdf', source: { bytes: 'AA==' } } },
        { document: { format: 'pdf', name: 'a-b-pdf 2', source: { bytes: 'AA==' } } },
        { document: { format: 'txt', name: 'document', source: { text: 'words' }, citations: { enabled: true } } },
        { audio: { format: 'mp3', source: { bytes: 'AA==' } } },
      ],
    },
  ])
})

test('media that Converse does not fetch are refused by that, whatever their format', () => {
  const refusal = (source: NeutralMedia['source']) => () =>
    write({ turns: [turn('user', { kind: 'image', mediaType: null, source, at: 'messages.0.content.1' })] })
  expect(refusal({ fileId: 'file_1' })).toThrow('a file belongs to the provider it was sent to')
  expect(refusal({ url: 'http://a.example/a.png' })).toThrow('Converse fetches no other address')
  expect(refusal({ url: 'http://a.example/a' })).toThrow('Converse fetches no other address')
})

test('writes settings, a schema, metadata, and the extra members of Anthropic’s models', () => {
  const schema = { type: 'object' }
  expect(
    write({
      sampling: {
        maxOutputTokens: stated(4000),
        temperature: stated(0.5),
        topP: stated(0.9),
        topK: stated(40),
        stop: stated(['END']),
      },
      reasoning: stated({ effort: 'high', budgetTokens: null, visible: null }),
      output: stated({ form: 'schema', name: 'n', description: null, schema, strict: true }),
      endUser: stated('user-1'),
      extras: new Map([['service_tier', stated('flex')]]),
    }),
  ).toEqual({
    messages: [],
    inferenceConfig: { maxTokens: 4000, temperature: 0.5, topP: 0.9, stopSequences: ['END'] },
    outputConfig: {
      textFormat: { type: 'json_schema', structure: { jsonSchema: { schema: '{"type":"object"}', name: 'n' } } },
    },
    serviceTier: { type: 'flex' },
    additionalModelRequestFields: { top_k: 40, thinking: { type: 'enabled', budget_tokens: 2000 } },
    additionalModelResponseFieldPaths: ['/stop_sequence'],
    requestMetadata: { end_user: 'user-1' },
  })
})

test('refuses what the language cannot express, and names the caller’s field', () => {
  const image = { kind: 'image', mediaType: 'image/png', at: 'here' } as const
  const call: NeutralPart = { kind: 'tool_call', id: 'c', name: 'n', arguments: '[1]', at: 'here' }
  const tools = [{ name: 'n', description: null, parameters: null, strict: null, at: 'tools.0' }]
  const cases: Partial<NeutralRequest>[] = [
    { sampling: { seed: stated(1, 'here') } },
    { sampling: { topK: stated(1, 'here') }, model: 'meta.llama3' },
    { extras: new Map([['verbosity', stated('low', 'here')]]) },
    { parallelTools: stated(false, 'here') },
    { output: stated({ form: 'json' }, 'here') },
    { reasoning: stated({ effort: 'high', budgetTokens: null, visible: null }, 'here'), model: 'meta.llama3' },
    { turns: [{ role: 'system', parts: [], at: 'here' }] },
    { turns: [{ role: 'user', parts: [], name: stated('Ann', 'here'), at: '' }] },
    { turns: [turn('user', { ...image, source: { url: 'https://example.com/a.png' } })] },
    { turns: [turn('user', { ...image, source: { base64: '' }, detail: stated('low', 'here') })] },
    { turns: [turn('user', { ...image, mediaType: 'image/tiff', source: { base64: '' } })] },
    { turns: [turn('assistant', call)] },
    { turns: [turn('assistant', { ...call, arguments: '{}' })], tools, toolChoice: stated('none', 'here') },
  ]
  for (const request of cases) expect(refused(request)).toBe('here')
  expect(write({ tools, toolChoice: stated('none'), endUser: stated('{"a":1}') })).toEqual({ messages: [] })
})

test('a whole answer with thoughts, a call and cited text; input counts what the cache read and wrote', () => {
  const answer = converse.provider.readAnswer({
    output: {
      message: {
        role: 'assistant',
        content: [
          { reasoningContent: { reasoningText: { text: 'Hm', signature: 's' } } },
          { reasoningContent: { redactedContent: 'AA==' } },
          {
            citationsContent: {
              content: [{ text: 'Sky' }],
              citations: [{ title: 'T', sourceContent: [{ text: 'q' }] }],
            },
          },
          { toolUse: { toolUseId: 'c', name: 'n', input: { a: 1 } } },
        ],
      },
    },
    stopReason: 'tool_use',
    usage: {
      inputTokens: 10,
      outputTokens: 5,
      cacheReadInputTokens: 100,
      cacheWriteInputTokens: 20,
      cacheDetails: [{ ttl: '1h', inputTokens: 15 }],
    },
  })
  expect(answer).toMatchObject({
    finish: 'tool_calls',
    parts: [
      { kind: 'thought', text: 'Hm', signature: 's', redacted: null, language: 'converse' },
      { kind: 'thought', text: '', redacted: 'AA==' },
      { kind: 'text', text: 'Sky', citations: [{ title: 'T', url: null, citedText: 'q' }] },
      { kind: 'tool_call', id: 'c', name: 'n', arguments: '{"a":1}' },
    ],
    usage: {
      inputTokens: 130,
      outputTokens: 5,
      cachedInputTokens: 100,
      cacheWriteTokens: 20,
      cacheWriteHourTokens: 15,
    },
  })
  expect(() => converse.provider.readAnswer({ message: 'no' })).toThrow(
    expect.objectContaining({ code: 'upstream_provider_error' }),
  )
})

function follow(frames: readonly [string, object][]): NeutralEvent[] {
  const reader = converse.provider.streamReader()
  return [...frames.flatMap(([event, data]) => reader.frame(event, JSON.stringify(data))), ...reader.end()]
}

test('a stream: blocks begin with their first piece, and metadata ends it', () => {
  expect(
    follow([
      ['messageStart', { role: 'assistant' }],
      ['contentBlockDelta', { contentBlockIndex: 0, delta: { reasoningContent: { text: 'Hm' } } }],
      ['contentBlockDelta', { contentBlockIndex: 0, delta: { reasoningContent: { signature: 's' } } }],
      ['contentBlockStop', { contentBlockIndex: 0 }],
      ['contentBlockDelta', { contentBlockIndex: 1, delta: { text: 'Hi' } }],
      ['contentBlockStart', { contentBlockIndex: 2, start: { toolUse: { toolUseId: 'c', name: 'n' } } }],
      ['contentBlockDelta', { contentBlockIndex: 2, delta: { toolUse: { input: '{}' } } }],
      ['messageStop', { stopReason: 'tool_use' }],
      ['metadata', { usage: { inputTokens: 1, outputTokens: 2 } }],
    ]),
  ).toMatchObject([
    { type: 'start' },
    { type: 'part', part: 0, kind: 'thought' },
    { type: 'text', part: 0, text: 'Hm' },
    { type: 'signature', part: 0, signature: 's', redacted: false, language: 'converse' },
    { type: 'part_end', part: 0 },
    { type: 'part', part: 1, kind: 'text' },
    { type: 'text', part: 1, text: 'Hi' },
    { type: 'part', part: 2, kind: 'tool_call', id: 'c', name: 'n' },
    { type: 'text', part: 2, text: '{}' },
    { type: 'finish', finish: 'tool_calls' },
    { type: 'usage', usage: { inputTokens: 1, outputTokens: 2 } },
    { type: 'end' },
  ])
})

test('media in an answer are no answer, whole or in a stream', () => {
  const image = { format: 'png', source: { bytes: 'AAAA' } }
  const output = { message: { role: 'assistant', content: [{ text: 'Here' }, { image }] } }
  expect(() => converse.provider.readAnswer({ output, stopReason: 'end_turn' })).toThrow('media')
  expect(() => follow([['contentBlockStart', { contentBlockIndex: 0, start: { image } }]])).toThrow('media')
  expect(() => follow([['contentBlockDelta', { contentBlockIndex: 0, delta: { image } }]])).toThrow('media')
})

test('a stream that breaks off has no end; one that only lacks its metadata has', () => {
  const begun: [string, object][] = [['contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'Hi' } }]]
  expect(follow(begun).map(({ type }) => type)).toEqual(['part', 'text'])
  const stopped = follow([...begun, ['messageStop', { stopReason: 'guardrail_intervened' }]])
  expect(stopped.slice(-2)).toMatchObject([{ finish: 'content_filter' }, { type: 'end' }])
})

test('an exception in a stream is an error with its name', () => {
  expect(follow([['throttlingException', { message: 'Slow down' }]])).toEqual([
    { type: 'error', error: { status: null, code: 'throttlingException', message: 'Slow down' } },
  ])
})

test('an error of any form has a message', () => {
  const read = converse.provider.readError
  expect(read(403, { __type: 'AccessDeniedException', Message: 'No' })).toEqual({
    status: 403,
    code: 'AccessDeniedException',
    message: 'No',
  })
  expect(read(502, 'Bad gateway').message).toBe('Bad gateway')
  expect(read(500, null).message).not.toBe('')
})

test("leaves out another provider's thoughts", () => {
  const foreign = { kind: 'thought', text: 'hm', signature: 's', redacted: null, language: 'gemini', at: '' } as const
  const own = { ...foreign, language: 'converse' } as const
  const { messages } = write({ turns: [turn('assistant', foreign, own)] })
  expect(messages).toEqual([
    { role: 'assistant', content: [{ reasoningContent: { reasoningText: { text: 'hm', signature: 's' } } }] },
  ])
})
