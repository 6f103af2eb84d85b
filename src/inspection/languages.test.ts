/**
 * The central property in the languages themselves: whatever the text, the terms and the values, however the provider
 * cut it into frames and the wire into bytes, a client of any text dialect gets the same, and nothing of what was found.
 */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { chat } from '../languages/chat/dialect.ts'
import type { Dialect } from '../languages/dialect.ts'
import { messages } from '../languages/messages/dialect.ts'
import { responses } from '../languages/responses/dialect.ts'
import { framesOf, openNext, receivedFrom, recordings, start } from '../languages/testing/streams.ts'
import type { SseFrame } from '../lib/http/sse.ts'
import { passWhole } from './channel.ts'
import { personalData } from './detectors/personal-data/personal-data.ts'
import { termDetector } from './detectors/terms/term-detector.ts'
import { patternDetector } from './regex/pattern-detector.ts'
import type { InspectionRule, Stop } from './rule.ts'
import { StreamInspector } from './stream.ts'
import { cutAt, ruleOf } from './testing/passing.ts'

type Field = 'content' | 'reasoning' | 'arguments'

/** One field's pieces, in turn with those of the others. */
interface Script {
  readonly field: Field
  readonly pieces: readonly string[]
}

const event = (data: { type: string; [member: string]: unknown }): string =>
  `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`
const chunk = (data: unknown): string => `data: ${JSON.stringify(data)}\n\n`

/** The pieces of all fields, one of each in turn. */
function inTurn<Step>(scripts: readonly Script[], step: (index: number, piece: string, turn: number) => Step): Step[] {
  const longest = Math.max(...scripts.map(({ pieces }) => pieces.length))
  const steps: Step[] = []
  for (let turn = 0; turn < longest; turn++) {
    for (const [index, { pieces }] of scripts.entries()) {
      const piece = pieces[turn]
      if (piece !== undefined) steps.push(step(index, piece, turn))
    }
  }
  return steps
}

/** How calls are said to go on: by number, by position, by id. */
const continuations = [{ index: 0, id: 'call_1' }, {}, { id: 'call_1' }, { index: 0 }, { index: null }]

function chatStream(scripts: readonly Script[]): string {
  const deltas = {
    content: (text: string) => ({ content: text }),
    reasoning: (text: string) => ({ reasoning_content: text }),
    arguments: (text: string, turn: number) => ({
      tool_calls: [{ ...continuations[turn % continuations.length], function: { arguments: text } }],
    }),
  }
  const frames = inTurn(scripts, (index, piece, turn) => {
    const choices = [{ index, delta: deltas[scripts[index]?.field ?? 'content'](piece, turn), finish_reason: null }]
    return chunk({ id: 'c', object: 'chat.completion.chunk', choices })
  })
  const ends = scripts.map((_, index) => chunk({ id: 'c', choices: [{ index, delta: {}, finish_reason: 'stop' }] }))
  return `${frames.join('')}${ends.join('')}data: [DONE]\n\n`
}

function messagesStream(scripts: readonly Script[]): string {
  const blocks = {
    content: { block: { type: 'text', text: '' }, delta: (text: string) => ({ type: 'text_delta', text }) },
    reasoning: {
      block: { type: 'thinking', thinking: '', signature: '' },
      delta: (thinking: string) => ({ type: 'thinking_delta', thinking }),
    },
    arguments: {
      block: { type: 'tool_use', id: 't', name: 'f', input: {} },
      delta: (text: string) => ({ type: 'input_json_delta', partial_json: text }),
    },
  }
  const message = {
    id: 'm',
    type: 'message',
    role: 'assistant',
    content: [],
    usage: { input_tokens: 1, output_tokens: 1 },
  }
  const body = scripts.map(({ field, pieces }, index) => {
    const { block, delta } = blocks[field]
    const deltas = pieces.map((piece) => event({ type: 'content_block_delta', index, delta: delta(piece) }))
    const begin = event({ type: 'content_block_start', index, content_block: block })
    return `${begin}${deltas.join('')}${event({ type: 'content_block_stop', index })}`
  })
  const end = event({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 5 } })
  return `${event({ type: 'message_start', message })}${body.join('')}${end}${event({ type: 'message_stop' })}`
}

