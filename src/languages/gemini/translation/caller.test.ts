/** What callers of Gemini's language say to other providers, and what they are told. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { Failure } from '../../../failure.ts'
import { chat } from '../../chat/translation/language.ts'
import { messages } from '../../messages/translation/language.ts'
import type { NeutralAnswer, NeutralEvent, NeutralPart } from '../../neutral.ts'
import type { JsonObject } from '../../reading/json-value.ts'
import { asked, eventsOf, written } from '../../testing/clients.ts'
import { framesOf } from '../../testing/streams.ts'
import { collected } from '../../translation/collect-stream.ts'
import { Lenience } from '../../translation/lenience.ts'
import { gatewayForm, wireForm } from '../request-form.ts'
import { gemini } from './language.ts'
import { jsonSchemaOf } from './schema.ts'

const url = 'http://localhost/v1beta/models/m:generateContent'
const body = (request: JsonObject): JsonObject => JSON.parse(gatewayForm(JSON.stringify(request), url))
const read = (request: JsonObject, lenience?: Lenience) => gemini.caller.readRequest(body(request), lenience)
const user = (...parts: JsonObject[]) => ({ role: 'user', parts })
const model = (...parts: JsonObject[]) => ({ role: 'model', parts })
const hello = { contents: [user({ text: 'Hello' })] }
const shows = { ...asked, request: body({ ...hello, generationConfig: { thinkingConfig: { includeThoughts: true } } }) }

function refused(request: JsonObject): string | null {
  try {
    chat.provider.writeRequest(read(request))
  } catch (thrown) {
    if (thrown instanceof Failure) return thrown.param
  }
  return null
}

const word = fc.stringMatching(/^[a-zA-Z0-9_-]{1,12}$/)
const words = fc.string({ minLength: 1, maxLength: 20 })
const args = fc.dictionary(word, fc.oneof(fc.integer(), words), { maxKeys: 2 })
const turns = fc.array(
  fc.record({
    text: words,
    calls: fc.array(fc.record({ name: word, args, output: words }), { maxLength: 3 }),
    answer: words,
  }),
  { minLength: 1, maxLength: 3 },
)
const contents = turns.map((all) =>
  all.flatMap(({ text, calls, answer }, turn) => [
    user({ text }),
    ...(calls.length === 0
      ? []
      : [
          model(
            ...calls.map((call, at) => ({ functionCall: { id: `c${turn}${at}`, name: call.name, args: call.args } })),
          ),
          user(
            ...calls.map(({ name, output }, at) => ({
              functionResponse: { id: `c${turn}${at}`, name, response: { output } },
            })),
          ),
        ]),
    model({ text: answer }),
  ]),
)

/** The parts without the signature that the writer gives to unsigned calls. */
const unsigned = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value), (name, inner) => (name === 'thoughtSignature' ? undefined : inner))

