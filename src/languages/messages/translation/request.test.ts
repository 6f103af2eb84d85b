/** Requests of the messages language: as Anthropic is asked, and as its callers ask, there and back. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { Failure } from '../../../failure.ts'
import type { NeutralRequest } from '../../neutral.ts'
import { plainRequest } from '../../testing/samples.ts'
import { messages } from './language.ts'
import { defaultMaxTokens } from './write-request.ts'

const { provider, caller } = messages

const request = (members: Partial<NeutralRequest> = {}): NeutralRequest => ({
  ...plainRequest,
  model: 'claude-sonnet-4-6',
  ...members,
})

function refusedField(run: () => unknown): string | null {
  try {
    run()
  } catch (thrown) {
    if (thrown instanceof Failure && thrown.code === 'translation_unsupported') return thrown.param
    throw thrown
  }
  return null
}

const tool = { name: 'look', description: null, parameters: null, strict: null, at: 'tools.0' }

describe('a request for Anthropic', () => {
  test('has the caller’s limit, else the catalog’s, else the default plus the thinking budget', () => {
    const limited = request({ sampling: { maxOutputTokens: { value: 7, at: 'max_completion_tokens' } } })
    expect(provider.writeRequest(limited, { catalogMaximum: 64_000 }).max_tokens).toBe(7)
    expect(provider.writeRequest(request(), { catalogMaximum: 64_000 }).max_tokens).toBe(64_000)
    expect(provider.writeRequest(request()).max_tokens).toBe(defaultMaxTokens)
    const thinking = { value: { effort: null, budgetTokens: 3000, visible: null }, at: 'thinking' } as const
    expect(provider.writeRequest(request({ reasoning: thinking })).max_tokens).toBe(defaultMaxTokens + 3000)
  })

  test('writes an effort for newer models and a budget for older ones', () => {
    const thinks = (model: string) => {
      const reasoning = {
        value: { effort: 'high', budgetTokens: null, visible: true },
        at: 'reasoning_effort',
      } as const
      const { thinking, output_config } = provider.writeRequest(request({ model, reasoning }))
      return { thinking, output_config }
    }
    const adaptive = { type: 'adaptive', display: 'summarized' }
    for (const model of ['claude-opus-4-6', 'claude-sonnet-5', 'claude-opus-4-8', 'claude-fable-5-2']) {
      expect(thinks(model)).toEqual({ thinking: adaptive, output_config: { effort: 'high' } })
    }
    const enabled = { type: 'enabled', budget_tokens: 16_384, display: 'summarized' }
    for (const model of [
      'claude-sonnet-4-5-20250929',
      'claude-opus-4-1',
      'claude-sonnet-4-20250514',
      'claude-haiku-4-5',
    ]) {
      expect(thinks(model)).toEqual({ thinking: enabled, output_config: undefined })
    }
  })

  test('puts all results of parallel calls into the next turn, before the user’s words', () => {
    const call = (id: string) => ({ kind: 'tool_call', id, name: 'look', arguments: '{"a":1}', at: 'm' }) as const
    const result = (callId: string) =>
      ({ kind: 'tool_result', callId, name: null, parts: [], isError: callId === 'b', at: 'm' }) as const
    const { messages: written } = provider.writeRequest(
      request({
        turns: [
          { role: 'assistant', parts: [{ kind: 'text', text: '', at: 'm' }], at: 'm' },
          { role: 'assistant', parts: [call('a'), call('b')], at: 'm' },
          { role: 'tool', parts: [result('a')], at: 'm' },
          { role: 'tool', parts: [result('b')], at: 'm' },
          { role: 'user', parts: [{ kind: 'text', text: 'and?', at: 'm' }], at: 'm' },
        ],
      }),
    )
    expect(written).toEqual([
      {
        role: 'assistant',
        content: [
          { type: 'tool_use', id: 'a', name: 'look', input: { a: 1 } },
          { type: 'tool_use', id: 'b', name: 'look', input: { a: 1 } },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'a' },
          { type: 'tool_result', tool_use_id: 'b', is_error: true },
          { type: 'text', text: 'and?' },
        ],
      },
    ])
  })

  test('refuses what the language cannot express, and names the caller’s field', () => {
    const refused = (members: Partial<NeutralRequest>) => refusedField(() => provider.writeRequest(request(members)))
    expect(refused({ sampling: { seed: { value: 1, at: 'seed' } } })).toBe('seed')
    expect(refused({ sampling: { presencePenalty: { value: 1, at: 'presence_penalty' } } })).toBe('presence_penalty')
    expect(refused({ sampling: { presencePenalty: { value: 0, at: 'presence_penalty' } } })).toBeNull()
    expect(refused({ output: { value: { form: 'json' }, at: 'response_format' } })).toBe('response_format')
    expect(refused({ extras: new Map([['logprobs', { value: true, at: 'logprobs' }]]) })).toBe('logprobs')
    const said = (part: NeutralRequest['turns'][number]['parts'][number]) =>
      refused({ turns: [{ role: 'user', parts: [part], at: 'messages.0' }] })
    const at = 'messages.0.content.1'
    expect(said({ kind: 'audio', mediaType: 'audio/wav', source: { base64: '' }, at })).toBe(at)
    expect(said({ kind: 'image', mediaType: null, source: { fileId: 'f' }, at })).toBe(at)
    expect(said({ kind: 'tool_call', id: 'a', name: 'b', arguments: '[1]', at })).toBe(at)
  })

  test('converts call ids to the characters that Anthropic accepts, the same for a call and its result', () => {
    const call = { kind: 'tool_call', id: 'functions.look:0', name: 'look', arguments: '{}', at: 'm' } as const
    const result = { kind: 'tool_result', callId: call.id, name: 'look', parts: [], isError: false, at: 'm' } as const
    const { messages: written } = provider.writeRequest(
      request({
        turns: [
          { role: 'assistant', parts: [call], at: 'm' },
          { role: 'tool', parts: [result], at: 'm' },
        ],
      }),
    )
    const ids = JSON.stringify(written).match(/"call_[\w-]+"/g) ?? []
    expect([ids.length, new Set(ids).size]).toEqual([2, 1])
  })

  test('leaves out thoughts that only another provider can read', () => {
    const thought = { kind: 'thought', text: 'hm', signature: 's', redacted: null, at: 'm' } as const
    const cited = { title: null, url: 'https://host', citedText: null, original: { type: 'url_citation' } }
    const { messages: written } = provider.writeRequest(
      request({
        turns: [
          {
            role: 'assistant',
            parts: [
              { ...thought, language: 'gemini' },
              { ...thought, language: 'messages' },
              { kind: 'text', text: 'a', citations: [cited], at: 'm' },
              {
                kind: 'tool_call',
                id: 'a',
                name: 'look',
                arguments: '',
                signature: { text: 's', language: 'gemini' },
                at: 'm',
              },
            ],
            at: 'm',
          },
        ],
      }),
    )
    expect(written).toEqual([
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'hm', signature: 's' },
          { type: 'text', text: 'a' },
          { type: 'tool_use', id: 'a', name: 'look', input: {} },
        ],
      },
    ])
  })

  test('sends the parallel calls setting only with tools', () => {
    const parallelTools = { value: false, at: 'parallel_tool_calls' }
    expect(provider.writeRequest(request({ parallelTools })).tool_choice).toBeUndefined()
    expect(provider.writeRequest(request({ parallelTools, tools: [tool] })).tool_choice).toEqual({
      type: 'auto',
      disable_parallel_tool_use: true,
    })
  })
})

const marker = fc.constantFrom(
  {},
  { cache_control: { type: 'ephemeral' } },
  { cache_control: { type: 'ephemeral', ttl: '1h' } },
)
const marked = <Block extends object>(block: fc.Arbitrary<Block>) =>
  fc.tuple(block, marker).map(([members, cache]) => ({ ...members, ...cache }))
const word = fc.string({ minLength: 1, maxLength: 8 })
const callId = fc.stringMatching(/^[\w-]{1,8}$/)
const textBlock = marked(fc.record({ type: fc.constant('text'), text: word }))
const imageBlock = marked(
  fc.record({
    type: fc.constant('image'),
    source: fc.oneof(
      fc.record({ type: fc.constant('base64'), media_type: fc.constant('image/png'), data: fc.base64String() }),
      fc.record({ type: fc.constant('url'), url: fc.webUrl() }),
    ),
  }),
)
const documentBlock = marked(
  fc.record(
    {
      type: fc.constant('document'),
      source: fc.oneof(
        fc.record({ type: fc.constant('base64'), media_type: fc.constant('application/pdf'), data: fc.base64String() }),
        fc.record({ type: fc.constant('text'), media_type: fc.constant('text/plain'), data: word }),
      ),
      title: word,
      citations: fc.record({ enabled: fc.boolean() }),
    },
    { requiredKeys: ['type', 'source'] },
  ),
)
const jsonObject = fc.dictionary(word, fc.oneof(fc.integer(), word, fc.boolean()), { maxKeys: 3 })
const callBlock = marked(fc.record({ type: fc.constant('tool_use'), id: callId, name: word, input: jsonObject }))
const thoughtBlock = fc.oneof(
  fc.record({ type: fc.constant('thinking'), thinking: word, signature: word }),
  fc.record({ type: fc.constant('redacted_thinking'), data: word }),
)
const resultBlock = marked(
  fc.record(
    {
      type: fc.constant('tool_result'),
      tool_use_id: callId,
      content: fc.array(fc.oneof(textBlock, imageBlock), { minLength: 1, maxLength: 2 }),
      is_error: fc.constant(true),
    },
    { requiredKeys: ['type', 'tool_use_id'] },
  ),
)
const some = <Block>(block: fc.Arbitrary<Block>) => fc.array(block, { minLength: 1, maxLength: 3 })
const exchange = fc.tuple(
  fc.record({ role: fc.constant('user'), content: some(fc.oneof(resultBlock, textBlock, imageBlock, documentBlock)) }),
  fc.record({ role: fc.constant('assistant'), content: some(fc.oneof(textBlock, callBlock, thoughtBlock)) }),
)
const choice = fc.record(
  { type: fc.constantFrom('auto', 'any'), disable_parallel_tool_use: fc.boolean() },
  { requiredKeys: ['type'] },
)
const bodies = fc.record(
  {
    model: fc.constant('claude-opus-4-6'),
    max_tokens: fc.integer({ min: 1, max: 9000 }),
    messages: fc.array(exchange, { minLength: 1, maxLength: 3 }).map((turns) => turns.flat()),
    system: some(textBlock),
    tools: some(
      marked(
        fc.record(
          {
            name: word,
            description: word,
            input_schema: fc.constant({ type: 'object', properties: { a: { type: 'string' } } }),
            strict: fc.boolean(),
          },
          { requiredKeys: ['name', 'input_schema'] },
        ),
      ),
    ),
    tool_choice: choice,
    thinking: fc.constantFrom(
      { type: 'disabled' },
      { type: 'adaptive', display: 'omitted' },
      { type: 'enabled', budget_tokens: 2000 },
    ),
    temperature: fc.constantFrom(0, 0.5, 1),
    top_p: fc.constantFrom(0.1, 1),
    top_k: fc.nat(),
    stop_sequences: some(word),
    output_config: fc.constant({ format: { type: 'json_schema', schema: { type: 'object' } } }),
    metadata: fc.record({ user_id: word }),
    service_tier: fc.constant('standard_only'),
    stream: fc.constant(true),
  },
  { requiredKeys: ['model', 'max_tokens', 'messages'] },
)

test("a caller's request survives the way to the neutral form and back", () => {
  fc.assert(
    fc.property(bodies, (body) => expect(provider.writeRequest(caller.readRequest(body))).toEqual(body)),
    { numRuns: 100 },
  )
})

test('a caller’s members that only Anthropic understands are refused by name', () => {
  const refused = (members: object) =>
    refusedField(() => caller.readRequest({ model: 'm', max_tokens: 1, messages: [], ...members }))
  expect(refused({ mcp_servers: [{}] })).toBe('mcp_servers')
  expect(refused({ container: null })).toBeNull()
  expect(refused({ speed: 'fast' })).toBe('speed')
  expect(refused({ speed: 'standard' })).toBeNull()
  expect(refused({ never_heard_of: 1 })).toBe('never_heard_of')
  expect(refused({ tools: [{ name: 'w', type: 'web_search_20250305' }] })).toBe('tools.0.type')
  expect(refused({ messages: [{ role: 'user', content: [{ type: 'search_result' }] }] })).toBe(
    'messages.0.content.0.type',
  )
  expect(refused({ thinking: { type: 'between_tools' } })).toBe('thinking.type')
  const file = { type: 'document', source: { type: 'file', file_id: 'file_1' } }
  expect(refused({ messages: [{ role: 'user', content: [file] }] })).toBe('messages.0.content.0.source')
})

test('puts a cache marker for the whole request on its last block', () => {
  const body = { model: 'm', messages: [{ role: 'user', content: 'a' }], cache_control: { type: 'ephemeral' } }
  const [turn] = caller.readRequest(body).turns
  expect(turn?.parts[0]?.cache).toEqual({ value: { ttl: null }, at: 'cache_control' })
})