function responsesStream(scripts: readonly Script[]): string {
  let number = 0
  const numbered = (data: { type: string; [member: string]: unknown }) => event({ ...data, sequence_number: number++ })
  const body = scripts.map(({ field, pieces }, index) => {
    const text = pieces.join('')
    const at = { item_id: `i${index}`, output_index: index }
    if (field === 'arguments') {
      const item = { id: `i${index}`, type: 'function_call', name: 'f', call_id: 'c', arguments: '' }
      return [
        numbered({ type: 'response.output_item.added', output_index: index, item }),
        ...pieces.map((delta) => numbered({ type: 'response.function_call_arguments.delta', ...at, delta })),
        numbered({ type: 'response.function_call_arguments.done', ...at, arguments: text }),
        numbered({ type: 'response.output_item.done', output_index: index, item: { ...item, arguments: text } }),
      ].join('')
    }
    const [type, part] = field === 'content' ? ['output_text', 'output_text'] : ['reasoning_text', 'reasoning_text']
    const place = { ...at, content_index: 0 }
    const item = { id: `i${index}`, type: field === 'content' ? 'message' : 'reasoning', content: [] as unknown[] }
    return [
      numbered({ type: 'response.output_item.added', output_index: index, item }),
      numbered({ type: 'response.content_part.added', ...place, part: { type: part, text: '' } }),
      ...pieces.map((delta) => numbered({ type: `response.${type}.delta`, ...place, delta })),
      numbered({ type: `response.${type}.done`, ...place, text }),
      numbered({ type: 'response.content_part.done', ...place, part: { type: part, text } }),
      numbered({
        type: 'response.output_item.done',
        output_index: index,
        item: { ...item, content: [{ type: part, text }] },
      }),
    ].join('')
  })
  const response = { id: 'r', object: 'response', status: 'in_progress', model: 'm', output: [] }
  const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 }
  const created = numbered({ type: 'response.created', response })
  return `${created}${body.join('')}${numbered({ type: 'response.completed', response: { ...response, status: 'completed', usage } })}`
}

const families: readonly (readonly [string, Dialect, (scripts: readonly Script[]) => string])[] = [
  ['chat', chat, chatStream],
  ['messages', messages, messagesStream],
  ['responses', responses, responsesStream],
]

interface Sent {
  bytes: Buffer
  stop: Stop | null
}

/** The stream's bytes, cut anywhere, on their way through the rules. */
function inspected(dialect: Dialect, bytes: Buffer, cuts: readonly number[], rules: readonly InspectionRule[]): Sent {
  const reader = dialect.reader(start)
  const inspector = new StreamInspector<SseFrame>(reader, rules)
  const out: Uint8Array[] = []
  for (const frame of framesOf(bytes, cuts)) {
    const facts = frame.data === null ? null : reader.frame({ event: frame.event, data: frame.data })
    const { bytes: sent, stop } = inspector.take(frame, facts !== null && (facts.terminal || facts.error !== null))
    if (sent !== null) out.push(sent)
    if (stop !== null) return { bytes: Buffer.concat(out), stop }
    if (facts?.terminal) break
  }
  const { bytes: rest, stop } = inspector.end()
  return { bytes: Buffer.concat(rest === null ? out : [...out, rest]), stop }
}

const plain = { caseSensitive: false, homoglyphs: false, wordBoundaries: false }
const alphabet = ['a', 'b', 'c', 'A', ' ', '1', '2', 'é', 'ﬁ', 'f', '\u200b', '😀', '"', '\\', '\n']
const text = fc.array(fc.constantFrom(...alphabet), { minLength: 1, maxLength: 24 }).map((all) => all.join(''))
const json = fc
  .dictionary(fc.constantFrom('a', 'k', 'b1'), fc.oneof(text, fc.integer()), { minKeys: 1, maxKeys: 3 })
  .map((object) => JSON.stringify(object))