describe('a request', () => {
  test('is the same on the wire, after the gateway has read it in its own form', () => {
    const config = fc.record({ temperature: fc.double({ noNaN: true }), maxOutputTokens: fc.nat() })
    fc.assert(
      fc.property(contents, config, (all, generationConfig) => {
        const request = { contents: all, generationConfig }
        expect(JSON.parse(wireForm(gatewayForm(JSON.stringify(request), url)))).toEqual(
          JSON.parse(JSON.stringify(request)),
        )
      }),
      { numRuns: 25 },
    )
  })

  test.each([chat, messages])('says the same after going to another language and back', (other) => {
    fc.assert(
      fc.property(contents, (all) => {
        const between = other.provider.writeRequest(read({ contents: all }))
        const again = gemini.provider.writeRequest(other.caller.readRequest(between))
        const direct = gemini.provider.writeRequest(read({ contents: all }))
        expect(unsigned(again.contents)).toEqual(unsigned(direct.contents))
      }),
      { numRuns: 25 },
    )
  })

  test('joins the pieces of a streamed thought up to its signature', () => {
    const thinks = (text: string, thoughtSignature?: string) => ({
      ...{ text, thought: true },
      ...(thoughtSignature && { thoughtSignature }),
    })
    const parts = [thinks('I look'), thinks(' first.'), thinks('', 'gatehouse.messages..sig'), thinks('Next')]
    expect(read({ contents: [model(...parts, { text: 'Done' })] }).turns[0]?.parts).toMatchObject([
      { kind: 'thought', text: 'I look first.', signature: 'sig', language: 'messages', at: 'contents.0.parts.0' },
      { kind: 'thought', text: 'Next', signature: null },
      { kind: 'text', text: 'Done' },
    ])
  })

  test('matches function responses without ids to the calls of their name, in order', () => {
    const call = (name: string) => ({ functionCall: { name, args: {} } })
    const response = (name: string, output: string) => ({ functionResponse: { name, response: { output } } })
    const { turns: all } = read({
      contents: [
        model(call('a'), call('b'), call('a')),
        user(response('a', '1'), response('a', '2'), response('b', '3')),
      ],
    })
    const results = all.flatMap(({ parts }) => parts).filter((part) => part.kind === 'tool_result')
    expect(results.map(({ callId, name }) => [callId, name])).toEqual([
      ['call_1', 'a'],
      ['call_3', 'a'],
      ['call_2', 'b'],
    ])
  })

  test('says which response is an error, and what is no single text as JSON', () => {
    const response = (value: JsonObject) => user({ functionResponse: { id: 'c', name: 'f', response: value } })
    const said = (value: JsonObject) => {
      const [part] =
        read({ contents: [model({ functionCall: { id: 'c', name: 'f' } }), response(value)] }).turns[1]?.parts ?? []
      return part?.kind === 'tool_result' ? [part.isError, part.parts[0]] : null
    }
    expect(said({ error: 'No such file' })).toMatchObject([true, { text: 'No such file' }])
    expect(said({ output: 'A', more: 1 })).toMatchObject([false, { text: '{"output":"A","more":1}' }])
    expect(said({ result: { a: 1 } })).toMatchObject([false, { text: '{"a":1}' }])
  })

  test('has tools of which only the allowed ones are sent, and leaves those of the provider out', () => {
    const lenience = new Lenience()
    const names = ['a', 'b', 'c']
    const request = read(
      {
        ...hello,
        tools: [{ functionDeclarations: names.map((name) => ({ name })) }, { googleSearch: {} }],
        toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['a', 'b'] } },
        safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }],
        generationConfig: { topK: 64 },
      },
      lenience,
    )
    expect(request.tools.map(({ name }) => name)).toEqual(['a', 'b'])
    expect(request.toolChoice?.value).toBe('required')
    chat.provider.writeRequest(request, { lenience })
    expect(lenience.notes).toEqual([
      'translation.left_out:safetySettings',
      'translation.left_out:tools.googleSearch',
      'translation.left_out:generationConfig.topK',
    ])
  })

  test('thinks by a level or a budget, and shows its thoughts only if it is asked to', () => {
    const thinking = (config: JsonObject) =>
      read({ ...hello, generationConfig: { thinkingConfig: config } }).reasoning?.value ?? null
    expect(thinking({ thinkingLevel: 'LOW' })).toEqual({ effort: 'low', budgetTokens: null, visible: false })
    expect(thinking({ thinkingBudget: 512, includeThoughts: true })).toEqual({
      effort: null,
      budgetTokens: 512,
      visible: true,
    })
    expect(thinking({ thinkingBudget: 0 })).toMatchObject({ effort: 'none', budgetTokens: 0 })
    expect(thinking({ thinkingBudget: -1, includeThoughts: true })).toEqual({
      effort: null,
      budgetTokens: null,
      visible: true,
    })
  })

  test('is refused for what no other provider has, and the field is named', () => {
    const file = (fileUri: string) => ({ contents: [user({ fileData: { fileUri, mimeType: 'image/png' } })] })
    expect(refused(file('https://generativelanguage.googleapis.com/v1beta/files/a'))).toBe(
      'contents.0.parts.0.fileData.fileUri',
    )
    expect(refused(file('gs://bucket/a'))).toBe('contents.0.parts.0.fileData.fileUri')
    expect(refused(file('https://example.com/a.png'))).toBeNull()
    expect(refused({ contents: [user({ executableCode: {} })] })).toBe('contents.0.parts.0.executableCode')
    expect(refused({ ...hello, cachedContent: 'cachedContents/a' })).toBe('cachedContent')
    expect(refused({ ...hello, generationConfig: { temperature: 'hot' } })).toBe('generationConfig.temperature')
    expect(refused({ ...hello, generationConfig: { candidateCount: 2 } })).toBe('generationConfig.candidateCount')
    expect(refused({ ...hello, brandNew: 1 })).toBe('brandNew')
    expect(refused({ contents: [{ role: 'assistant', parts: [] }] })).toBe('contents.0.role')
  })
})

