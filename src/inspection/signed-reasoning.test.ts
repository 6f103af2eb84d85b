/**
 * Thoughts that are signed, on their way through the rules: they keep their signature where they leave as they came, be
 * it late, and lose it where they were altered. Providers refuse thinking that is not what they signed.
 */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { chat } from '../languages/chat/dialect.ts'
import type { Dialect } from '../languages/dialect.ts'
import { messages } from '../languages/messages/dialect.ts'
import { isObject, type JsonObject, objectsOf, textOf } from '../languages/reading/json-value.ts'
import { responses } from '../languages/responses/dialect.ts'
import { dataOf, framesOf, start } from '../languages/testing/streams.ts'
import type { SseFrame } from '../lib/http/sse.ts'
import { passWhole } from './channel.ts'
import { termDetector } from './detectors/terms/term-detector.ts'
import { StreamInspector } from './stream.ts'
import { cutAt, ruleOf } from './testing/passing.ts'

const plain = { caseSensitive: false, homoglyphs: false, wordBoundaries: false }
const redacting = [ruleOf(termDetector(['forbidden', 'think so'], 'TERM', plain), 'redact')]
const redacted = (text: string) => passWhole(redacting, { kind: 'reasoning', role: null, place: '', text }, []).text

function inspected(dialect: Dialect, stream: string): JsonObject[] {
  const reader = dialect.reader(start)
  const inspector = new StreamInspector<SseFrame>(reader, redacting)
  const out: Uint8Array[] = []
  for (const frame of framesOf(Buffer.from(stream))) {
    const facts = frame.data === null ? null : reader.frame({ event: frame.event, data: frame.data })
    const { bytes, stop } = inspector.take(frame, facts?.terminal === true)
    expect(stop).toBeNull()
    if (bytes !== null) out.push(bytes)
  }
  return dataOf(framesOf(Buffer.concat(out)))
}

const marked = 'gatehouse.messages..c2ln'
const unsigned = 'gatehouse.messages..'