const places = fc.array(fc.nat({ max: 2000 }), { maxLength: 8 })
const script = fc.oneof(
  fc.record({ field: fc.constantFrom<Field>('content', 'reasoning'), text, cuts: places }),
  fc.record({ field: fc.constant<Field>('arguments'), text: json, cuts: places }),
)
const pieced = (parts: readonly { field: Field; text: string; cuts: readonly number[] }[]): Script[] =>
  parts.map(({ field, text: source, cuts }) => ({
    field,
    pieces: cutAtCharacters(source, cuts).filter((piece) => piece !== ''),
  }))
/** JSON carries no halves of pairs. */
const cutAtCharacters = (source: string, cuts: readonly number[]): string[] => {
  const characters = [...source]
  return cutAt('x'.repeat(characters.length), cuts).reduce<{ from: number; pieces: string[] }>(
    ({ from, pieces }, { length }) => ({
      from: from + length,
      pieces: [...pieces, characters.slice(from, from + length).join('')],
    }),
    { from: 0, pieces: [] },
  ).pieces
}
const terms = fc.array(
  fc
    .array(fc.constantFrom('a', 'b', 'c', '1', 'é', 'fi', '😀', ' '), { minLength: 1, maxLength: 3 })
    .map((all) => all.join('')),
  { minLength: 1, maxLength: 4 },
)
const kinds = { content: 'content', reasoning: 'reasoning', arguments: 'tool_arguments' } as const
const byteCuts = fc.array(fc.nat({ max: 6000 }), { maxLength: 8 })
const sortedCuts = (cuts: readonly number[], length: number) =>
  cuts.map((cut) => cut % length).toSorted((one, other) => one - other)

const visible = (source: string) => source.replaceAll('\u200b', '').normalize('NFKC').toLowerCase()

