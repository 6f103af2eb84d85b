/** For each pair of the languages that applications speak: what both can say is the same after going there and back. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { chat } from '../chat/translation/language.ts'
import { messages } from '../messages/translation/language.ts'
import type { NeutralAnswer, NeutralEvent, NeutralPart } from '../neutral.ts'
import type { JsonObject } from '../reading/json-value.ts'
import { responses } from '../responses/translation/language.ts'
import { asked, eventsOf, written } from '../testing/clients.ts'
import { collected } from './collect-stream.ts'

const spoken = { chat, responses, messages }
const pairs = Object.entries(spoken).flatMap(([from, there]) =>
  Object.entries(spoken).flatMap(([to, back]) => (from === to ? [] : [{ name: `${from} and ${to}`, there, back }])),
)

const word = fc.stringMatching(/^[a-zA-Z0-9_-]{1,12}$/)
const words = fc.string({ minLength: 1, maxLength: 20 })
const optional = <Value>(arbitrary: fc.Arbitrary<Value>) => fc.option(arbitrary, { nil: undefined })
const given = (members: object): JsonObject =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))

const schema = { type: 'object', properties: { a: { type: 'string' } } }
const image = fc.oneof(
  fc.webUrl(),
  fc.stringMatching(/^[A-Za-z0-9+/]{4,16}$/).map((bytes) => `data:image/png;base64,${bytes}`),
)
const content = fc.oneof(
  words,
  fc.tuple(words, image).map(([text, url]) => [
    { type: 'text', text },
    { type: 'image_url', image_url: { url, detail: 'auto' } },
  ]),
)
const callArguments = fc
  .dictionary(word, fc.oneof(fc.integer(), words), { maxKeys: 2 })
  .map((value) => JSON.stringify(value))
const exchange = fc.record({
  content,
  calls: fc.array(fc.record({ name: word, arguments: callArguments, result: words }), { maxLength: 3 }),
  answer: words,
})
const conversation = fc.array(exchange, { minLength: 1, maxLength: 3 }).map((exchanges) =>
  exchanges.flatMap(({ content: asking, calls, answer }, turn) => {
    const id = (index: number) => `call_${turn}_${index}`
    const toolCalls = calls.map(({ result, ...called }, index) => ({
      id: id(index),
      type: 'function',
      function: called,
    }))
    const results = calls.map(({ result }, index) => ({ role: 'tool', tool_call_id: id(index), content: result }))
    const called = calls.length === 0 ? [] : [{ role: 'assistant', content: null, tool_calls: toolCalls }, ...results]
    return [{ role: 'user', content: asking }, ...called, { role: 'assistant', content: answer }]
  }),
)
const tool = fc
  .record({ name: word, description: optional(words), strict: fc.boolean() })
  .map((called) => ({ type: 'function', function: { ...given(called), parameters: schema } }))
const tools = fc.record({
  tools: fc.array(tool, { minLength: 1, maxLength: 3 }),
  tool_choice: fc.oneof(
    fc.constantFrom('auto', 'required'),
    word.map((name) => ({ type: 'function', function: { name } })),
  ),
  parallel_tool_calls: fc.boolean(),
})
const format = { type: 'json_schema', json_schema: { name: 'output', schema, strict: true } }
/** What all three languages have, as chat says it. */
const bodies = fc
  .record({
    system: optional(words),
    messages: conversation,
    tools: optional(tools),
    members: fc.record({
      max_completion_tokens: fc.integer({ min: 1, max: 9000 }),
      temperature: optional(fc.constantFrom(0, 0.5, 1)),
      top_p: optional(fc.constantFrom(0.1, 1)),
      reasoning_effort: optional(fc.constantFrom('low', 'medium', 'high', 'xhigh', 'max')),
      response_format: optional(fc.constant(format)),
      user: optional(word),
      stream: optional(fc.constant(true)),
    }),
  })
  .map(({ system, messages: turns, tools: used, members }) => ({
    model: 'claude-sonnet-4-6',
    messages: [...(system === undefined ? [] : [{ role: 'system', content: system }]), ...turns],
    ...used,
    ...given(members),
  }))

