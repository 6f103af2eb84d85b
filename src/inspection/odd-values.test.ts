/** Values in the places of texts that are no strings: clients make texts of them, whatever they are. */
import { expect, test } from 'bun:test'
import { chat } from '../languages/chat/dialect.ts'
import { messages } from '../languages/messages/dialect.ts'
import { responses } from '../languages/responses/dialect.ts'
import { parseExactly } from '../lib/json/exact-json.ts'
import { data, delta, forbids, pass, watch } from './testing/inspecting.ts'

const unusual = [['a black'], [['a black']], ['a', { type: 'text', text: 'black' }], [4111], 4111111111111111]

test('stops the stream at a list or number in place of a text, which clients join', () => {
  const called = (more: object) => delta({ tool_calls: [{ index: 0, id: 't', function: { name: 'f', ...more } }] })
  const block = (more: object) =>
    data({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', ...more } })
  const event = (type: string, more: object) => data({ type: `response.${type}`, output_index: 0, ...more })
  for (const value of unusual) {
    for (const [dialect, stream] of [
      ...['content', 'refusal', 'reasoning', 'reasoning_content'].map(
        (name) => [chat, delta({ [name]: value })] as const,
      ),
      [chat, delta({ content: [{ type: 'text', text: value }] })],
      [chat, delta({}, { text: value })],
      [chat, called({ name: value })],
      [chat, called({ arguments: value })],
      [chat, delta({ function_call: { name: 'f', arguments: value } })],
      [messages, block({ text: value })],
      [messages, block({ thinking: value })],
      [messages, block({ partial_json: value })],
      [messages, data({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: value } })],
      [responses, event('output_text.delta', { delta: value })],
      [responses, event('output_text.done', { text: value })],
      [responses, event('content_part.added', { part: { type: 'output_text', text: value } })],
      [responses, event('output_item.done', { item: { type: 'function_call', name: 'f', arguments: value } })],
      [
        responses,
        event('output_item.done', { item: { type: 'message', content: [{ type: 'output_text', text: value }] } }),
      ],
    ] as const) {
      expect(pass(dialect, stream)).toMatchObject({ text: '', stop: { verdict: 'block', entry: 'contradiction' } })
      expect(pass(dialect, stream, { ...forbids('block'), enforced: false })).toEqual({ text: stream, stop: null })
      if (dialect === chat) expect(watch(stream)).toBe('undecided')
    }
  }
})

test('accepts null, parts and objects in place of text where providers send them', () => {
  const part = { type: 'text', text: 'a swan' }
  for (const [dialect, stream] of [
    [chat, delta({ content: null, refusal: null, reasoning: '', reasoning_details: [{ index: 0, text: 'so' }] })],
    [chat, delta({ content: [part, { type: 'thinking', thinking: [part] }] })],
    [chat, delta({ content: [] })],
    [chat, delta({ content: 'a', refusal: false })],
    [chat, delta({ tool_calls: [{ index: 0, id: 't', function: { name: 'f', arguments: { x: ['a', 1] } } }] })],
    [
      messages,
      data({
        type: 'content_block_start',
        index: 0,
        content_block: { type: 'tool_use', id: 't', name: 'f', input: {} },
      }),
    ],
    [responses, data({ type: 'error', code: 500, message: 'so' })],
    [responses, data({ type: 'response.output_audio.delta', delta: 'AAAA' })],
  ] as const) {
    expect(pass(dialect, stream)).toEqual({ text: stream, stop: null })
  }
})

test('inspects a number or boolean in place of a whole text as clients print it', () => {
  for (const [dialect, body] of [
    [chat, { choices: [{ message: { content: 4111 } }] }],
    [chat, { choices: [{ message: { content: [{ type: 'text', text: 4111 }] } }] }],
    [chat, { choices: [{ message: { tool_calls: [{ function: { name: 'f', arguments: 4111 } }] } }] }],
    [chat, { choices: [{ text: 4111 }] }],
    [messages, { content: [{ type: 'text', text: 4111 }] }],
    [responses, { output: [{ type: 'message', content: [{ type: 'output_text', text: 4111 }] }] }],
  ] as const) {
    const before = JSON.stringify(body)
    const slot = dialect.answerText(body).find(({ text }) => text === '4111')
    slot?.replace('4111')
    expect(JSON.stringify(body)).toBe(before)
    slot?.replace('x')
    expect(JSON.stringify(body)).toBe(before.replace('4111', '"x"'))
  }
  const exact = parseExactly('{"content":[{"text":41111111111111111111}]}')
  expect(messages.answerText(exact).map(({ text }) => text)).toEqual(['41111111111111111111'])
})