/** Names of arguments that became alike are told apart where all arguments are in one frame. */
const told = (text: string) => text.replaceAll(/\[#\] \d+(?=")/g, '[#]')

for (const [name, dialect, stream] of families) {
  test(`${name}: redacts a stream to the same text at every split of texts and bytes`, () => {
    const result = fc.check(
      fc.property(fc.array(script, { minLength: 1, maxLength: 3 }), terms, byteCuts, (parts, list, cuts) => {
        const rules = [ruleOf(termDetector(list, '#', plain), 'redact')]
        const bytes = Buffer.from(stream(pieced(parts)))
        const sent = inspected(dialect, bytes, sortedCuts(cuts, bytes.length), rules)
        expect(sent.stop).toBeNull()
        const received = receivedFrom(dialect, framesOf(sent.bytes))
        const before = receivedFrom(dialect, framesOf(bytes))
        const expected = (kind: string | undefined, source: string) =>
          passWhole(
            rules,
            { kind: kind === 'tool_arguments' ? kind : 'content', role: null, place: '', text: source },
            [],
          ).text
        for (const [channel, source] of Object.entries(before.channels)) {
          expect(told(received.channels[channel] ?? '')).toBe(told(expected(before.kinds[channel], source)))
        }
        expect(Object.keys(received.channels).every((channel) => channel in before.channels)).toBe(true)
        for (const whole of received.wholes)
          for (const wanted of list) expect(visible(told(whole.slice(whole.indexOf('='))))).not.toContain(wanted)
      }),
      { numRuns: 300 },
    )
    if (result.failed) throw new Error(fc.defaultReportMessage(result) ?? '')
    console.log(`${result.numRuns} cases: ${name} redacted`)
  }, 120_000)

  test(`${name}: ends a blocked stream before the first match at every split of texts and bytes`, () => {
    const result = fc.check(
      fc.property(script, terms, byteCuts, (part, list, cuts) => {
        const rules = [ruleOf(termDetector(list, '#', plain), 'block')]
        const bytes = Buffer.from(stream(pieced([part])))
        const sent = inspected(dialect, bytes, sortedCuts(cuts, bytes.length), rules)
        const whole = passWhole(rules, { kind: kinds[part.field], role: null, place: '', text: part.text }, [])
        expect(sent.stop?.verdict).toBe(whole.stop?.verdict)
        const received = receivedFrom(dialect, framesOf(sent.bytes))
        expect(Object.values(received.channels).join('')).toBe(whole.text)
        for (const wanted of list) {
          for (const said of [
            ...Object.values(received.channels),
            ...received.wholes.map((each) => each.slice(each.indexOf('='))),
          ]) {
            expect(visible(said)).not.toContain(wanted)
          }
        }
      }),
      { numRuns: 300 },
    )
    if (result.failed) throw new Error(fc.defaultReportMessage(result) ?? '')
    console.log(`${result.numRuns} cases: ${name} blocked`)
  }, 120_000)

  test(`${name}: never sends a matched value at any split`, () => {
    const rules = [ruleOf(patternDetector(personalData.email, { streaming: true, paramOf: String }), 'redact')]
    const value = 'john.doe@example.com'
    for (const field of ['content', 'reasoning', 'arguments'] as const) {
      const source = field === 'arguments' ? `{"to":"me, ${value}, you"}` : `me, ${value}, you`
      for (let cut = 0; cut <= source.length; cut++) {
        const bytes = Buffer.from(
          stream([{ field, pieces: [source.slice(0, cut), source.slice(cut)].filter((piece) => piece !== '') }]),
        )
        const received = receivedFrom(dialect, framesOf(inspected(dialect, bytes, [], rules).bytes))
        expect(Object.values(received.channels).join('')).toBe(source.replace(value, '[EMAIL]'))
        expect(received.wholes.join()).not.toContain('john')
      }
    }
  })
}

const recorded = [
  ...recordings('openai-chat').map((recording) => ({ dialect: chat, ...recording })),
  ...recordings('openai-responses').map((recording) => ({ dialect: responses, ...recording })),
  ...recordings('anthropic-messages').map((recording) => ({ dialect: messages, ...recording })),
]

test('sends text before a match that only the end of the text confirms, before the text is repeated', () => {
  const rules = [ruleOf(termDetector(['a', '😀aa'], '#', plain), 'block')]
  for (const [, dialect, stream] of families) {
    const { bytes, stop } = inspected(dialect, Buffer.from(stream([{ field: 'content', pieces: ['😀a'] }])), [], rules)
    expect(stop?.verdict).toBe('block')
    expect(Object.values(receivedFrom(dialect, framesOf(bytes)).channels)).toEqual(['😀'])
  }
})

test('passes recorded streams without matches on unchanged', () => {
  const rules = [ruleOf(termDetector(['a phrase that no provider has said'], '#', plain), 'redact')]
  for (const { dialect, bytes } of recorded) {
    const { bytes: sent } = inspected(dialect, bytes, [], rules)
    const received = receivedFrom(dialect, framesOf(sent))
    const frames = framesOf(bytes)
    const reader = dialect.reader(start)
    const terminal = frames.findIndex((frame) => {
      openNext(reader, frame)
      return frame.data !== null && dialect.reader(start).frame({ event: frame.event, data: frame.data }).terminal
    })
    const before = receivedFrom(dialect, terminal < 0 ? frames : frames.slice(0, terminal + 1))
    expect(received).toEqual(before)
  }
})

test('recorded streams under common words say only placeholders for them', () => {
  const words = ['the', 'and', 'you', 'San', 'is']
  const rules = [ruleOf(termDetector(words, '#', { ...plain, wordBoundaries: true }), 'redact')]
  for (const { dialect, bytes } of recorded) {
    const { channels, kinds: kindsOf } = receivedFrom(dialect, framesOf(inspected(dialect, bytes, [], rules).bytes))
    for (const [channel, said] of Object.entries(channels)) {
      for (const word of words) expect(said).not.toMatch(new RegExp(`\\b${word}\\b`, 'i'))
      if (kindsOf[channel] === 'tool_arguments' && /^\{.*\}$/s.test(said)) JSON.parse(said)
    }
  }
})
