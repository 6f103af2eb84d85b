/**
 * No string that a provider or a caller may put anywhere escapes the policies: random members with a marked text at
 * random places in every dialect's bodies and frames; after all found texts are replaced, the mark is nowhere.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { chat } from '../../chat/dialect.ts'
import type { Dialect } from '../../dialect.ts'
import { messages } from '../../messages/dialect.ts'
import { responses } from '../../responses/dialect.ts'
import { framesOf, openNext, start } from '../../testing/streams.ts'
import type { JsonObject } from '../json-value.ts'

const mark = 'MARKED'
const { value: unheard } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom(mark, `a ${mark} b`, 'other', null, 3, true),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.stringMatching(/^new_[a-z]{1,8}$/), tie('value'), { maxKeys: 3 }),
  ),
}))
const members = fc.dictionary(fc.stringMatching(/^new_[a-z]{1,8}$/), unheard, { minKeys: 1, maxKeys: 4 })

type Shape = (extra: JsonObject) => JsonObject

const frames: readonly [Dialect, readonly Shape[]][] = [
  [
    chat,
    [
      (extra) => ({ choices: [{ index: 0, delta: extra }] }),
      (extra) => ({ choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: extra }] } }] }),
      (extra) => ({ choices: [{ index: 0, delta: {}, ...extra, finish_reason: 'stop' }] }),
      (extra) => ({ choices: [], ...extra }),
      (extra) => ({ choices: [{ index: 0, delta: extra }], error: { message: 'said beside the text', ...extra } }),
    ],
  ],
  [
    responses,
    [
      (extra) => ({ type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: 'a', ...extra }),
      (extra) => ({ type: 'response.unheard_of.delta', output_index: 0, delta: extra }),
      (extra) => ({ type: 'response.unheard_of', ...extra }),
      (extra) => ({ type: 'response.output_text.delta', delta: extra, error: { message: 'said beside it', ...extra } }),
      (extra) => ({ type: 'error', message: 'said flat', ...extra }),
      (extra) => ({ type: 'error', message: 'MARKED', error: { message: 'MARKED', ...extra } }),
      (extra) => ({ type: 'response.failed', response: { output: [], error: { message: 'MARKED', ...extra } } }),
      (extra) => ({ type: 'response.content_part.done', part: { type: 'output_text', ...extra } }),
      (extra) => ({ type: 'response.output_item.done', item: { type: 'unheard_of_call', ...extra } }),
      (extra) => ({ type: 'response.output_item.added', item: { type: 'message', content: [extra] }, ...extra }),
      (extra) => ({ type: 'response.completed', response: { output: [extra], ...extra } }),
    ],
  ],
  [
    messages,
    [
      (extra) => ({ type: 'message_start', message: { content: [extra], ...extra } }),
      (extra) => ({ type: 'content_block_start', index: 0, content_block: { type: 'unheard_of', ...extra } }),
      (extra) => ({ type: 'content_block_start', index: 0, content_block: { type: 'tool_use', input: extra } }),
      (extra) => ({ type: 'content_block_delta', index: 0, delta: { type: 'unheard_of_delta', ...extra }, ...extra }),
      (extra) => ({ type: 'message_delta', delta: extra, ...extra }),
      (extra) => ({ type: 'unheard_of', ...extra }),
      (extra) => ({ type: 'error', error: { message: 'MARKED', ...extra }, ...extra }),
    ],
  ],
]

describe('no text of a frame escapes', () => {
  for (const [dialect, shapes] of frames) {
    test(dialect.family, () => {
      fc.assert(
        fc.property(fc.constantFrom(...shapes), members, (shape, extra) => {
          const data = JSON.stringify(shape(extra))
          const [frame] = framesOf(Buffer.from(`data: ${data}\n\n`))
          const opened = frame === undefined ? null : openNext(dialect.reader(start), frame)
          for (const piece of opened?.pieces ?? []) piece.replace(piece.text.replaceAll(mark, ''))
          const passed = Buffer.from(opened?.bytes() ?? []).toString()
          expect(passed).not.toContain(mark)
          if (!data.includes(mark)) expect(passed).toBe(`data: ${data}\n\n`)
        }),
        { numRuns: 150 },
      )
    })
  }
})

const answers: readonly [Dialect, Shape][] = [
  [chat, (extra) => ({ choices: [{ index: 0, message: { role: 'assistant', ...extra }, ...extra }], ...extra })],
  [responses, (extra) => ({ output: [{ type: 'message', content: [extra], ...extra }], ...extra })],
  [messages, (extra) => ({ content: [{ type: 'unheard_of', ...extra }, extra], ...extra })],
]

const requests: readonly [Dialect, Shape][] = [
  [chat, (extra) => ({ messages: [{ role: 'user', content: [{ type: 'unheard_of', ...extra }], ...extra }] })],
  [responses, (extra) => ({ input: [{ role: 'user', content: [{ type: 'unheard_of', ...extra }], ...extra }] })],
  [messages, (extra) => ({ messages: [{ role: 'user', content: [{ type: 'unheard_of', ...extra }] }] })],
]

describe('no text of a body escapes', () => {
  for (const [kind, shapes] of [
    ['request', requests],
    ['answer', answers],
  ] as const) {
    for (const [dialect, shape] of shapes) {
      test(`${dialect.family} ${kind}`, () => {
        fc.assert(
          fc.property(members, (extra) => {
            const body = structuredClone(shape(extra))
            const slots = kind === 'request' ? dialect.requestText(body) : dialect.answerText(body)
            for (const slot of slots) {
              expect(Object.keys(body)).toContain(slot.member)
              slot.replace(slot.text.replaceAll(mark, ''))
            }
            expect(JSON.stringify(body)).not.toContain(mark)
          }),
          { numRuns: 120 },
        )
      })
    }
  }
})

describe('reads a value in place of an answer’s list, or of an object in it, exactly once', () => {
  const containers: readonly ((item: JsonObject) => unknown)[] = [
    (item) => item,
    (item) => ({ 0: item }),
    (item) => [[item]],
    (item) => [{ 0: item }],
    (item) => [item, 'a MARKED b', ['MARKED'], null],
    () => ['a MARKED b'],
    () => 'a MARKED b',
  ]
  for (const [dialect, member, item] of [
    [chat, 'choices', { index: 0, message: { role: 'assistant', content: 'MARKED', tool_calls: { 0: 'MARKED' } } }],
    [responses, 'output', { type: 'message', content: { 0: { type: 'output_text', text: 'MARKED' } } }],
    [responses, 'output', { type: 'message', content: ['MARKED', ['MARKED']] }],
    [messages, 'content', { type: 'text', text: 'MARKED' }],
  ] as const) {
    test.each(containers)(`${dialect.family} %#`, (container) => {
      const body: JsonObject = structuredClone({ [member]: container(item) })
      const marks = JSON.stringify(body).split(mark).length - 1
      const slots = dialect.answerText(body).filter(({ text }) => text.includes(mark))
      expect(slots).toHaveLength(marks)
      for (const slot of slots) {
        expect(slot).toMatchObject({ member, role: 'assistant', kind: 'content' })
        slot.replace(slot.text.replaceAll(mark, ''))
      }
      expect(JSON.stringify(body)).not.toContain(mark)
    })
  }
})

test('reads members of any name beside an answer’s list, also an empty name', () => {
  for (const { answerText } of [chat, responses, messages]) {
    for (const name of ['', 'null', '__proto__', 'constructor']) {
      const body: unknown = JSON.parse(`{"${name}":[{"a":["MARKED"]}],"new":{"${name}":[{"a":"MARKED"}]}}`)
      expect(answerText(body).filter(({ text }) => text === mark)).toHaveLength(2)
    }
  }
})

test('counts the text of a whole answer in another language, but not of an error', () => {
  const bodies: readonly JsonObject[] = [
    { choices: [{ message: { content: 'four' } }] },
    { output: [{ type: 'message', content: [{ type: 'output_text', text: 'four' }] }] },
    { content: [{ type: 'text', text: 'four' }] },
    { candidates: [{ content: { parts: [{ text: 'four' }] } }] },
  ]
  for (const { readAnswer } of [chat, responses, messages]) {
    for (const body of bodies) expect(readAnswer(body)).toEqual({ usage: null, textLength: 4 })
    expect(readAnswer({ error: { message: 'four' } })).toEqual({ usage: null, textLength: 0 })
  }
})

test('whatever a frame holds, it is read without throwing', () => {
  const types = [
    'response.created',
    'response.completed',
    'response.output_text.delta',
    'response.output_item.done',
    'content_block_delta',
    'content_block_start',
    'message_start',
    'message_delta',
    'error',
  ]
  const names = ['choices', 'delta', 'response', 'item', 'part', 'message', 'content_block', 'usage', 'error', 'index']
  const odd = fc.dictionary(fc.constantFrom(...names), fc.jsonValue({ maxDepth: 3 }))
  fc.assert(
    fc.property(
      fc.constantFrom(chat, responses, messages),
      fc.array(fc.tuple(fc.constantFrom(...types), fc.oneof(odd, fc.jsonValue())), { maxLength: 6 }),
      (dialect, events) => {
        const reader = dialect.reader(start)
        for (const [type, value] of events) {
          const isPlain = typeof value !== 'object' || value === null || Array.isArray(value)
          const data = JSON.stringify(isPlain ? value : { type, ...value })
          for (const frame of framesOf(Buffer.from(`event: ${type}\ndata: ${data}\n\n`))) {
            const opened = openNext(reader, frame)
            for (const channel of opened?.ends ?? []) reader.delta(channel, 'x')
            opened?.bytes()
          }
        }
      },
    ),
    { numRuns: 400 },
  )
})
