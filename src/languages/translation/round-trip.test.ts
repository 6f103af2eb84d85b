/** What two languages can both say is the same after going there and back. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { chat } from '../chat/translation/language.ts'
import type { NeutralAnswer } from '../neutral.ts'
import { isObject, type JsonObject } from '../reading/json-value.ts'
import { responses } from '../responses/translation/language.ts'

const asked = { model: 'm', exchangeId: '0190a0c0-0000-7000-8000-000000000001', includeUsage: true }

const word = fc.stringMatching(/^[a-zA-Z0-9_-]{1,12}$/)
const words = fc.string({ minLength: 1, maxLength: 20 })
const base64 = fc.stringMatching(/^[A-Za-z0-9+/]{4,16}$/)
const optional = <Value>(arbitrary: fc.Arbitrary<Value>) => fc.option(arbitrary, { nil: undefined })

const schema = fc.constantFrom({ type: 'object' }, { type: 'object', properties: { a: { type: 'string' } } })
const detail = fc.constantFrom('auto', 'low', 'high')
const image = fc.oneof(
  fc.record({ url: fc.webUrl(), detail }),
  fc.record({ url: base64.map((bytes) => `data:image/png;base64,${bytes}`), detail }),
)
const file = fc.oneof(
  fc.record({ file_id: word }),
  fc.record({ filename: word, file_data: base64.map((bytes) => `data:application/pdf;base64,${bytes}`) }),
)
const userPart = fc.oneof(
  words.map((text) => ({ type: 'text', text })),
  image.map((image_url) => ({ type: 'image_url', image_url })),
  file.map((given) => ({ type: 'file', file: given })),
)

const userMessage = fc
  .oneof(words, fc.array(userPart, { minLength: 2, maxLength: 4 }))
  .map((content) => ({ role: 'user', content }))

const call = fc.record({ name: word, arguments: fc.json({ maxDepth: 1 }), result: words })

/** A question, what the assistant called and was told, what it said in the end. */
const exchange = fc.record({
  user: userMessage,
  calls: fc.array(call, { maxLength: 3 }),
  answer: words,
  refusal: optional(words),
})

const conversation = fc.array(exchange, { minLength: 1, maxLength: 3 }).map((exchanges) =>
  exchanges.flatMap(({ user, calls, answer, refusal }, turn) => {
    const ids = calls.map((_, index) => `call_${turn}_${index}`)
    const toolCalls = calls.map(({ name, arguments: text }, index) => ({
      id: ids[index],
      type: 'function',
      function: { name, arguments: text },
    }))
    const results = calls.map(({ result }, index) => ({ role: 'tool', tool_call_id: ids[index], content: result }))
    const called = calls.length === 0 ? [] : [{ role: 'assistant', content: null, tool_calls: toolCalls }, ...results]
    return [user, ...called, { role: 'assistant', content: answer, ...(refusal !== undefined && { refusal }) }]
  }),
)

const tool = fc
  .record({ name: word, description: optional(words), parameters: schema, strict: fc.boolean() })
  .map((called) => ({ type: 'function', function: given(called) }))

const toolChoice = fc.oneof(
  fc.constantFrom('auto', 'none', 'required'),
  word.map((name) => ({ type: 'function', function: { name } })),
)

const format = fc.oneof(
  fc.constantFrom({ type: 'text' }, { type: 'json_object' }),
  fc
    .record({ name: word, description: optional(words), schema, strict: optional(fc.boolean()) })
    .map((json_schema) => ({ type: 'json_schema', json_schema: given(json_schema) })),
)

/** What both languages have. */
const commonMembers = {
  tools: optional(fc.array(tool, { minLength: 1, maxLength: 3 })),
  tool_choice: optional(toolChoice),
  parallel_tool_calls: optional(fc.boolean()),
  response_format: optional(format),
  reasoning_effort: optional(fc.constantFrom('none', 'minimal', 'low', 'medium', 'high', 'xhigh')),
  max_completion_tokens: optional(fc.nat()),
  temperature: optional(fc.double({ min: 0, max: 2, noNaN: true }).map((value) => value + 0)),
  top_p: optional(fc.double({ min: 0.1, max: 1, noNaN: true })),
  user: optional(word),
  verbosity: optional(fc.constantFrom('low', 'medium', 'high')),
  service_tier: optional(fc.constantFrom('flex', 'priority')),
  prompt_cache_key: optional(word),
  metadata: optional(fc.constant({ team: 'a' })),
}
const chatMembers = {
  seed: optional(fc.nat()),
  frequency_penalty: optional(fc.constantFrom(-1, 0.5)),
  presence_penalty: optional(fc.constantFrom(-1, 0.5)),
  stop: optional(fc.array(words, { minLength: 1, maxLength: 4 })),
}

const requestOf = (members: Record<string, fc.Arbitrary<unknown>>) =>
  fc
    .record({ system: fc.array(words, { maxLength: 2 }), messages: conversation, members: fc.record(members) })
    .map(({ system, messages, members: others }) => ({
      model: 'm',
      messages: [...system.map((content) => ({ role: 'system', content })), ...messages],
      ...given(others),
    }))

/** Without the members that were not given. */
const given = (members: object): JsonObject =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))

/** A request without where its parts stood, which differs between bodies. */
function placeless(value: unknown): unknown {
  if (value instanceof Map) return [...value].toSorted().map(placeless)
  if (Array.isArray(value)) return value.map(placeless)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name, inner]) => name !== 'at' && inner !== undefined)
      .map(([name, inner]) => [name, placeless(inner)]),
  )
}

