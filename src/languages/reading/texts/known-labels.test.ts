import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { isEventName, paddingMember, saysNothing, saysNothingAsPadding } from './known-labels.ts'

const made = fc.constantFrom('msg', 'resp', 'chatcmpl', 'tool', '', 'x', 'Zq', '7', 'a1B2c3', '0fffffff', 'word1')
const said = fc.constantFrom('please', 'Resp', 'ignore', 'MSG', 'xyz', 'rules')
const separator = fc.constantFrom('_', '-', '.', ':', '/', '|', '+', '=')

/** Parts with a separator between any two. */
const joined = (part: fc.Arbitrary<string>) =>
  fc
    .array(fc.tuple(part, separator), { maxLength: 6 })
    .map((parts) => parts.map(([text, between], index) => (index === 0 ? text : between + text)).join(''))

test('accepts an id of prefixes, parts with a digit and very short parts', () => {
  fc.assert(
    fc.property(joined(made), (id) => {
      expect(saysNothing('id', id)).toBe(true)
    }),
  )
})

test('reads an id with any other word in it as text', () => {
  fc.assert(
    fc.property(joined(made), said, separator, joined(made), (before, word, between, after) => {
      expect(saysNothing('id', `${before}${between}${word}${between}${after}`)).toBe(false)
      expect(saysNothing('id', `${word}${between}${after}`)).toBe(false)
      expect(saysNothing('id', `${before}${between}${word}`)).toBe(false)
    }),
  )
})

test('reads a very long id, or one with unusual characters, as text', () => {
  for (const id of ['msg 1', 'msg_1é', 'msg_1\n', '1'.repeat(513)]) expect(saysNothing('id', id)).toBe(false)
  expect(saysNothing('id', '1'.repeat(512))).toBe(true)
})

test('a value that is harmless under one name may be text under another', () => {
  expect(saysNothing('id', 'toolu_01')).toBe(true)
  expect(saysNothing('role', 'toolu_01')).toBe(false)
  expect(saysNothing('content', 'toolu_01')).toBe(false)
})

test('harmless raw padding is a JSON string and harmless as a member', () => {
  const inside = fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom('a', 'Z', '7', '_', '"', '\\', ' ') }))
  fc.assert(
    fc.property(inside, (padding) => {
      if (!saysNothingAsPadding(padding)) return
      expect(JSON.parse(`"${padding}"`)).toBe(padding)
      expect(saysNothing(paddingMember, padding)).toBe(true)
    }),
  )
  expect(['aB3', '', 'a word'].map(saysNothingAsPadding)).toEqual([true, true, false])
})

test('accepts an event name only if all of it is words of the languages', () => {
  for (const name of eventNames) expect([name, isEventName(name)]).toEqual([name, true])
  const others = [
    'response.zqx.delta',
    'message delta',
    'message_1',
    '123-45-6789',
    'Message',
    'message_',
    '',
    'é',
    'a\nb',
  ]
  for (const name of others) expect([name, isEventName(name)]).toEqual([name, false])
})

const eventNames = [
  ...['message_start', 'message_delta', 'message_stop', 'ping', 'error'],
  ...['content_block_start', 'content_block_delta', 'content_block_stop'],
  ...['response.created', 'response.queued', 'response.in_progress', 'response.completed', 'response.incomplete'],
  ...['response.failed', 'response.output_item.added', 'response.output_item.done', 'response.content_part.added'],
  ...[
    'response.content_part.done',
    'response.output_text.delta',
    'response.output_text.done',
    'response.refusal.delta',
  ],
  ...['response.output_text.annotation.added', 'response.function_call_arguments.delta'],
  ...['response.custom_tool_call_input.done', 'response.reasoning_text.delta', 'response.reasoning_summary_part.added'],
  ...['response.reasoning_summary_text.delta', 'response.mcp_call_arguments.delta', 'response.mcp_list_tools.failed'],
  ...['response.code_interpreter_call.interpreting', 'response.code_interpreter_call_code.delta'],
  ...['response.file_search_call.searching', 'response.web_search_call.searching', 'response.compaction.compacting'],
  ...['response.image_generation_call.generating', 'response.image_generation_call.partial_image'],
  ...['response.shell_call_output_content.delta', 'response.audio.transcript.delta'],
]
