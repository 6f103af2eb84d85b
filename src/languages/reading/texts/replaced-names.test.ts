/** Names in a tool's arguments that policies replace alike: no member is lost, and no digit. */
import { describe, expect, test } from 'bun:test'
import { withNumbersOf } from '../../../lib/json/keep-numbers.ts'
import { chat } from '../../chat/dialect.ts'
import { mcp } from '../../mcp/dialect.ts'
import { messages } from '../../messages/dialect.ts'
import { responses } from '../../responses/dialect.ts'
import { framesOf, openNext, start } from '../../testing/streams.ts'
import type { TextSlot } from './text-slot.ts'

const id = '12345678901234567890'
const given = `{"a@b.co":${id},"c@d.co":2,"in":{"e@f.co":${id},"g@h.co":4}}`
const redacted = `{"[EMAIL]":${id},"[EMAIL] 2":2,"in":{"[EMAIL]":${id},"[EMAIL] 2":4}}`

const redact = (text: string): string => text.replace(/\w@\w\.co/g, '[EMAIL]')

function passed(text: string, slotsIn: (body: Record<string, unknown>) => readonly TextSlot[]): string {
  const body = JSON.parse(text)
  for (const slot of slotsIn(body)) slot.replace(redact(slot.text))
  return withNumbersOf(text, body)
}

const call = (input: string) => `{"type":"tool_use","id":"t1","name":"f","input":${input}}`
const asText = (args: string) =>
  `{"id":"c1","type":"function","function":{"name":"f","arguments":${JSON.stringify(args)}}}`

describe('names that become equal are made distinct', () => {
  test('in messages, asked and answered', () => {
    const request = (input: string) => `{"messages":[{"role":"assistant","content":[${call(input)}]}]}`
    expect(passed(request(given), messages.requestText)).toBe(request(redacted))
    const answer = (input: string) => `{"content":[${call(input)}]}`
    expect(passed(answer(given), messages.answerText)).toBe(answer(redacted))
  })

  test('in a block of a messages stream', () => {
    const event = (input: string) =>
      `event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":${call(input)}}\n\n`
    const [frame] = framesOf(Buffer.from(event(given)))
    const opened = frame === undefined ? null : openNext(messages.reader(start), frame)
    for (const piece of opened?.pieces ?? []) piece.replace(redact(piece.text))
    expect(Buffer.from(opened?.bytes() ?? []).toString()).toBe(event(redacted))
  })

  test('in arguments that are a text, of chat and responses', () => {
    const request = (args: string) => `{"messages":[{"role":"assistant","tool_calls":[${asText(args)}]}]}`
    expect(passed(request(given), chat.requestText)).toBe(request(redacted))
    const answer = (args: string) => `{"choices":[{"message":{"tool_calls":[${asText(args)}]}}]}`
    expect(passed(answer(given), chat.answerText)).toBe(answer(redacted))
    const item = (args: string) =>
      `{"output":[{"type":"function_call","call_id":"c1","name":"f","arguments":${JSON.stringify(args)}}]}`
    expect(passed(item(given), responses.answerText)).toBe(item(redacted))
  })

  test('in the arguments of MCP', () => {
    const request = (args: string) => `{"method":"tools/call","params":{"name":"f","arguments":${args}}}`
    expect(passed(request(given), mcp.requestText)).toBe(request(redacted))
  })
})