test("writes Google's schemas as JSON Schema, at every depth", () => {
  const text = { type: 'STRING', nullable: true, max_length: '9', propertyOrdering: [] }
  expect(
    jsonSchemaOf({ type: 'OBJECT', properties: { type: text }, items: { any_of: [{ type: 'INTEGER' }] } }),
  ).toEqual({
    type: 'object',
    properties: { type: { type: ['string', 'null'], maxLength: 9 } },
    items: { anyOf: [{ type: 'integer' }] },
  })
})

const answers = fc
  .record({
    text: words,
    calls: fc.array(fc.record({ name: word, arguments: args.map((value) => JSON.stringify(value)) }), { maxLength: 3 }),
    length: fc.boolean(),
    usage: fc.record({ input: fc.nat(1000), cached: fc.nat(100), output: fc.nat(1000), thought: fc.nat(100) }),
  })
  .map(({ text, calls, length, usage }): NeutralAnswer => {
    const said: NeutralPart[] = [{ kind: 'text', text, at: '' }]
    const made: NeutralPart[] = calls.map((call, at) => ({ kind: 'tool_call', id: `call_${at}`, ...call, at: '' }))
    return {
      ...{ id: 'a', model: 'm', stopSequence: null, parts: [...said, ...made] },
      finish: length ? 'length' : calls.length > 0 ? 'tool_calls' : 'stop',
      usage: {
        inputTokens: usage.input + usage.cached,
        outputTokens: usage.output + usage.thought,
        cachedInputTokens: usage.cached,
        cacheWriteTokens: null,
        reasoningTokens: usage.thought,
      },
    }
  })

const toldBy = ({ parts, finish, usage }: NeutralAnswer) => ({
  parts: parts.map(({ at, ...part }) => part),
  finish,
  usage: [usage?.inputTokens, usage?.outputTokens, usage?.cachedInputTokens, usage?.reasoningTokens],
})

