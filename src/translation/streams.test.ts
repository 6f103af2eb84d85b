/** Streams of one OpenAI language translated to the other, as the official client and the gateway's own reader take them. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import OpenAI from 'openai'
import { chat as chatDialect } from '../dialects/chat.ts'
import type { Usage } from '../dialects/dialect.ts'
import { isObject, type JsonObject } from '../dialects/json-value.ts'
import { responses as responsesDialect } from '../dialects/responses.ts'
import { factsOf, framesOf, recordings } from '../dialects/test-streams.ts'
import { chat } from './chat.ts'
import type { CallerLanguage, ProviderLanguage } from './language.ts'
import type { NeutralEvent } from './neutral.ts'
import { responses } from './responses.ts'

const asked = { model: 'm', exchangeId: '0190a0c0-0000-7000-8000-000000000001', includeUsage: true }
const input = [{ role: 'user' as const, content: 'hello' }]
const client = (stream: string) =>
  new OpenAI({
    apiKey: 'none',
    maxRetries: 0,
    fetch: async () => new Response(stream, { headers: { 'content-type': 'text/event-stream' } }),
  })

/** What an answer says, however its language says it. */
interface Gathered {
  text: string
  refusal: string
  thoughts: string
  calls: { id: string; name: string; arguments: string }[]
  usage: (number | null | undefined)[]
  finish: string | null
  errors: string[]
}

const figures = (usage: Usage | null) => [
  usage?.inputTokens,
  usage?.cachedInputTokens ?? 0,
  usage?.outputTokens,
  usage?.reasoningTokens ?? 0,
]

const eventsOf = (language: ProviderLanguage, bytes: Uint8Array, cuts: readonly number[] = []): NeutralEvent[] => {
  const reader = language.streamReader()
  const events = framesOf(bytes, cuts).flatMap(({ event, data }) => (data === null ? [] : reader.frame(event, data)))
  return [...events, ...reader.end()]
}

/** The events of each part joined: which frames they came in makes no difference. */
function gathered(events: readonly NeutralEvent[]): Gathered {
  const all: Gathered = { text: '', refusal: '', thoughts: '', calls: [], usage: [], finish: null, errors: [] }
  const calls = new Map<number, Gathered['calls'][number]>()
  const kinds = new Map<number, string>()
  for (const event of events) {
    if (event.type === 'part') {
      kinds.set(event.part, event.kind)
      if (event.kind === 'tool_call') calls.set(event.part, { id: event.id, name: event.name, arguments: '' })
    }
    if (event.type === 'text') {
      const kind = kinds.get(event.part)
      const call = calls.get(event.part)
      if (kind === 'text') all.text += event.text
      if (kind === 'refusal') all.refusal += event.text
      if (kind === 'thought') all.thoughts += event.text
      if (call !== undefined) call.arguments += event.text
    }
    if (event.type === 'usage') all.usage = figures(event.usage)
    if (event.type === 'finish') all.finish = event.finish
    if (event.type === 'error') all.errors.push(event.error.code ?? '')
  }
  return { ...all, calls: [...calls.values()] }
}

const written = (language: CallerLanguage, events: readonly NeutralEvent[]): string => {
  const writer = language.streamWriter(asked)
  return events.map((event) => writer.event(event)).join('')
}

/** What the official client of chat makes of a stream. */
async function readByChatClient(stream: string): Promise<Omit<Gathered, 'thoughts' | 'errors'>> {
  const completion = await client(stream).chat.completions.stream({ model: 'm', messages: input }).finalChatCompletion()
  const [choice] = completion.choices
  const calls = (choice?.message.tool_calls ?? []).flatMap((call) =>
    call.type === 'function' ? [{ id: call.id, name: call.function.name, arguments: call.function.arguments }] : [],
  )
  const { usage } = completion
  return {
    text: choice?.message.content ?? '',
    refusal: choice?.message.refusal ?? '',
    calls,
    usage: [
      usage?.prompt_tokens,
      usage?.prompt_tokens_details?.cached_tokens ?? 0,
      usage?.completion_tokens,
      usage?.completion_tokens_details?.reasoning_tokens ?? 0,
    ],
    finish: choice?.finish_reason ?? null,
  }
}

