/**
 * Whatever ends a stream's lines, and wherever its bytes are cut: what a client reads as an event was inspected as
 * that.
 */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { chat } from '../languages/chat/dialect.ts'
import { framesOf, start } from '../languages/testing/streams.ts'
import { eventsIn } from '../lib/testing/event-stream.ts'
import { termDetector } from './detectors/terms/term-detector.ts'
import type { TextAction } from './rule.ts'
import { StreamInspector } from './stream.ts'
import { cutAt, ruleOf } from './testing/passing.ts'

const runs = Number(process.env.GATEHOUSE_PROPERTY_RUNS ?? 500)
const term = termDetector(['blackbird'], 'TERM', { caseSensitive: false, homoglyphs: false, wordBoundaries: false })

function pass(bytes: Uint8Array, cuts: readonly number[], action: TextAction): Buffer {
  const reader = chat.reader(start)
  const inspector = new StreamInspector(reader, [ruleOf(term, action)])
  const out: Uint8Array[] = []
  for (const frame of framesOf(bytes, cuts)) {
    const facts = frame.data === null ? null : reader.frame({ event: frame.event, data: frame.data })
    const passed = inspector.take(frame, facts?.terminal ?? false)
    if (passed.bytes !== null) out.push(passed.bytes)
  }
  return Buffer.concat(out)
}

/** The text of an answer's events, and whether it has ended. */
function answerIn(bytes: Uint8Array) {
  const events = eventsIn(bytes).map(({ data }) => data)
  const contents = events.filter((data) => data !== '[DONE]').map((data) => JSON.parse(data).choices[0].delta.content)
  return { text: contents.join(''), ended: events.includes('[DONE]') }
}

const delta = (content: string) => JSON.stringify({ id: 'c', choices: [{ index: 0, delta: { content } }] })
const lineEnd = fc.constantFrom('\n', '\r', '\r\n')
const aside = fc.constantFrom(
  ...[': blackbird', 'id: blackbird', 'retry: 1', 'blackbird', 'Data: blackbird', 'event: blackbird', 'event: ping'],
  ...[
    '\uFEFFdata: blackbird',
    '\uFEFFevent: x',
    ' data: blackbird',
    'data : blackbird',
    `\uFEFFdata: ${delta('blackbird')}`,
  ],
)

interface Frame {
  readonly asides: readonly string[]
  /** Stands before the data lines rather than after them. */
  readonly first: boolean
  readonly inLines: boolean
  readonly ends: readonly string[]
}

const frame: fc.Arbitrary<Frame> = fc.record({
  asides: fc.array(aside, { maxLength: 3 }),
  first: fc.boolean(),
  inLines: fc.boolean(),
  ends: fc.array(lineEnd, { minLength: 7, maxLength: 7 }),
})

function written({ asides, first, inLines, ends }: Frame, data: string): string {
  const lines = inLines ? data.replace(',"choices"', '\n,"choices"').split('\n') : [data]
  const said = lines.map((line) => `data: ${line}`)
  const all = [...(first ? asides : []), ...said, ...(first ? [] : asides), '']
  // A CR and an LF would be one line end, and the frame not whole.
  return all
    .map((line, index) => `${line}${ends[index]}`)
    .join('')
    .replace(/\r\n$/, '\r\n\n')
}

test('reads every event that any client may read, at every kind of line end, before it is sent', () => {
  fc.assert(
    fc.property(
      fc.constantFrom('a blackbird', 'no bird at all', 'blackbird b blackbir', 'blackblackbird.'),
      fc.array(fc.nat(), { maxLength: 5 }),
      fc.array(frame, { minLength: 8, maxLength: 8 }),
      fc.boolean(),
      fc.array(fc.nat(), { maxLength: 12 }),
      (text, pieces, frames, marked, cuts) => {
        const said = [...cutAt(text, pieces).map(delta), '[DONE]']
        const stream = said.map((data, index) => written(frames[index] ?? frames[0] ?? never(), data)).join('')
        // The mark of a line that is the stream's first would be the stream's.
        const bytes = Buffer.from(`${marked ? '\uFEFF' : ''}:\n\n${stream}\n`)
        const places = cuts.map((cut) => cut % bytes.length).toSorted((one, other) => one - other)
        const redacted = pass(bytes, places, 'redact')
        expect(answerIn(redacted)).toEqual({ text: text.replaceAll('blackbird', '[TERM]'), ended: true })
        const blocked = pass(bytes, places, 'block')
        const [before = '', ...found] = text.split('blackbird')
        expect(answerIn(blocked)).toEqual({ text: before, ended: found.length === 0 })
        for (const out of [redacted, blocked]) expect(out.toString()).not.toContain('blackbird')
      },
    ),
    { numRuns: runs },
  )
})

function never(): never {
  throw new Error('There are as many frames as pieces')
}
