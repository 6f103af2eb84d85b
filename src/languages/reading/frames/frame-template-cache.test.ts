import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { type SseFrame, SseSplitter } from '../../../lib/http/sse.ts'
import { chatReader } from '../../chat/stream-reader.ts'
import type { FrameText, StreamReader } from '../../dialect.ts'
import { messagesReader } from '../../messages/stream-reader.ts'
import { start } from '../../testing/streams.ts'
import { parseObject } from '../json-value.ts'
import { FrameTemplateCache } from './frame-template-cache.ts'

const said = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.constantFrom('a', 'the ', 'blue', 'data:x', 'é 🙂', '", "x": "', '\\', '\n', '\u0001', ''),
  },
  fc.string({ unit: 'grapheme', maxLength: 6 }),
)
const member = fc.constantFrom('content', 'content', 'content', 'reasoning_content', 'refusal', 'name', 'audio')
const delta = fc.oneof(
  { weight: 6, arbitrary: said.map((content) => ({ content })) },
  fc.dictionary(member, said, { maxKeys: 2 }),
  said.map((text) => ({
    content: text,
    tool_calls: [{ index: 0, id: 'call_1', function: { name: 'f', arguments: text } }],
  })),
  said.map((text) => ({ content: [{ type: 'text', text }] })),
)
const choice = fc.record(
  {
    index: fc.constantFrom(0, 0, 0, 1),
    delta,
    logprobs: fc.constantFrom(null, null, { content: [] }),
    finish_reason: fc.constantFrom(null, null, null, null, 'stop'),
    text: said,
  },
  { requiredKeys: ['index', 'delta'] },
)
const chunk = fc.oneof(
  { weight: 6, arbitrary: delta.map((each) => ({ id: 'chatcmpl-1', choices: [{ index: 0, delta: each }] })) },
  fc.record(
    {
      id: fc.constantFrom('chatcmpl-1', 'chatcmpl-word', '"content"'),
      choices: fc.array(choice, { maxLength: 2 }),
      usage: fc.constantFrom(null, { prompt_tokens: 1, completion_tokens: 2 }),
      type: fc.constantFrom('message_start', 'x'),
      error: fc.constantFrom(null, { code: 'x' }),
      obfuscation: fc.constantFrom('', 'aB3', 'x1', 'a word', '"}', '\\'),
    },
    { requiredKeys: ['choices'] },
  ),
)
const text = fc.oneof(
  { weight: 8, arbitrary: chunk.map((each) => JSON.stringify(each)) },
  fc.constantFrom('[DONE]', 'no JSON', '{"choices":[{"delta":{"content":"a","content":"b"}}]}'),
  // As another frame is, but that it breaks off, or goes on.
  chunk.map((each) => JSON.stringify(each).slice(0, -1)),
  chunk.map((each) => `${JSON.stringify(each)}}`),
)

const event = fc.oneof(
  { weight: 6, arbitrary: said.map((each) => ({ index: 0, delta: { type: 'text_delta', text: each } })) },
  fc.record({
    index: fc.constantFrom(0, 1),
    delta: fc.record({ type: fc.constantFrom('text_delta', 'x'), text: said, more: said }, { requiredKeys: ['type'] }),
  }),
  said.map((each) => ({ index: 0, delta: { type: 'thinking_delta', thinking: each } })),
  fc.constant({ index: 0, delta: { type: 'signature_delta', signature: 'c2ln' } }),
)
const messagesText = fc.oneof(
  { weight: 6, arbitrary: event.map((each) => JSON.stringify({ type: 'content_block_delta', ...each })) },
  fc.constantFrom(
    '{"type":"content_block_stop","index":0}',
    '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
    '{"type":"message_delta","delta":{},"usage":{"output_tokens":3}}',
    '{"type":"message_stop"}',
  ),
)

const frameOf = (data: string): SseFrame[] => new SseSplitter(1 << 20).push(Buffer.from(`data: ${data}\n\n`))

const shown = (opened: FrameText | null) =>
  opened && {
    pieces: opened.pieces.map(({ channel, kind, text: piece, whole }) => ({ channel, kind, text: piece, whole })),
    ends: [...opened.ends],
    contradicts: opened.contradicts ?? false,
  }

