/** Made streams in the OpenAI languages, as the official client and the gateway's own reader take them. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { chat as chatDialect } from '../chat/dialect.ts'
import { chat } from '../chat/translation/language.ts'
import type { Usage } from '../dialect.ts'
import type { NeutralEvent } from '../neutral.ts'
import { isObject, type JsonObject } from '../reading/json-value.ts'
import { responses as responsesDialect } from '../responses/dialect.ts'
import { responses } from '../responses/translation/language.ts'
import { eventsOf, openaiReading, readByChatClient, readByResponsesClient, written } from '../testing/clients.ts'
import { factsOf, framesOf, start } from '../testing/streams.ts'
import { collected } from './collect-stream.ts'
import { languages } from './languages.ts'

const chunk = (delta: JsonObject, more: JsonObject = {}): string =>
  `data: ${JSON.stringify({
    ...{ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' },
    choices: [{ index: 0, delta, finish_reason: null, ...more }],
  })}\n\n`
const ending = (reason: string) => `${chunk({}, { finish_reason: reason })}data: [DONE]\n\n`

const piecesOf = (text: string, size: number): string[] => text.match(new RegExp(`.{1,${size}}`, 'gsu')) ?? []

describe('generated streams', () => {
  test('both clients read interleaved parallel calls as the same calls', async () => {
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
        const events = eventsOf(chat.provider, Buffer.from(stream))
        const byId = (given: readonly { id: string }[]) => given.toSorted((a, b) => (a.id < b.id ? -1 : 1))
        const expected = wanted.map((call, index) => ({ id: `call_${index}`, ...call }))
        expect(byId((await readByResponsesClient(written(responses.caller, events))).calls)).toEqual(expected)
        expect(byId((await readByChatClient(written(chat.caller, events))).calls)).toEqual(expected)
      }),
      { numRuns: 12 },
    )
  })

  const thinking: NeutralEvent[] = [
    { type: 'start', id: 'msg_1', model: 'claude' },
    { type: 'part', part: 0, kind: 'thought', language: 'messages' },
    { type: 'text', part: 0, text: 'Hm, ' },
    { type: 'text', part: 0, text: 'so.' },
    { type: 'signature', part: 0, signature: 'c2ln', redacted: false, language: 'messages' },
    { type: 'part_end', part: 0 },
    { type: 'part', part: 1, kind: 'text' },
    { type: 'text', part: 1, text: 'Yes.' },
    { type: 'citation', part: 1, citation: { title: 'A', url: 'https://a.example', citedText: 'a', original: {} } },
    { type: 'part_end', part: 1 },
    { type: 'part', part: 2, kind: 'tool_call', id: 'call_1', name: 'look' },
    { type: 'signature', part: 2, signature: 'thought', redacted: false, language: 'gemini' },
    { type: 'part_end', part: 2 },
    { type: 'finish', finish: 'tool_calls', stopSequence: null },
    { type: 'end' },
  ]

  test('a signed thought, a citation and a signed call go out with chat where its clients find them', () => {
    const deltas = framesOf(Buffer.from(written(chat.caller, thinking))).flatMap(({ data }) =>
      data === null || data === '[DONE]' ? [] : [JSON.parse(data).choices[0].delta],
    )
    expect(deltas.map(({ reasoning_content: text }) => text ?? '').join('')).toBe('Hm, so.')
    expect(deltas.flatMap(({ reasoning_details: details }) => details ?? [])).toEqual([
      { type: 'reasoning.text', text: 'Hm, so.', signature: 'gatehouse.messages..c2ln' },
    ])
    expect(deltas.flatMap(({ annotations }) => annotations ?? [])).toEqual([
      { type: 'url_citation', url_citation: { url: 'https://a.example', title: 'A', start_index: 0, end_index: 4 } },
    ])
    expect(deltas.flatMap(({ tool_calls: calls }) => calls ?? []).at(-1)).toEqual({
      index: 0,
      function: { arguments: '' },
      extra_content: { google: { thought_signature: 'gatehouse.gemini..thought' } },
    })
  })

  test('the official client of responses gathers them whole', async () => {
    const stream = openaiReading(written(responses.caller, thinking)).responses.stream({ model: 'm', input: 'hello' })
    const { output } = await stream.finalResponse()
    expect(output).toMatchObject([
      { type: 'reasoning', encrypted_content: 'gatehouse.messages..c2ln', summary: [{ text: 'Hm, so.' }] },
      { type: 'message', content: [{ text: 'Yes.', annotations: [{ type: 'url_citation', title: 'A' }] }] },
      {
        type: 'function_call',
        name: 'look',
        arguments: '',
        extra_content: { google: { thought_signature: 'gatehouse.gemini..thought' } },
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
      const response = await openaiReading(written(responses.caller, spoken))
        .responses.stream({ model: 'm', input: '' })
        .finalResponse()
      expect([response.status, response.incomplete_details?.reason]).toEqual(['incomplete', cause])
      expect(response.output.map((item) => 'status' in item && item.status)).toEqual(['incomplete'])
      expect(written(chat.caller, spoken)).toContain(`"finish_reason":"${reason}"`)
    }
  })

  test('a provider that ends without [DONE] is whole where it had finished, and broken off where it had not', () => {
    const begun = chunk({ content: 'so far' })
    expect(eventsOf(chat.provider, Buffer.from(begun)).at(-1)?.type).toBe('text')
    expect(eventsOf(chat.provider, Buffer.from(begun + chunk({}, { finish_reason: 'stop' }))).at(-1)?.type).toBe('end')
  })

  test('ends a stream at the same [DONE] as the native reader', () => {
    const begun = chunk({ content: 'so far' }, { finish_reason: 'stop' })
    for (const end of ['[DONE]', ' [DONE]', '[DONE] ', '[DONE] bye']) {
      expect(chatDialect.reader(start).frame({ event: null, data: end }).terminal).toBe(true)
      expect(eventsOf(chat.provider, Buffer.from(`${begun}data: ${end}\n\n${begun}`)).at(-1)?.type).toBe('end')
      expect(responses.provider.streamReader().frame(null, end)).toEqual([])
    }
  })

  test('reads items that come only with the last event', () => {
    const output = [
      { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'Hm' }], encrypted_content: 'c2ln' },
      { type: 'message', id: 'm1', content: [{ type: 'output_text', text: 'Let me see', annotations: [] }] },
      { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'look', arguments: '{}' },
    ]
    const response = { id: 'r', model: 'm', status: 'completed', output }
    const bytes = Buffer.from(`data: ${JSON.stringify({ type: 'response.completed', response })}\n\n`)
    expect(collected(eventsOf(responses.provider, bytes))).toMatchObject({
      parts: [
        { kind: 'thought', text: 'Hm', signature: 'c2ln' },
        { kind: 'text', text: 'Let me see' },
        { kind: 'tool_call', id: 'call_1', name: 'look', arguments: '{}' },
      ],
      finish: 'tool_calls',
    })
  })

  test('an answer that failed at its end is an error, never an answer', async () => {
    const broken = thinking.map((event) => (event.type === 'finish' ? { ...event, finish: 'error' as const } : event))
    for (const read of [
      readByChatClient(written(chat.caller, broken)),
      readByResponsesClient(written(responses.caller, broken)),
    ]) {
      expect(await read.catch((thrown: unknown) => thrown)).toMatchObject({ code: 'upstream_provider_error' })
    }
  })

  test('reports cache writes, so that they are priced', () => {
    const usage: Usage = {
      ...{ inputTokens: 9, outputTokens: 1, cachedInputTokens: 2, cacheWriteTokens: 3, reasoningTokens: 0 },
      cacheWriteHourTokens: 1,
    }
    const events: NeutralEvent[] = [...thinking.slice(0, -1), { type: 'usage', usage }, { type: 'end' }]
    for (const [language, dialect, told] of [
      [chat.caller, chatDialect, usage] as const,
      [responses.caller, responsesDialect, { ...usage, serviceTier: 'default' }] as const,
    ]) {
      expect(factsOf(dialect, framesOf(Buffer.from(written(language, events)))).at(-1)?.usage).toEqual(told)
    }
  })

  test("writes and reads errors in the language's envelope", () => {
    for (const language of [chat, responses]) {
      const body = language.caller.writeError({ status: 429, code: 'rate_limit_exceeded', message: 'Slow down' })
      expect(isObject(body.error) && body.error.type).toBe('rate_limit_error')
      expect(language.provider.readError(429, body)).toEqual({
        status: 429,
        code: 'rate_limit_exceeded',
        message: 'Slow down',
      })
      expect(language.provider.readError(500, 'no JSON')).toMatchObject({ status: 500, message: 'no JSON' })
      expect(language.provider.readError(502, null).message).not.toBe('')
    }
  })
})

test('reports an unreadable frame as an error in every language', () => {
  for (const { provider } of Object.values(languages)) {
    for (const data of ['{"candidates":[{"content":{"parts":[{"text":"lo', 'garbage', '[]']) {
      expect(() => provider.streamReader().frame('contentBlockDelta', data)).toThrow('holds no object')
    }
  }
})