/** What the official client of responses makes of a stream, which must be the whole response that ends it. */
async function readByResponsesClient(stream: string): Promise<Omit<Gathered, 'errors'>> {
  const response = await client(stream).responses.stream({ model: 'm', input: 'hello' }).finalResponse()
  const items = response.output
  const spoken = items.flatMap((item) => (item.type === 'message' ? item.content : []))
  const { usage } = response
  return {
    text: response.output_text,
    refusal: spoken.map((part) => (part.type === 'refusal' ? part.refusal : '')).join(''),
    thoughts: items.flatMap((item) => (item.type === 'reasoning' ? item.summary.map(({ text }) => text) : [])).join(''),
    calls: items.flatMap((item) =>
      item.type === 'function_call' ? [{ id: item.call_id, name: item.name, arguments: item.arguments }] : [],
    ),
    usage: [
      usage?.input_tokens,
      usage?.input_tokens_details.cached_tokens,
      usage?.output_tokens,
      usage?.output_tokens_details.reasoning_tokens,
    ],
    finish: response.status ?? null,
  }
}

const families = [
  { from: chat, recorded: recordings('openai-chat') },
  { from: responses, recorded: recordings('openai-responses') },
]
/** Recorded with frames that are no JSON: their answer never ends. */
const withoutEnd = 'parallel-tool-call-wrapper.1.chunks.txt'
/** The provider failed, or called what cannot be asked for through another language. */
const failing: Record<string, string> = {
  'openai-error.1.chunks.txt': 'insufficient_quota',
  'openai-custom-tool.1.chunks.txt': 'upstream_provider_error',
}
const all = families.flatMap(({ from, recorded }) => recorded.map((recording) => ({ from, ...recording })))

describe.skipIf(all.length === 0)('recorded streams (skipped where ../shared/data is absent)', () => {
  for (const { from, name, bytes } of all) {
    const events = eventsOf(from, bytes)
    const told = gathered(events)

    test(`${name}: any split of its bytes gives the same events`, () => {
      const cuts = fc.array(fc.integer({ min: 1, max: bytes.length - 1 }), { maxLength: 30 })
      fc.assert(
        fc.property(cuts, (at) =>
          expect(
            eventsOf(
              from,
              bytes,
              at.toSorted((a, b) => a - b),
            ),
          ).toEqual(events),
        ),
        { numRuns: bytes.length > 50_000 ? 2 : 10 },
      )
    })

    if (failing[name] !== undefined) {
      test(`${name}: the error arrives as an error of the client`, async () => {
        expect(told.errors).toEqual([failing[name] ?? ''])
        for (const read of [
          readByChatClient(written(chat, events)),
          readByResponsesClient(written(responses, events)),
        ]) {
          expect(await read.catch((thrown: unknown) => thrown)).toMatchObject({ code: failing[name] ?? '' })
        }
      })
      continue
    }
    if (name === withoutEnd) {
      test(`${name}: an answer that never ends is not ended`, () => expect(events.at(-1)?.type).not.toBe('end'))
      continue
    }

    test(`${name}: the client of chat reads its text, calls and usage`, async () => {
      const { thoughts, errors, finish, ...rest } = told
      expect(await readByChatClient(written(chat, events))).toEqual({ ...rest, finish })
      expect(rest.text.length + rest.calls.length).toBeGreaterThan(0)
    })

    test(`${name}: the client of responses reads its text, calls, thoughts and usage`, async () => {
      const { errors, finish, ...rest } = told
      expect(await readByResponsesClient(written(responses, events))).toEqual({ ...rest, finish: 'completed' })
    })

    test(`${name}: the gateway reads the same of either translation`, () => {
      for (const [language, dialect] of [[chat, chatDialect] as const, [responses, responsesDialect] as const]) {
        const facts = factsOf(dialect, framesOf(Buffer.from(written(language, events))))
        expect(facts.filter(({ terminal }) => terminal)).toHaveLength(1)
        expect(figures(facts.at(-1)?.usage ?? null)).toEqual(told.usage)
      }
    })

    test(`${name}: the translation, read as a provider's, gives the same parts`, () => {
      for (const language of [chat, responses]) {
        expect(gathered(eventsOf(language, Buffer.from(written(language, events))))).toEqual(told)
      }
    })
  }
})

