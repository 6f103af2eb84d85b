/** Data of a stream that is no JSON object by the standard, and may be one to some clients. */
import { expect, test } from 'bun:test'
import { chat } from '../languages/chat/dialect.ts'
import { messages } from '../languages/messages/dialect.ts'
import { responses } from '../languages/responses/dialect.ts'
import { framesOf, start } from '../languages/testing/streams.ts'
import { data, forbids, pass, watch } from './testing/inspecting.ts'

const chunkOf = (content: string) => `{"choices":[{"index":0,"delta":{"content":"${content}"}}]}`
const blackChunk = chunkOf('\\u0062lackbird')

test('stops the stream at data that only some clients read as JSON when a policy may stop it', () => {
  for (const lines of [
    [blackChunk, '{}'],
    ['hello', blackChunk],
    [`${blackChunk},`],
    [`[${blackChunk}]`],
    [`\uFEFF${blackChunk}`],
    ['"\\u0062lackbird"'],
    ['so:', '["black\\/bird"]'],
    ['so: "\\u0062lackbird"'],
    [chunkOf('a black'), chunkOf('bird')],
    ['hello', chunkOf('a black')],
    [`${chunkOf('a black')},`],
    [`,${chunkOf('a black')}`],
    [`[${chunkOf('a black')},${chunkOf('bird')}]`],
    [chunkOf('a black') + chunkOf('bird')],
    [`\uFEFF${chunkOf('a black')}`],
    [chunkOf('a black').slice(0, -1)],
    ['[{"id" : [{"x" : 4111}]}]'],
    ["{'content': 'a black'}"],
    ["{'c\\x6fntent': 'a black'}"],
    ['{"so":null},'],
    ['{"so":"a black"}', '{"so":"bird"}'],
    ['data: {"so":null}'],
    ['["a black"]'],
    ['[["a black"], 1]'],
    ["{choices:[{index:0,delta:{content:'a black'}}]}"],
    ['{"choices"/**/:[]}'],
    ['{"so":{"text":"a black"'],
  ]) {
    const stream = `${lines.map((line) => `data: ${line}\n`).join('')}\n`
    for (const dialect of [chat, messages, responses]) {
      expect(pass(dialect, stream)).toMatchObject({ text: '', stop: { entry: 'contradiction' } })
      expect(pass(dialect, stream, { ...forbids('block'), enforced: false })).toEqual({ text: stream, stop: null })
    }
    expect(watch(stream)).toBe('undecided')
  }
  const harmless = ['hello', 'ping', '', '1', 'C:\\temp', 'say "hi"', '{"a":', '[1]', '["ping"]', '"hi"', '[]']
  for (const text of [...harmless, 'He said "C:\\temp"', 'He said "C:\\\\temp"', 'so: "hi", "ho"', '10:30']) {
    expect(pass(chat, data(text))).toEqual({ text: data(text), stop: null })
    expect(watch(data(text))).toBe(data(text))
  }
})

test('passes data that no client reads as JSON as the text it is', () => {
  for (const lines of [
    ['log: {"level":"info"}'],
    ['log: {"type":"info","text":"hi"}'],
    ['ping {"ts": 12}'],
    ['say "hi": ok'],
    ['a ? "b" : "c"'],
    ['Title "A": subtitle'],
    ['const a = {"k": "v"}'],
    ["{'a': 'b'}"],
    ['{"a": True}'],
    ['<tool>{"name":"f"}</tool>'],
    ['"a": 1,'],
    ['"a\\nb'],
    ['{say: "hi"}', '{say: "you"}'],
    ['[1]', 'so, text: "type"'],
    ['{"', 'name', '":', ' "', 'Ann', '"}'],
    ['{"type":"response.created"', 'ping', 'hello'],
  ]) {
    const stream = lines.map(data).join('')
    for (const dialect of [chat, messages, responses]) {
      expect(pass(dialect, stream)).toEqual({ text: stream, stop: null })
    }
    expect(watch(stream)).toBe(stream)
  }
})

test('stops the stream when an object that lacked its end is continued by later data', () => {
  const begun = data('{"type":"response.output_text.delta","delta":"')
  expect(pass(responses, begun + data('a black"}')).stop?.entry).toBe('contradiction')
  expect(pass(chat, data('{"so":"a black') + data('\\/bird"}')).stop?.entry).toBe('contradiction')
})

test('inspects a JSON string as the text it holds and sends one line', () => {
  const said = (text: string) => data(JSON.stringify(text))
  for (const dialect of [chat, messages, responses]) {
    const honest = said('a "swan"\n') + said('C:\\temp') + data('"caf\\u00e9"')
    expect(pass(dialect, honest)).toEqual({ text: honest, stop: null })
    const blocked = pass(dialect, said('a black') + said('bird') + said('so'))
    expect(blocked).toMatchObject({ text: said('a ') + said(''), stop: { verdict: 'block' } })
    expect(pass(dialect, said('a black') + said('bird\n') + said('so'), forbids('redact')).text).toBe(
      said('a [TERM]\n') + said('') + said('so'),
    )
  }
})

test('passes an object that lacks only its end when it holds only labels of the language', () => {
  const created = '{"type":"response.created","response":{"id":"resp_1","output":[],"tool_choice":"auto"}'
  const stream = data(created) + data({ type: 'response.in_progress' }) + data(created.replace('created', 'completed'))
  expect(pass(responses, stream)).toEqual({ text: stream, stop: null })
  const deep = `{"a":${'['.repeat(100_000)}`
  for (const more of [
    ',"said":"a black',
    ',"so":"a black","so":""',
    ',"logprobs":[{"token":"a black"}]',
    '}}{"id":"resp_2"',
    `,"deep":${deep}`,
  ]) {
    expect(pass(responses, data(created + more)).stop?.entry).toBe('contradiction')
  }
})

test('ignores a truncated last frame, which is not sent, unless it ends the answer', () => {
  for (const [cut, contradicts] of [
    [chunkOf('a \\nblack').slice(0, -9), false],
    [`[DONE] ${chunkOf('a black')}`, true],
  ] as const) {
    const reader = chat.reader(start)
    for (const frame of framesOf(Buffer.from(`data: ${cut}`))) {
      reader.frame({ event: null, data: frame.data ?? '' })
      expect(reader.open(frame)?.contradicts).toBe(contradicts)
    }
  }
})

test('stops the stream at JSON split over the data of several events', () => {
  const whole = chunkOf('a black')
  for (let first = 1; first < whole.length; first++) {
    const stream = data(whole.slice(0, first)) + data(whole.slice(first))
    expect(pass(chat, stream).stop?.entry).toBe('contradiction')
    expect(watch(stream)).toBe('undecided')
  }
  const afterEach = [...whole].map((unit) => data(unit)).join('')
  expect(pass(chat, afterEach).stop?.entry).toBe('contradiction')
  const colons = whole.replaceAll(':', ' :  ').split(/(?<=: {2})/)
  expect(pass(chat, colons.map(data).join('')).stop?.entry).toBe('contradiction')
})
