import { expect, test } from 'bun:test'
import { chat } from '../../chat/dialect.ts'
import { messages } from '../../messages/dialect.ts'
import { responses } from '../../responses/dialect.ts'
import { factsOf, framesOf } from '../../testing/streams.ts'
import { isTruncatedObject } from './truncated-json.ts'

const usage = { prompt_tokens: 10, completion_tokens: 12, total_tokens: 22, note: 'a "}" in \\ it' }
const whole = JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [], usage: [usage, usage] })

test('an object is cut off from its first member on, until its end is there', () => {
  const from = whole.indexOf(':') + 1
  for (let end = 0; end <= whole.length; end++) {
    expect([end, isTruncatedObject(whole.slice(0, end))]).toEqual([end, end >= from && end < whole.length])
  }
  for (const other of [
    `${whole},`,
    `[${whole}`,
    `${whole}${whole.slice(0, -1)}`,
    'text',
    '{ return 1',
    '{"a", "b"',
    '',
  ]) {
    expect([other, isTruncatedObject(other)]).toEqual([other, false])
  }
})

test('counts no text of a truncated frame', () => {
  for (const dialect of [chat, messages, responses]) {
    const lengthOf = (data: string) => factsOf(dialect, framesOf(Buffer.from(`data: ${data}\n\n`)))[0]?.textLength
    expect(lengthOf(whole.slice(0, -10))).toBe(0)
    for (const said of ['so says a model', '{ return 1', `${whole},`]) expect(lengthOf(said)).toBe(said.length)
  }
})