const chunk = (delta: object, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason }] })}\n\n`
const detailed = (...reasoning_details: readonly object[]) => chunk({ reasoning_details })
const ending = `${chunk({ content: 'Done.' })}${chunk({}, 'stop')}data: [DONE]\n\n`

const detailsOf = (frames: readonly JsonObject[]): JsonObject[] =>
  frames.flatMap(({ choices }) =>
    objectsOf(choices).flatMap(({ delta }) => (isObject(delta) ? objectsOf(delta.reasoning_details) : [])),
  )

test('passes an unaltered chat reasoning detail byte for byte with its signature', () => {
  const details = ['let me think', 'I thin', 'a forbid', 'done.\n'].map((text) => ({
    ...{ type: 'reasoning.text', text, signature: marked },
  }))
  const stream = details.map((detail) => detailed(detail)).join('')
  expect(detailsOf(inspected(chat, `${stream}${ending}`))).toEqual(details)
  expect(detailsOf(inspected(chat, `${detailed(...details)}${ending}`))).toEqual(details)
})

test('keeps the provider mark in the signature of an altered chat detail, and no unmarked signature', () => {
  for (const [signature, rest] of [
    [marked, { signature: unsigned }],
    ['c2ln', {}],
  ] as const) {
    const detail = { type: 'reasoning.text', index: 0, text: 'a forbidden thing', signature }
    const untouched = { type: 'reasoning.text', index: 1, text: 'fine', signature }
    const expected = [{ type: 'reasoning.text', index: 0, text: 'a [TERM] thing', ...rest }, untouched]
    expect(detailsOf(inspected(chat, `${detailed(detail)}${detailed(untouched)}${ending}`))).toEqual(expected)
    const body = { choices: [{ message: { content: 'x', reasoning_details: [{ ...detail }, { ...untouched }] } }] }
    for (const slot of chat.answerText(body)) slot.replace(redacted(slot.text))
    expect<unknown>(body.choices[0]?.message.reasoning_details).toEqual(expected)
    const sent = { messages: [{ role: 'assistant', reasoning_details: [{ ...detail }, { ...untouched }] }] }
    for (const slot of chat.requestText(sent)) slot.replace(redacted(slot.text))
    expect<unknown>(sent.messages[0]?.reasoning_details).toEqual(expected)
  }
})

test('joins details of one index or type that the last one signs, and keeps the signature only when unaltered', () => {
  const joins = fc.constantFrom({ index: 2, id: 'r-1', format: 'anthropic-claude-v1' }, { index: 0 }, {})
  const words = fc.array(fc.constantFrom('I ', 'think', ' so', 'forbid', 'den', ' ', 'a', '.'), { minLength: 1 })
  const cuts = fc.array(fc.nat({ max: 60 }), { maxLength: 6 })
  fc.assert(
    fc.property(joins, words, cuts, fc.boolean(), (join, said, places, besideText) => {
      const text = said.join('')
      const labels = { type: 'reasoning.text', ...join }
      const pieces = cutAt(text, places).filter((piece) => piece !== '')
      const last = besideText ? (pieces.pop() ?? '') : ''
      const stream = [...pieces.map((piece) => ({ ...labels, text: piece })), { ...labels, text: last, signature: 's' }]
      const details = detailsOf(inspected(chat, `${stream.map((piece) => detailed(piece)).join('')}${ending}`))
      expect(details.map((detail) => textOf(detail.text) ?? '').join('')).toBe(redacted(text))
      expect(details.at(-1)?.signature).toBe(redacted(text) === text ? 's' : undefined)
      for (const detail of details) expect(detail).toMatchObject(labels)
    }),
    { numRuns: 500 },
  )
})

test('gives each thought after a signed one its own signature', () => {
  const thought = (text: string) => ({ type: 'reasoning.text', text, signature: marked })
  const stream = ['a forbidden', 'I think', ' so and on', 'forbid'].map((text) => detailed(thought(text))).join('')
  expect(detailsOf(inspected(chat, `${stream}${ending}`))).toEqual([
    { ...thought('a [TERM]'), signature: unsigned },
    thought('I think'),
    thought(' so and on'),
    thought('forbid'),
  ])
})

test('does not inspect encrypted thinking, unless it holds words', () => {
  const detail = (data: string) => ({ type: 'reasoning.encrypted', data })
  const texts = (data: string) =>
    chat.answerText({ choices: [{ message: { reasoning_details: [detail(data)] } }] }).map((slot) => slot.text)
  expect(texts('gatehouse.messages-hidden..aforbiddenB+/=')).toEqual([])
  expect(texts('a forbidden thing')).toEqual(['a forbidden thing'])
  const passed = detailsOf(inspected(chat, `${detailed(detail('Zforbidden/A=='))}${ending}`))
  expect(passed).toEqual([detail('Zforbidden/A==')])
})

const itemOf = (text: string, encrypted_content: string) => ({
  ...{ id: 'rs_1', type: 'reasoning', summary: [{ type: 'summary_text', text }], encrypted_content },
})

test('keeps the provider mark of an altered responses reasoning item, and only its own thought', () => {
  for (const [text, encrypted, rest] of [
    ['a forbidden thing', marked, unsigned],
    ['a forbidden thing', 'gAAAAA', 'gAAAAA'],
    ['let me thin', marked, marked],
  ] as const) {
    const expected = itemOf(redacted(text), rest)
    const body = { output: [itemOf(text, encrypted)] }
    for (const slot of responses.answerText(body)) slot.replace(redacted(slot.text))
    expect(body.output).toEqual([expected])
    const sent = { input: [itemOf(text, encrypted)] }
    for (const slot of responses.requestText(sent)) slot.replace(redacted(slot.text))
    expect(sent.input).toEqual([expected])
    const place = { item_id: 'rs_1', output_index: 0, summary_index: 0 }
    const item = itemOf(text, encrypted)
    const stream = [
      { type: 'response.output_item.added', output_index: 0, item: { id: 'rs_1', type: 'reasoning', summary: [] } },
      { type: 'response.reasoning_summary_text.delta', ...place, delta: text.slice(0, 7) },
      { type: 'response.reasoning_summary_text.delta', ...place, delta: text.slice(7) },
      { type: 'response.reasoning_summary_text.done', ...place, text },
      { type: 'response.output_item.done', output_index: 0, item },
      { type: 'response.completed', response: { id: 'r', output: [item] } },
    ].map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    const frames = inspected(responses, stream.join(''))
    expect(frames.find(({ type }) => type === 'response.output_item.done')?.item).toEqual(expected)
    expect(frames.at(-1)?.response).toMatchObject({ output: [expected] })
  }
})

test('keeps the signature of unaltered messages thinking at any split, and marks altered thinking', () => {
  const words = fc.array(fc.constantFrom('I ', 'think', ' so', 'forbid', 'den', ' ', 'a', '.'), { minLength: 1 })
  const cuts = fc.array(fc.nat({ max: 60 }), { maxLength: 6 })
  const signatures = fc.constantFrom(
    { signature: 'c2ln', rest: unsigned },
    { signature: 'gatehouse.gemini..c2ln', rest: 'gatehouse.gemini..' },
    { signature: '', rest: '' },
  )
  fc.assert(
    fc.property(words, cuts, signatures, (said, places, { signature, rest }) => {
      const text = said.join('')
      const expected = redacted(text) === text ? signature : rest
      const deltas = cutAt(text, places).map((thinking) => ({ type: 'thinking_delta', thinking }))
      const stream = [
        { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } },
        ...[...deltas, { type: 'signature_delta', signature }].map((delta) => ({
          ...{ type: 'content_block_delta', index: 0, delta },
        })),
        { type: 'content_block_stop', index: 0 },
        { type: 'message_stop' },
      ].map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
      const sent = inspected(messages, stream.join('')).flatMap(({ delta }) => (isObject(delta) ? [delta] : []))
      expect(sent.map(({ thinking }) => textOf(thinking) ?? '').join('')).toBe(redacted(text))
      expect(sent.at(-1)).toEqual({ type: 'signature_delta', signature: expected })
      const body = { content: [{ type: 'thinking', thinking: text, signature }] }
      for (const slot of messages.answerText(body)) slot.replace(redacted(slot.text))
      expect(body.content[0]?.signature || '').toBe(expected)
    }),
    { numRuns: 300 },
  )
})

test('finds a term cut by a signature when clients join the details around it', () => {
  const rules = [ruleOf(termDetector(['forbidden'], 'TERM', plain), 'redact')]
  for (const join of [{ index: 0 }, {}]) {
    const piece = (text: string) => detailed({ type: 'reasoning.text', ...join, text, signature: 'c2ln' })
    const reader = chat.reader(start)
    const inspector = new StreamInspector<SseFrame>(reader, rules)
    const stops = framesOf(Buffer.from(`${piece('a forb')}${piece('idden thing')}`)).map((frame) => {
      if (frame.data !== null) reader.frame({ event: frame.event, data: frame.data })
      return inspector.take(frame, false).stop?.verdict
    })
    expect(stops).toEqual([undefined, 'block'])
  }
})