/** What a reader makes of each frame, and of its bytes with some pieces replaced. */
function followed(
  reader: StreamReader,
  datas: readonly string[],
  replaced: readonly boolean[],
  opens: boolean,
): unknown[] {
  return datas.flatMap((data, index) =>
    frameOf(data).map((frame) => {
      const facts = reader.frame({ event: frame.event, data: frame.data ?? '' })
      if (!opens) return { facts }
      const opened = reader.open(frame)
      const seen = shown(opened)
      const going = opened?.pieces.filter(({ whole, kind }) => !whole && kind !== 'name') ?? []
      const owed = going.map(({ channel }) => Buffer.from(reader.delta(channel, 'x')).toString())
      if (replaced[index % replaced.length])
        for (const piece of opened?.pieces ?? []) piece.replace(`[${piece.text.length}]`)
      return {
        facts,
        seen,
        owed,
        bytes: Buffer.from(opened?.bytes() ?? frame.bytes)
          .toString()
          .trim(),
      }
    }),
  )
}

/** White space that is another in each frame says nothing of JSON, and makes no frame as the one before. */
const apart = (data: string, index: number): string =>
  parseObject(data) === null ? data : `{${' '.repeat((index % 2) + 1)}${data.slice(1)}`

const withoutSpace = (seen: unknown): unknown => JSON.parse(JSON.stringify(seen).replaceAll(/(data: \{) {1,2}/g, '$1'))

for (const [language, reader, texts] of [
  ['chat', chatReader, text],
  ['messages', messagesReader, messagesText],
] as const) {
  test(`the template of the last frame gives the same result as reading the frame (${language})`, () => {
    const streams = fc.array(
      fc.tuple(texts, fc.integer({ min: 1, max: 3 })).map(([data, times]) => Array.from({ length: times }, () => data)),
      { maxLength: 12 },
    )
    fc.assert(
      fc.property(
        streams,
        fc.array(fc.boolean(), { minLength: 1, maxLength: 5 }),
        fc.boolean(),
        (runs, replaced, opens) => {
          const datas = runs.flat()
          const separate = datas.map(apart)
          expect(withoutSpace(followed(reader(start), datas, replaced, opens))).toEqual(
            withoutSpace(followed(reader(start), separate, replaced, opens)),
          )
        },
      ),
      { numRuns: 750 },
    )
  })
}

const chunkOf = (content: string, more = '') =>
  `{"id":"c1","choices":[{"index":0,"delta":{"content":"${content}"},"finish_reason":null}]${more}}`
const learned = () => {
  const alike = new FrameTemplateCache(() => chatReader(start))
  alike.learn({ event: null, data: chunkOf('one') }, 'content', 'one')
  return alike
}

test('matches a frame that differs from the one before only in its text', () => {
  expect(learned().textOf({ event: null, data: chunkOf('two and a "'.slice(0, -1)) })).toBe('two and a ')
  expect(learned().textOf({ event: null, data: chunkOf('a line\\nand \\"more\\"') })).toBe('a line\nand "more"')
})

test.each([
  ['it has half an escape', chunkOf('t\\'), null],
  ['it has a quote', chunkOf('t","role":"x'), null],
  ['it has a control character', chunkOf('t\n'), null],
  ['it is empty', chunkOf(''), null],
  ['something else follows', chunkOf('two', ',"usage":{}'), null],
  ['it has another event', chunkOf('two'), 'x'],
])('a frame is another where %s', (_, data, name) => {
  expect(learned().textOf({ event: name, data })).toBeNull()
})

test('matches a frame whose padding differs but holds no text', () => {
  const alike = new FrameTemplateCache(() => chatReader(start))
  alike.learn({ event: null, data: chunkOf('one', ',"obfuscation":"aB3"') }, 'content', 'one')
  const textOf = (padding: string) => alike.textOf({ event: null, data: chunkOf('two', `,"obfuscation":"${padding}"`) })
  expect([textOf('x'), textOf(''), textOf('a word'), textOf('\\"')]).toEqual(['two', 'two', null, null])
  expect(alike.textOf({ event: null, data: chunkOf('two', ',"obfuscation":"') })).toBeNull()
})

test('does not learn a frame whose padding holds a text', () => {
  const alike = new FrameTemplateCache(() => chatReader(start))
  alike.learn({ event: null, data: chunkOf('one', ',"obfuscation":"a word"') }, 'content', 'one')
  expect(alike.textOf({ event: null, data: chunkOf('two', ',"obfuscation":"aB3"') })).toBeNull()
})

const padded = fc
  .array(fc.tuple(said, fc.constantFrom('', 'aB3', 'x1', 'a word', 'my secret', '"}', '\\')), { maxLength: 8 })
  .map((frames) =>
    frames.map(([content, obfuscation]) =>
      JSON.stringify({ id: 'chatcmpl-1', choices: [{ index: 0, delta: { content } }], obfuscation }),
    ),
  )

test('frames that differ in text and padding alone are read as each of them is', () => {
  fc.assert(
    fc.property(padded, fc.array(fc.boolean(), { minLength: 1, maxLength: 5 }), (datas, replaced) => {
      const separate = datas.map(apart)
      expect(withoutSpace(followed(chatReader(start), datas, replaced, true))).toEqual(
        withoutSpace(followed(chatReader(start), separate, replaced, true)),
      )
    }),
    { numRuns: 300 },
  )
})

test('does not learn a frame with its text twice', () => {
  const alike = new FrameTemplateCache(() => chatReader(start))
  const data = '{"choices":[{"delta":{"content":"one","x":{"content":"one"}}}]}'
  alike.learn({ event: null, data }, 'content', 'one')
  expect(alike.textOf({ event: null, data })).toBeNull()
})

/** What a reader makes of each frame, the bytes of those that it knows not decoded. */
function repeated(reader: StreamReader, datas: readonly string[]): { facts: unknown; known: boolean }[] {
  return datas.map((data) => {
    const known = reader.repeat?.(Buffer.from(`data: ${data}\n\n`)) ?? null
    return { facts: known ?? reader.frame({ event: null, data }), known: known !== null }
  })
}

for (const [language, reader, texts] of [
  ['chat', chatReader, text],
  ['messages', messagesReader, messagesText],
] as const) {
  test(`bytes that are known from the frame before mean what the frame means (${language})`, () => {
    const streams = fc.array(fc.oneof(texts, fc.constantFrom(chunkOf('one'), chunkOf('two'))), { maxLength: 20 })
    fc.assert(
      fc.property(streams, (datas) => {
        const facts = repeated(reader(start), datas).map((each) => each.facts)
        const followed = reader(start)
        expect(facts).toEqual(datas.map((data) => followed.frame({ event: null, data })))
      }),
      { numRuns: 750 },
    )
  })
}

test('knows the bytes of a frame that differs only in its plain text and its padding', () => {
  const datas = [
    chunkOf('one', ',"obfuscation":"aB3"'),
    chunkOf('two words', ',"obfuscation":"x"'),
    chunkOf('', ',"obfuscation":"x"'),
    chunkOf('one', ',"obfuscation":"aB3"'),
    chunkOf('é', ',"obfuscation":"x"'),
    chunkOf('\\"', ',"obfuscation":"x"'),
    chunkOf('data:x', ',"obfuscation":"x"'),
    chunkOf('two', ',"obfuscation":"a word"'),
    chunkOf('two', ',"obfuscation":"x"'),
    chunkOf('two', ',"obfuscation":"x","usage":{}'),
  ]
  const known = repeated(chatReader(start), datas).map((each) => each.known)
  expect(known).toEqual([false, true, false, false, false, false, false, false, false, false])
})

test.each([
  ['a part of a frame', `data: ${chunkOf('two')}\n`],
  ['a frame and a part of the next', `data: ${chunkOf('two')}\n\ndata`],
  ['a frame and another', `data: ${chunkOf('two')}\n\ndata: [DONE]\n\n`],
  ['other line ends', `data: ${chunkOf('two')}\r\n\r\n`],
  ['a name of the event', `event: x\ndata: ${chunkOf('two')}\n\n`],
  ['a line before', `: x\ndata: ${chunkOf('two')}\n\n`],
  ['nothing', ''],
])('does not know bytes that are %s', (_, bytes) => {
  const reader = chatReader(start)
  reader.frame({ event: null, data: chunkOf('one') })
  expect(reader.repeat?.(Buffer.from(`data: ${chunkOf('two')}\n\n`))?.textLength).toBe(3)
  expect(reader.repeat?.(Buffer.from(bytes))).toBeNull()
})

test('knows the bytes of several frames', () => {
  const reader = chatReader(start)
  const more = ',"obfuscation":"aB3"'
  reader.frame({ event: null, data: chunkOf('one', more) })
  const bytes = `data: ${chunkOf('two', more)}\n\ndata: ${chunkOf('three', ',"obfuscation":""')}\n\n`
  expect(reader.repeat?.(Buffer.from(bytes))?.textLength).toBe(8)
})

test('knows the bytes of a frame with an event by its name', () => {
  const reader = messagesReader(start)
  const of = (said: string) => `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"${said}"}}`
  const bytes = (said: string) => Buffer.from(`event: content_block_delta\ndata: ${of(said)}\n\n`)
  reader.frame({ event: 'content_block_delta', data: of('one') })
  expect(reader.repeat?.(bytes('three'))?.textLength).toBe(5)
  expect(reader.repeat?.(Buffer.from(`data: ${of('three')}\n\n`))).toBeNull()
})

test('does not know bytes by a frame whose data came in several lines', () => {
  const reader = chatReader(start)
  const data = (said: string) => chunkOf(said, ',\n"x":1')
  reader.frame({ event: null, data: data('one') })
  expect(reader.repeat?.(Buffer.from(`data: ${data('two')}\n\n`))).toBeNull()
})