describe('an answer', () => {
  test.each([chat, messages])('says the same whole and streamed, after coming from another language', (other) => {
    fc.assert(
      fc.property(answers, (answer) => {
        const between = other.provider.readAnswer(other.caller.writeAnswer(answer, asked))
        const whole = gemini.provider.readAnswer(gemini.caller.writeAnswer(between, asked))
        expect(toldBy(whole)).toEqual(toldBy(answer))
        const events = eventsOf(
          gemini.provider,
          Buffer.from(`data: ${JSON.stringify(gemini.caller.writeAnswer(answer, asked))}\n\n`),
        )
        const stream = Buffer.from(written(other.caller, events))
        const again = written(gemini.caller, eventsOf(other.provider, stream))
        expect(toldBy(collected(eventsOf(gemini.provider, Buffer.from(again))))).toEqual(toldBy(answer))
      }),
      { numRuns: 25 },
    )
  })

  const thinking: NeutralEvent[] = [
    { type: 'start', id: 'msg_1', model: 'claude' },
    { type: 'part', part: 0, kind: 'thought', language: 'messages' },
    { type: 'text', part: 0, text: 'Hm' },
    { type: 'signature', part: 0, signature: 'c2ln', redacted: false, language: 'messages' },
    { type: 'part_end', part: 0 },
    { type: 'part', part: 1, kind: 'text' },
    { type: 'text', part: 1, text: 'Yes.' },
    { type: 'citation', part: 1, citation: { title: 'A', url: 'https://a.example', citedText: 'a', original: {} } },
    { type: 'part_end', part: 1 },
    { type: 'part', part: 2, kind: 'tool_call', id: 'call_1', name: 'look' },
    { type: 'signature', part: 2, signature: 'thought', redacted: false, language: 'messages' },
    { type: 'text', part: 2, text: '{"at":' },
    { type: 'text', part: 2, text: '"sky"}' },
    { type: 'part_end', part: 2 },
    { type: 'finish', finish: 'tool_calls', stopSequence: null },
    {
      type: 'usage',
      usage: { inputTokens: 5, outputTokens: 9, cachedInputTokens: 2, cacheWriteTokens: null, reasoningTokens: 4 },
    },
    { type: 'end' },
  ]
  const framesWith = (start: typeof asked) => {
    const writer = gemini.caller.streamWriter(start)
    const stream = thinking.map((event) => writer.event(event)).join('')
    return framesOf(Buffer.from(stream)).map(({ data }) => JSON.parse(data ?? ''))
  }

  test('has thoughts, marked signatures, whole calls, sources and usage where its clients read them', () => {
    const frames = framesWith(shows)
    expect(frames.map(({ candidates }) => candidates[0].content.parts[0])).toEqual([
      { text: 'Hm', thought: true },
      { text: '', thought: true, thoughtSignature: 'gatehouse.messages..c2ln' },
      { text: 'Yes.' },
      {
        functionCall: { id: 'call_1', name: 'look', args: { at: 'sky' } },
        thoughtSignature: `gatehouse.messages.${Buffer.from('call_1').toString('base64url')}.thought`,
      },
      { text: '' },
    ])
    expect(frames.at(-1)).toEqual({
      candidates: [
        {
          content: { parts: [{ text: '' }], role: 'model' },
          finishReason: 'STOP',
          citationMetadata: { citationSources: [{ uri: 'https://a.example', title: 'A' }] },
          index: 0,
        },
      ],
      usageMetadata: {
        promptTokenCount: 5,
        candidatesTokenCount: 5,
        totalTokenCount: 14,
        cachedContentTokenCount: 2,
        thoughtsTokenCount: 4,
      },
      modelVersion: 'claude',
      responseId: 'msg_1',
    })
  })

  test('has no thoughts for a caller that did not ask for them', () => {
    const parts = framesWith(asked).map(({ candidates }) => candidates[0].content.parts[0])
    expect(parts.filter(({ thought }) => thought)).toEqual([])
    expect(parts).toContainEqual({ text: 'Yes.' })
  })

  test('brings thoughts and signatures back to the provider that signed them, and to no other', () => {
    const parts = framesWith(shows).flatMap(({ candidates }) => candidates[0].content.parts)
    const request = {
      contents: [
        user({ text: 'Hi' }),
        model(...parts),
        user({ functionResponse: { id: 'call_1', name: 'look', response: {} } }),
      ],
    }
    const back = JSON.stringify(messages.provider.writeRequest({ ...read(request), model: 'claude-sonnet-4-5' }))
    expect(back).toContain('"signature":"c2ln"')
    expect(JSON.stringify(chat.provider.writeRequest(read(request)))).not.toContain('c2ln')
    expect(JSON.stringify(gemini.provider.writeRequest(read(request)))).not.toContain('c2ln')
  })

  test('that failed is an error, and arguments that were cut off are left out', () => {
    const until = (finish: 'error' | 'length' | 'stop') =>
      thinking
        .filter((event) => !(event.type === 'text' && event.text === '"sky"}'))
        .map((event) => (event.type === 'finish' ? { ...event, finish } : event))
    expect(written(gemini.caller, until('error'))).toContain('"status":"INTERNAL"')
    expect(written(gemini.caller, until('length'))).not.toContain('functionCall')
    expect(() => written(gemini.caller, until('stop'))).toThrow('no JSON object')
  })
})
