import { expect, test } from 'bun:test'
import { chat } from '../chat/translation/language.ts'
import { converse } from '../converse/language.ts'
import { gemini } from '../gemini/translation/language.ts'
import { messages } from '../messages/translation/language.ts'
import type { NeutralAnswer, NeutralEvent } from '../neutral.ts'
import { responses } from '../responses/translation/language.ts'
import { asked } from '../testing/clients.ts'
import type { Language } from '../translation-language.ts'
import { collected } from './collect-stream.ts'

const callers = [chat, responses, messages]
const blank: NeutralAnswer = { id: null, model: null, parts: [], finish: 'stop', stopSequence: null, usage: null }
const called = (text: string): NeutralAnswer['parts'] => [
  { kind: 'tool_call', id: 'c', name: 'f', arguments: text, at: '' },
]

test('reports an answer that failed in the model as an error to every caller', () => {
  for (const reason of ['MALFORMED_FUNCTION_CALL', 'OTHER', 'SOMETHING_NEW']) {
    const candidates = [{ content: { parts: [{ text: 'a' }] }, finishReason: reason }]
    const answer = gemini.provider.readAnswer({ candidates })
    for (const { caller } of callers) expect(() => caller?.writeAnswer(answer, asked)).toThrow('failed')
  }
})

test('a call in the form before there were tools is no answer, whole or streamed', () => {
  const said = (call: object | null) => ({ content: 'a', function_call: call })
  const read = (call: object | null) => chat.provider.readAnswer({ choices: [{ message: said(call) }] })
  const stream = (call: object | null) =>
    chat.provider.streamReader().frame(null, JSON.stringify({ choices: [{ delta: said(call) }] }))
  for (const way of [read, stream]) {
    expect(() => way({ name: 'f', arguments: '{}' })).toThrow('calls no tool')
    for (const none of [null, {}]) expect(() => way(none)).not.toThrow()
  }
})

test('gives an answer with calls the finish reason of calls, even if its provider reports a stop', () => {
  const call = { id: 'c', index: 0, function: { name: 'f', arguments: '{}' } }
  const whole: [Language, unknown][] = [
    [chat, { choices: [{ message: { tool_calls: [call] }, finish_reason: 'stop' }] }],
    [messages, { content: [{ type: 'tool_use', id: 'c', name: 'f', input: {} }], stop_reason: 'end_turn' }],
    [
      converse,
      { output: { message: { content: [{ toolUse: { toolUseId: 'c', name: 'f' } }] } }, stopReason: 'end_turn' },
    ],
  ]
  for (const [{ provider }, body] of whole) expect(provider.readAnswer(body).finish).toBe('tool_calls')
  const streamed: [Language, [string | null, object][]][] = [
    [chat, [[null, { choices: [{ delta: { tool_calls: [call] }, finish_reason: 'stop' }] }]]],
    [
      messages,
      [
        ['content_block_start', { content_block: { type: 'tool_use', id: 'c', name: 'f', input: {} } }],
        ['message_delta', { delta: { stop_reason: 'end_turn' } }],
      ],
    ],
    [
      converse,
      [
        ['contentBlockStart', { contentBlockIndex: 0, start: { toolUse: { toolUseId: 'c', name: 'f' } } }],
        ['messageStop', { stopReason: 'end_turn' }],
      ],
    ],
  ]
  for (const [{ provider }, frames] of streamed) {
    const reader = provider.streamReader()
    expect(collected(frames.flatMap(([event, data]) => reader.frame(event, JSON.stringify(data)))).finish).toBe(
      'tool_calls',
    )
  }
})

test('refuses arguments that are not an object for messages, and leaves out a call that a limit cut off', () => {
  for (const text of ['{bad', '"text"', '[1]']) {
    const answer = { ...blank, parts: called(text), finish: 'tool_calls' as const }
    expect(() => messages.caller?.writeAnswer(answer, asked)).toThrow('no JSON object')
  }
  const cut = messages.caller?.writeAnswer({ ...blank, parts: called('{"a":'), finish: 'length' }, asked)
  expect(cut).toMatchObject({ content: [], stop_reason: 'max_tokens' })
  const events = (finish: 'tool_calls' | 'length'): NeutralEvent[] => [
    { type: 'part', part: 0, kind: 'tool_call', id: 'c', name: 'f' },
    { type: 'text', part: 0, text: '{bad' },
    { type: 'finish', finish, stopSequence: null },
    { type: 'end' },
  ]
  const write = (finish: 'tool_calls' | 'length') => {
    const writer = messages.caller?.streamWriter(asked)
    return events(finish)
      .map((event) => writer?.event(event))
      .join('')
  }
  expect(() => write('tool_calls')).toThrow('no JSON object')
  expect(write('length')).toContain('max_tokens')
})

test('sends unknown token counts as zero to messages clients and does not count them', () => {
  const answer = messages.caller?.writeAnswer(blank, asked)
  expect(answer?.usage).toEqual({ input_tokens: 0, output_tokens: 0 })
  expect(messages.provider.readAnswer(answer).usage).toBeNull()
  const usage = {
    inputTokens: 5,
    outputTokens: null,
    cachedInputTokens: null,
    cacheWriteTokens: null,
    reasoningTokens: null,
  }
  expect(messages.caller?.writeAnswer({ ...blank, usage }, asked).usage).toEqual({ input_tokens: 5, output_tokens: 0 })
})
