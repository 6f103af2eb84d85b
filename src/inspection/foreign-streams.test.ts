/**
 * A provider that answers in another language than it was asked in, or in none: however it cuts what policies look for,
 * nothing of it leaves in frames that the stream's own language does not know.
 */
import { describe, expect, test } from 'bun:test'
import { chat } from '../languages/chat/dialect.ts'
import type { Dialect } from '../languages/dialect.ts'
import { messages } from '../languages/messages/dialect.ts'
import { responses } from '../languages/responses/dialect.ts'
import { framesOf, start } from '../languages/testing/streams.ts'
import { personalData } from './detectors/personal-data/personal-data.ts'
import { patternDetector } from './regex/pattern-detector.ts'
import type { TextAction } from './rule.ts'
import { StreamInspector } from './stream.ts'
import { ruleOf } from './testing/passing.ts'

const text = 'I am z.q@ex.org, yes'
const email = patternDetector(personalData.email, { streaming: true, paramOf: String })

/** A frame of each language that brings a text, and where it stands in the parsed data. */
const forms: Readonly<Record<string, (piece: string) => { type?: string; [member: string]: unknown }>> = {
  chat: (content) => ({ object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content } }] }),
  messages: (piece) => ({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: piece } }),
  responses: (delta) => ({ type: 'response.output_text.delta', output_index: 0, content_index: 0, delta }),
  completions: (piece) => ({ object: 'text_completion', choices: [{ index: 0, text: piece }] }),
  gemini: (piece) => ({ candidates: [{ content: { role: 'model', parts: [{ text: piece }] }, index: 0 }] }),
  'nobody knows': (piece) => ({ type: 'unheard_of', said: { so: piece } }),
}

const frameOf = (form: string, piece: string): string => {
  const data = forms[form]?.(piece)
  if (data === undefined) return `data: ${piece}\n\n`
  return `${data.type === undefined ? '' : `event: ${data.type}\n`}data: ${JSON.stringify(data)}\n\n`
}

/** The text of what left, from the frames of the form and those of ours alike. */
function textOf(form: string, bytes: Uint8Array): string {
  return framesOf(bytes)
    .map(({ data }) => (form === 'plain' ? (data ?? '') : pieceIn(JSON.parse(data ?? 'null'))))
    .join('')
}

const labels = new Set(['type', 'object', 'role', 'id', 'model'])

function pieceIn(value: unknown): string {
  if (typeof value === 'string') return value
  if (typeof value !== 'object' || value === null) return ''
  return Object.entries(value)
    .map(([name, inner]) => (labels.has(name) ? '' : pieceIn(inner)))
    .join('')
}

function pass(dialect: Dialect, form: string, pieces: readonly string[], action: TextAction) {
  const reader = dialect.reader(start)
  const inspector = new StreamInspector(reader, [ruleOf(email, action)])
  const frames = framesOf(Buffer.from(pieces.map((piece) => frameOf(form, piece)).join('')))
  const out: Uint8Array[] = []
  let length = 0
  for (const frame of frames) {
    length += reader.frame({ event: frame.event, data: frame.data ?? '' }).textLength
    out.push(inspector.take(frame, false).bytes ?? new Uint8Array(0))
  }
  const end = inspector.end()
  out.push(end.bytes ?? new Uint8Array(0))
  return { left: textOf(form, Buffer.concat(out)), length }
}

/** Every way to cut the text in three. */
const cuts = Array.from({ length: text.length - 1 }, (_, first) =>
  Array.from({ length: text.length - first - 2 }, (_, second) => {
    const [one, two] = [first + 1, first + second + 2]
    return [text.slice(0, one), text.slice(one, two), text.slice(two)]
  }),
).flat()

for (const dialect of [chat, messages, responses]) {
  describe(dialect.family, () => {
    for (const form of [...Object.keys(forms), 'plain'].filter((each) => each !== dialect.family)) {
      test(`sends no matched text in frames of ${form} at any split, and counts their text`, () => {
        for (const pieces of cuts) {
          const redacted = pass(dialect, form, pieces, 'redact')
          expect(redacted.left).toBe('I am [EMAIL], yes')
          expect(redacted.length).toBeGreaterThanOrEqual(text.length)
          expect(pass(dialect, form, pieces, 'block').left).toBe('I am ')
        }
      })
    }
  })
}