describe('requests', () => {
  test('chat is the same after it was read and written', () => {
    fc.assert(
      fc.property(requestOf({ ...commonMembers, ...chatMembers }), (body) => {
        expect(chat.provider.writeRequest(chat.caller.readRequest(body))).toEqual(body)
      }),
    )
  })

  test('keeps everything that chat and responses share on the way through responses', () => {
    fc.assert(
      fc.property(requestOf(commonMembers), (body) => {
        const read = chat.caller.readRequest(body)
        expect(placeless(responses.caller.readRequest(responses.provider.writeRequest(read)))).toEqual(placeless(read))
      }),
    )
  })
})

const usage = fc
  .record({
    input: fc.nat(1000),
    cached: fc.nat(100),
    written: fc.nat(100),
    output: fc.nat(1000),
    thought: fc.nat(100),
  })
  .map(({ input, cached, written, output, thought }) => ({
    inputTokens: input,
    outputTokens: output,
    cachedInputTokens: cached,
    cacheWriteTokens: written,
    reasoningTokens: thought,
  }))

const answer = fc
  .record({
    thought: optional(fc.record({ text: words, signature: word })),
    text: optional(words),
    refusal: optional(words),
    calls: fc.array(fc.record({ name: word, arguments: fc.json({ maxDepth: 1 }) }), { maxLength: 3 }),
    usage: fc.option(usage),
    length: fc.boolean(),
  })
  .map(({ thought, text, refusal, calls, usage: used, length }): NeutralAnswer => {
    const at = ''
    return {
      id: null,
      model: 'm',
      parts: [
        ...(thought
          ? [{ kind: 'thought' as const, ...thought, redacted: null, language: 'messages' as const, at }]
          : []),
        ...(text === undefined ? [] : [{ kind: 'text' as const, text, at }]),
        ...(refusal === undefined ? [] : [{ kind: 'refusal' as const, text: refusal, at }]),
        ...calls.map((called, index) => ({ kind: 'tool_call' as const, id: `call_${index}`, ...called, at })),
      ],
      finish: length ? 'length' : calls.length > 0 ? 'tool_calls' : refusal === undefined ? 'stop' : 'refusal',
      stopSequence: null,
      usage: used,
    }
  })

describe('answers', () => {
  for (const language of [chat, responses]) {
    test(`${language.provider.name} tells an answer whole: parts, signatures, why it ended, usage`, () => {
      fc.assert(
        fc.property(answer, (told) => {
          const read = language.provider.readAnswer(language.caller.writeAnswer(told, asked))
          // Whose thoughts they are only the mark says, which a caller brings back and a provider never sends.
          const parts = told.parts.map((part) =>
            part.kind === 'thought' && part.signature !== null
              ? { ...part, signature: `gatehouse.messages..${part.signature}`, language: language.provider.name }
              : part,
          )
          // A response always states its service tier.
          const tier = language === responses && told.usage !== null ? { serviceTier: 'default' } : {}
          const usage = told.usage === null ? null : { ...told.usage, ...tier }
          expect(placeless({ ...read, id: null })).toEqual(placeless({ ...told, parts, usage }))
        }),
      )
    })
  }
})

describe('thoughts', () => {
  const signed = {
    kind: 'thought',
    text: 'Hm',
    signature: 'c2ln',
    redacted: null,
    language: 'messages',
    at: '',
  } as const
  const hidden = { ...signed, text: '', signature: null, redacted: 'aGlk' } as const
  const told: NeutralAnswer = {
    ...{ id: null, model: 'm', finish: 'stop', stopSequence: null, usage: null },
    parts: [signed, hidden, { kind: 'text', text: 'So.', at: '' }],
  }

  test('a chat client that sends its message back brings them back, signatures and all', () => {
    const { choices } = chat.caller.writeAnswer(told, asked)
    const message = Array.isArray(choices) ? choices[0].message : null
    expect(message.reasoning_content).toBe('Hm')
    const { turns } = chat.caller.readRequest({ model: 'm', messages: [{ role: 'user', content: 'why' }, message] })
    expect(placeless(turns[1]?.parts)).toEqual(placeless(told.parts))
  })

  test('a chat client that kept the pieces of a thought brings it back whole, with the signature of its last', () => {
    const piece = (index: number, text: string) => ({ type: 'reasoning.text', index, text })
    const reasoning_details = [
      piece(0, 'let '),
      { ...piece(0, 'me '), signature: '' },
      { ...piece(0, 'think'), signature: 'gatehouse.messages..c2ln' },
      { ...piece(1, 'And so'), signature: 'gatehouse.messages..ZWxzZQ' },
      { type: 'reasoning.encrypted', index: 1, data: 'gatehouse.messages-hidden..aGlk' },
    ]
    const message = { role: 'assistant', content: 'So.', reasoning_details }
    const { turns } = chat.caller.readRequest({ model: 'm', messages: [{ role: 'user', content: 'why' }, message] })
    const parts = [{ ...signed, text: 'let me think' }, { ...signed, text: 'And so', signature: 'ZWxzZQ' }, hidden]
    expect(placeless(turns[1]?.parts)).toEqual(placeless([...parts, { kind: 'text', text: 'So.', at: '' }]))
  })

  test('a responses client that sends its items back brings them back, signatures and all', () => {
    const { output } = responses.caller.writeAnswer(told, asked)
    const { turns } = responses.caller.readRequest({ model: 'm', input: Array.isArray(output) ? output : [] })
    expect(placeless(turns[0]?.parts)).toEqual(placeless(told.parts))
  })
})