const chunk = (delta: JsonObject, more: JsonObject = {}): string =>
  `data: ${JSON.stringify({
    ...{ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' },
    choices: [{ index: 0, delta, finish_reason: null, ...more }],
  })}\n\n`
const ending = (reason: string) => `${chunk({}, { finish_reason: reason })}data: [DONE]\n\n`

const piecesOf = (text: string, size: number): string[] => text.match(new RegExp(`.{1,${size}}`, 'gsu')) ?? []

describe('made streams', () => {
  test('parallel calls whose pieces come mixed are the same calls, for both clients', async () => {
    const calls = fc.array(
      fc.record({ name: fc.stringMatching(/^[a-z]{1,8}$/), arguments: fc.json({ maxDepth: 2 }) }),
      {
        minLength: 1,
        maxLength: 4,
      },
    )
    const picks = fc.array(fc.nat(), { minLength: 60, maxLength: 60 })
    await fc.assert(
      fc.asyncProperty(calls, picks, fc.integer({ min: 1, max: 6 }), async (wanted, order, size) => {
        const waiting = wanted.map(({ name, arguments: text }, index) => [
          { index, id: `call_${index}`, type: 'function', function: { name, arguments: '' } },
          ...piecesOf(text, size).map((piece) => ({ index, function: { arguments: piece } })),
        ])
        // Every call is begun in its turn; then their pieces mix.
        const deltas: JsonObject[] = waiting.flatMap((pieces) => pieces.shift() ?? [])
        for (let turn = 0; waiting.some((pieces) => pieces.length > 0); turn++) {
          const open = waiting.filter((pieces) => pieces.length > 0)
          deltas.push(open[(order[turn % order.length] ?? 0) % open.length]?.shift() ?? {})
        }
        const stream = deltas.map((delta) => chunk({ tool_calls: [delta] })).join('') + ending('tool_calls')
        const events = eventsOf(chat, Buffer.from(stream))
        const byId = (given: readonly { id: string }[]) => given.toSorted((a, b) => (a.id < b.id ? -1 : 1))
        const expected = wanted.map((call, index) => ({ id: `call_${index}`, ...call }))
        expect(byId((await readByResponsesClient(written(responses, events))).calls)).toEqual(expected)
        expect(byId((await readByChatClient(written(chat, events))).calls)).toEqual(expected)
      }),
      { numRuns: 40 },
    )
  })

  const thinking: NeutralEvent[] = [
    { type: 'start', id: 'msg_1', model: 'claude' },
    { type: 'part', part: 0, kind: 'thought' },
    { type: 'text', part: 0, text: 'Hm, ' },
    { type: 'text', part: 0, text: 'so.' },
    { type: 'signature', part: 0, signature: 'c2ln', redacted: false, language: 'messages' },
    { type: 'part_end', part: 0 },
    { type: 'part', part: 1, kind: 'text' },
    { type: 'text', part: 1, text: 'Yes.' },
    { type: 'citation', part: 1, citation: { title: 'A', url: 'https://a.example', citedText: 'a', original: {} } },
    { type: 'part_end', part: 1 },
    { type: 'part', part: 2, kind: 'tool_call', id: 'call_1', name: 'look' },
    { type: 'signature', part: 2, signature: 'thought', redacted: false },
    { type: 'part_end', part: 2 },
    { type: 'finish', finish: 'tool_calls', stopSequence: null },
    { type: 'end' },
  ]

  test('a signed thought, a citation and a signed call go out with chat where its clients find them', () => {
    const deltas = framesOf(Buffer.from(written(chat, thinking))).flatMap(({ data }) =>
      data === null || data === '[DONE]' ? [] : [JSON.parse(data).choices[0].delta],
    )
    expect(deltas.map(({ reasoning_content: text }) => text ?? '').join('')).toBe('Hm, so.')
    expect(deltas.flatMap(({ reasoning_details: details }) => details ?? [])).toEqual([
      { type: 'reasoning.text', text: 'Hm, so.', signature: 'c2ln', format: 'messages' },
    ])
    expect(deltas.flatMap(({ annotations }) => annotations ?? [])).toEqual([
      { type: 'url_citation', url_citation: { url: 'https://a.example', title: 'A', start_index: 0, end_index: 4 } },
    ])
    expect(deltas.flatMap(({ tool_calls: calls }) => calls ?? []).at(-1)).toEqual({
      index: 0,
      extra_content: { google: { thought_signature: 'thought' } },
    })
  })

  test('the official client of responses gathers them whole', async () => {
    const stream = client(written(responses, thinking)).responses.stream({ model: 'm', input: 'hello' })
    const { output } = await stream.finalResponse()
    expect(output).toMatchObject([
      { type: 'reasoning', encrypted_content: 'gatehouse/messages:c2ln', summary: [{ text: 'Hm, so.' }] },
      { type: 'message', content: [{ text: 'Yes.', annotations: [{ type: 'url_citation', title: 'A' }] }] },
      {
        type: 'function_call',
        name: 'look',
        arguments: '',
        extra_content: { google: { thought_signature: 'thought' } },
      },
    ])
  })

  test('an answer that a limit or a filter cut short ends so', async () => {
    for (const [finish, reason, cause] of [
      ['length', 'length', 'max_output_tokens'],
      ['content_filter', 'content_filter', 'content_filter'],
      ['refusal', 'content_filter', 'content_filter'],
    ] as const) {
      const cut = thinking.map((event) => (event.type === 'finish' ? { ...event, finish } : event))
      const spoken = cut.filter((event) => !('part' in event) || event.part === 1)
      const response = await client(written(responses, spoken))
        .responses.stream({ model: 'm', input: '' })
        .finalResponse()
      expect([response.status, response.incomplete_details?.reason]).toEqual(['incomplete', cause])
      expect(written(chat, spoken)).toContain(`"finish_reason":"${reason}"`)
    }
  })

  test('a provider that ends without [DONE] is whole where it had finished, and broken off where it had not', () => {
    const begun = chunk({ content: 'so far' })
    expect(eventsOf(chat, Buffer.from(begun)).at(-1)?.type).toBe('text')
    expect(eventsOf(chat, Buffer.from(begun + chunk({}, { finish_reason: 'stop' }))).at(-1)?.type).toBe('end')
  })

  test('an answer that failed at its end is an error, never an answer', async () => {
    const broken = thinking.map((event) => (event.type === 'finish' ? { ...event, finish: 'error' as const } : event))
    for (const read of [readByChatClient(written(chat, broken)), readByResponsesClient(written(responses, broken))]) {
      expect(await read.catch((thrown: unknown) => thrown)).toMatchObject({ code: 'upstream_provider_error' })
    }
  })

  test('what was written to a cache is told, so that it is priced', () => {
    const usage: Usage = {
      ...{ inputTokens: 9, outputTokens: 1, cachedInputTokens: 2, cacheWriteTokens: 3, reasoningTokens: 0 },
      cacheWriteHourTokens: 1,
    }
    const events: NeutralEvent[] = [...thinking.slice(0, -1), { type: 'usage', usage }, { type: 'end' }]
    for (const [language, dialect] of [[chat, chatDialect] as const, [responses, responsesDialect] as const]) {
      expect(factsOf(dialect, framesOf(Buffer.from(written(language, events)))).at(-1)?.usage).toEqual(usage)
    }
  })

  test('errors are said in the envelope of the language, and read from it', () => {
    for (const language of [chat, responses]) {
      const body = language.writeError({ status: 429, code: 'rate_limit_exceeded', message: 'Slow down' })
      expect(isObject(body.error) && body.error.type).toBe('rate_limit_error')
      expect(language.readError(429, body)).toEqual({ status: 429, code: 'rate_limit_exceeded', message: 'Slow down' })
      expect(language.readError(500, 'no JSON')).toMatchObject({ status: 500, message: 'no JSON' })
      expect(language.readError(502, null).message).not.toBe('')
    }
  })
})