const answers = fc
  .record({
    text: words,
    calls: fc.array(fc.record({ name: word, arguments: callArguments }), { maxLength: 3 }),
    length: fc.boolean(),
    usage: fc.record({ input: fc.nat(1000), cached: fc.nat(100), output: fc.nat(1000), thought: fc.nat(100) }),
  })
  .map(({ text, calls, length, usage }): NeutralAnswer => {
    const said: NeutralPart = { kind: 'text', text, at: '' }
    return {
      ...{ id: 'a', model: 'm', stopSequence: null },
      parts: [
        said,
        ...calls.map((call, index) => ({ kind: 'tool_call' as const, id: `call_${index}`, ...call, at: '' })),
      ],
      finish: length ? 'length' : calls.length > 0 ? 'tool_calls' : 'stop',
      usage: {
        inputTokens: usage.input + usage.cached,
        outputTokens: usage.output,
        cachedInputTokens: usage.cached,
        cacheWriteTokens: null,
        reasoningTokens: usage.thought,
      },
    }
  })

/** What an answer says, without its ids and places, which each language has its own of. */
const toldBy = ({ parts, finish, usage }: NeutralAnswer) => ({
  parts: parts.map(({ at, ...part }) => part),
  finish,
  usage: [usage?.inputTokens, usage?.outputTokens, usage?.cachedInputTokens, usage?.reasoningTokens],
})

/** The answer as the events of a stream, its texts in pieces. */
const streamed = ({ parts, finish, usage }: NeutralAnswer): NeutralEvent[] => [
  { type: 'start', id: 'a', model: 'm' },
  ...parts.flatMap((part, number): NeutralEvent[] => {
    if (part.kind !== 'text' && part.kind !== 'tool_call') return []
    const { id, name } = part.kind === 'tool_call' ? part : { id: '', name: '' }
    const text = part.kind === 'tool_call' ? part.arguments : part.text
    const begun = part.kind === 'tool_call' ? { kind: part.kind, id, name } : { kind: part.kind }
    return [
      { type: 'part', part: number, ...begun },
      ...(text.match(/.{1,3}/gsu) ?? []).map((piece): NeutralEvent => ({ type: 'text', part: number, text: piece })),
      { type: 'part_end', part: number },
    ]
  }),
  ...(usage === null ? [] : [{ type: 'usage' as const, usage }]),
  { type: 'finish', finish, stopSequence: null },
  { type: 'end' },
]

/** An image that is looked at as the provider likes: some languages say so, some cannot. */
const undetailed = (body: JsonObject): unknown =>
  JSON.parse(JSON.stringify(body, (name, value) => (name === 'detail' && value === 'auto' ? undefined : value)))

describe.each(pairs)('$name', ({ there, back }) => {
  test('a request', () => {
    fc.assert(
      fc.property(bodies, (body) => {
        const before = there.provider.writeRequest(chat.caller.readRequest(body))
        const between = back.provider.writeRequest(there.caller.readRequest(before))
        expect(undetailed(there.provider.writeRequest(back.caller.readRequest(between)))).toEqual(undetailed(before))
      }),
      { numRuns: 15 },
    )
  })

  test('an answer, whole and streamed', () => {
    fc.assert(
      fc.property(answers, (answer) => {
        const between = there.provider.readAnswer(there.caller.writeAnswer(answer, asked))
        const after = back.provider.readAnswer(back.caller.writeAnswer(between, asked))
        expect(toldBy(after)).toEqual(toldBy(answer))
        const stream = Buffer.from(written(there.caller, streamed(answer)))
        const again = Buffer.from(written(back.caller, eventsOf(there.provider, stream)))
        expect(toldBy(collected(eventsOf(back.provider, again)))).toEqual(toldBy(answer))
      }),
      { numRuns: 15 },
    )
  })
})
