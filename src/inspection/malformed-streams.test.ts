/**
 * Providers that break their own protocol, on purpose or not: what is blocked reaches the caller through no side door.
 */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { chat } from '../languages/chat/dialect.ts'
import { messages } from '../languages/messages/dialect.ts'
import { responses } from '../languages/responses/dialect.ts'
import { termDetector } from './detectors/terms/term-detector.ts'
import { patternDetector } from './regex/pattern-detector.ts'
import type { InspectionRule } from './rule.ts'
import {
  callFrame,
  callsOf,
  data,
  delta,
  done,
  finish,
  forbids,
  pass,
  passes,
  plain,
  watch,
} from './testing/inspecting.ts'
import { ruleOf } from './testing/passing.ts'

const call = (text: string, more: object = {}) => ({ function: { arguments: text }, ...more })

test('joins arguments of unnumbered calls from frame to frame', () => {
  const stream = (...calls: unknown[]) =>
    `${calls.map((each) => delta({ tool_calls: [each] })).join('')}${finish}${data('[DONE]')}`
  const split = pass(chat, stream(call('{"a":"bla', { id: 'one' }), call('ckbird"}')))
  expect(split.stop?.verdict).toBe('block')
  expect(split.text).not.toContain('bla')
  const named = pass(chat, stream(call('{"a":"bla', { id: 'one' }), call('ckbird"}', { id: 'one' })))
  expect(named.stop?.verdict).toBe('block')
  const two = pass(chat, stream(call('{"a":"bla', { id: 'one' }), call('ckbird"}', { id: 'two' })), forbids('redact'))
  expect(two.stop).toBeNull()
  const pieces = [...two.text.matchAll(/"arguments":"((?:[^"\\]|\\.)*)"/g)].map(([, text]) => text)
  expect(pieces.join('')).toBe('{\\"a\\":\\"blackbird\\"}')
  expect(two.text.indexOf('bla')).toBeLessThan(two.text.indexOf('"two"'))
})

test('reads two unnumbered calls in one frame as two texts', () => {
  const stream = [
    delta({ tool_calls: [call('{"a":"x', { id: 'one' }), call('{"b":"bla', { id: 'two' })] }),
    delta({ tool_calls: [call('y"}'), call('ckbird"}')] }),
    finish,
  ].join('')
  const { text, stop } = pass(chat, stream, forbids('redact'))
  expect(stop).toBeNull()
  expect(text).not.toMatch(/bla|ckbird/)
  expect(text).toContain('[TERM]')
})

test('reads whole tool names in every language', () => {
  const named = { name: 'my_blackbird', arguments: '' }
  const item = { id: 'i', type: 'function_call', call_id: 'c', ...named }
  for (const passed of [
    pass(chat, delta({ tool_calls: [{ index: 0, id: 'a', type: 'function', function: named }] })),
    pass(chat, delta({ tool_calls: [{ index: 0, type: 'custom', custom: { name: 'blackbird', input: '' } }] })),
    pass(chat, delta({ function_call: named })),
    pass(responses, data({ type: 'response.output_item.added', output_index: 0, item })),
    pass(
      responses,
      data({
        type: 'response.output_item.added',
        output_index: 0,
        item: { ...item, type: 'mcp_call', name: 'x', server_label: 'blackbird' },
      }),
    ),
    pass(
      messages,
      data({
        type: 'content_block_start',
        index: 0,
        content_block: { type: 'tool_use', id: 't', input: {}, name: 'blackbird' },
      }),
    ),
  ]) {
    expect(passed.stop?.verdict).toBe('block')
    expect(passed.text).not.toContain('blackbird')
  }
})

const argumentsPart = (text: string, more: object = {}) => call(text, more)
const [one, two] = ['{"a":"bla', 'ckbird"}']
const named = { name: 'f' }

test('continues a call by number, id or position, whichever the delta has', () => {
  const begun = (more: object) => ({ ...more, function: { ...named, arguments: one } })
  for (const [first, second] of [
    [begun({ index: 0, id: '1' }), argumentsPart(two)],
    [begun({ id: '1' }), argumentsPart(two, { index: 0 })],
    [begun({ index: null, id: '1' }), argumentsPart(two, { index: 0 })],
    [begun({ index: 0, id: '1' }), argumentsPart(two, { index: 0, id: '2' })],
    [begun({ index: 0, id: '1' }), argumentsPart(two, { id: '1' })],
    [begun({ index: 0 }), argumentsPart(two, { index: 0, id: '1' })],
    [begun({}), argumentsPart(two, { id: '1' })],
  ] as const) {
    const stream = callFrame(first) + callFrame(second) + done
    const blocked = pass(chat, stream)
    expect(blocked.stop?.verdict).toBe('block')
    expect(blocked.text).not.toMatch(/bla|ckbird/)
    const redacted = pass(chat, stream, forbids('redact'))
    expect(redacted.stop).toBeNull()
    expect(callsOf(redacted.text)).toEqual([{ name: 'f', arguments: '{"a":"[TERM]"}', named: 1 }])
  }
})

test('stops the stream when a delta names its call in two ways and a policy may stop it', () => {
  const begun = callFrame({ index: 0, id: '1', function: { ...named, arguments: one } })
  const other = callFrame({ index: 1, id: '2', function: { name: 'g', arguments: '{}' } })
  for (const stream of [
    begun + callFrame(argumentsPart(two, { index: 1, id: '1' })),
    begun + callFrame(argumentsPart(two, { id: '3' })),
    begun + other + callFrame(argumentsPart(two, { index: 0, id: '2' })),
    begun + other + callFrame(argumentsPart(two)),
    begun + callFrame({ index: 0, id: '2', function: { name: 'g', arguments: two } }),
  ]) {
    for (const action of ['block', 'redact'] as const) {
      const { text, stop } = pass(chat, stream + done, forbids(action))
      expect(stop?.verdict).toBe('block')
      expect(text).not.toMatch(/bla|ckbird/)
    }
    expect(pass(chat, stream + done, { ...forbids('block'), enforced: false })).toEqual({
      text: stream + done,
      stop: null,
    })
  }
})

test('reads whole calls that are all numbered 0 as separate calls', () => {
  const whole = (id: string, name: string) => callFrame({ index: 0, id, function: { name, arguments: '{"a":"bla"}' } })
  const stream = whole('1', 'f') + whole('2', 'f') + whole('3', 'g') + done
  expect(pass(chat, stream, forbids('redact'))).toEqual({ text: stream, stop: null })
})

test('stops the stream at a second call numbered 0 after one without arguments, which clients join', () => {
  // Of these official clients make a call of `bird`, one of `blackbird`, and one of `black` and one of `bird`.
  const call = (id: string, name: string, given: object) => callFrame({ index: 0, id, function: { name, ...given } })
  for (const none of [{}, { arguments: '' }, { arguments: ' ' }]) {
    for (const second of ['bird', 'black']) {
      const stream = call('1', 'black', none) + call('2', second, { arguments: '{}' }) + done
      expect(pass(chat, stream).stop?.entry).toBe('contradiction')
      expect(watch(stream)).toBe('undecided')
    }
  }
})

test('inspects labels, ids and padding with values that the languages do not use', () => {
  const choice = (more: object) => data({ id: 'chatcmpl-1', choices: [{ index: 0, delta: {}, ...more }] })
  for (const frame of [
    choice({ finish_reason: 'blackbird' }),
    choice({ delta: { role: 'my_blackbird' } }),
    choice({ delta: { tool_calls: [{ index: 0, id: 'call_blackbird', type: 'function', function: {} }] } }),
    data({ id: 'blackbird', choices: [] }),
    data({ model: 'blackbird', choices: [] }),
    data({ system_fingerprint: 'fp_blackbird', choices: [] }),
    data({ obfuscation: 'a blackbird', choices: [] }),
  ]) {
    const { text, stop } = pass(chat, frame)
    expect(stop?.verdict).toBe('block')
    expect(text).not.toContain('blackbird')
  }
  const delta = { type: 'message_delta', delta: { stop_reason: 'stop_sequence', stop_sequence: 'blackbird' } }
  expect(pass(messages, data(delta)).stop?.verdict).toBe('block')
  const thought = { type: 'redacted_thinking', data: 'a blackbird' }
  expect(pass(messages, data({ type: 'content_block_start', index: 0, content_block: thought })).stop).not.toBeNull()
  const known = ruleOf(
    termDetector(['stop', 'call', 'gpt', 'chat', 'function', 'fp', 'assistant'], 'TERM', plain),
    'block',
  )
  const usual = data({
    ...{
      id: 'chatcmpl-AbC123',
      object: 'chat.completion.chunk',
      model: 'gpt-4o-2024-08-06',
      system_fingerprint: 'fp_4f',
    },
    choices: [
      {
        index: 0,
        delta: { role: 'assistant', tool_calls: [{ index: 0, id: 'call_9xCall', type: 'function', function: {} }] },
        finish_reason: 'stop',
      },
    ],
  })
  expect(pass(chat, usual, known)).toEqual({ text: usual, stop: null })
})

test('inspects text where a label is not a string', () => {
  for (const name of ['status', 'type', 'finish_reason', 'model']) {
    expect(pass(chat, data({ choices: [], [name]: { deep: ['a blackbird'] } })).stop?.verdict).toBe('block')
  }
})

const contentOf = (text: string) =>
  [...text.matchAll(/"content":("(?:[^"\\]|\\.)*")/g)].map(([, said = '""']) => JSON.parse(said)).join('')

test('sends the held text of a choice when that choice ends, and keeps none of the others', () => {
  const ended = delta({ content: 'I like b' })
  const other = data({ id: 'c', choices: [{ index: 1, delta: { content: 'word ' } }] })
  const usage = data({ id: 'c', choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 } })
  const [text, end = '', ...rest] = passes(chat, `${ended}${finish}${other}: k\n\n${usage}${data('[DONE]')}`)
  expect([contentOf(text ?? ''), contentOf(end)]).toEqual(['I like ', 'b'])
  expect(end).toEndWith(finish)
  expect(rest).toEqual([other, ':\n\n', usage, data('[DONE]')])
  const together = delta({ content: 'I like b' }, { finish_reason: 'stop' })
  expect(passes(chat, together + other)).toEqual([together, other])
})

test('stops the stream at a match across the end of a choice, whatever the action', () => {
  const end = data('[DONE]')
  const usage = data({ id: 'c', choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 } })
  for (let split = 1; split < 9; split++) {
    const [first, rest] = [`a ${'blackbird'.slice(0, split)}`, 'blackbird'.slice(split)]
    for (const stream of [
      delta({ content: first }) + finish + delta({ content: `${rest} b` }) + end,
      delta({ content: first }) + finish + usage + delta({ content: `${rest} b` }, { finish_reason: 'stop' }) + end,
      delta({ content: first }, { finish_reason: 'stop' }) + delta({ content: `${rest} b` }),
      delta({ content: first }) + finish + [...rest].map((content) => delta({ content })).join('') + end,
    ]) {
      for (const action of ['block', 'redact'] as const) {
        const { text, stop } = pass(chat, stream, forbids(action))
        expect(stop?.verdict).toBe('block')
        expect(contentOf(text)).toStartWith(first)
        expect(contentOf(text)).not.toContain('blackbird')
      }
    }
  }
  const late = pass(chat, delta({ content: 'hello ' }) + finish + delta({ content: 'more b' }) + end)
  expect(contentOf(late.text)).toBe('hello more b')
  expect(late.text).toEndWith(end)
  const harmless = pass(chat, delta({ content: 'a' }) + finish + delta({ content: ' x' }) + delta({ content: ' y' }))
  expect(harmless.stop).toBeNull()
  expect(harmless.text).toContain('" y"')
})

test('reads text after the end of a choice as one text, however often the end is repeated', () => {
  const texts = fc.array(fc.constantFrom('b', 'bl', 'black', 'bird', 'blackbird', ' ', 'a'), { minLength: 1 })
  const ends = fc.array(fc.boolean(), { minLength: 1 })
  fc.assert(
    fc.property(texts, ends, fc.constantFrom('block' as const, 'redact' as const), (pieces, ended, action) => {
      const frames = pieces.map((content, at) =>
        delta({ content }, ended[at % ended.length] ? { finish_reason: 'stop' } : {}),
      )
      const { text, stop } = pass(chat, frames.join('') + data('[DONE]'), forbids(action))
      const whole = pieces.join('')
      const said = contentOf(text)
      expect(said).not.toContain('blackbird')
      if (stop === null) expect(said).toBe(whole.replaceAll('blackbird', '[TERM]'))
      else expect(whole).toContain('blackbird')
    }),
  )
})

test('stops the stream at a match in text before the end of a choice', () => {
  const follows: InspectionRule = ruleOf(
    patternDetector([{ label: 'PIN', pattern: '(?<=#)[0-9]{4}' }], { streaming: true, paramOf: String }),
    'redact',
  )
  const { text, stop } = pass(chat, delta({ content: 'pin #' }) + finish + delta({ content: '1234 b' }), follows)
  expect(stop?.verdict).toBe('block')
  expect(contentOf(text)).toBe('pin #')
})

test('stops the stream when arguments continue after the end of their choice and a policy reads them', () => {
  const stream =
    callFrame({ index: 0, id: 'one', function: { name: 'f', arguments: '{"a":"bl\\u0061' } }) +
    finish +
    callFrame({ index: 0, function: { arguments: 'ckbird"}' } }) +
    data('[DONE]')
  for (const action of ['block', 'redact'] as const) {
    const { text, stop } = pass(chat, stream, forbids(action))
    expect(stop?.verdict).toBe('block')
    expect(text).not.toContain('ckbird')
  }
  const others: InspectionRule = { ...forbids('redact'), reads: ({ kind }) => kind === 'content' }
  expect(pass(chat, stream, others)).toEqual({ text: stream, stop: null })
})

test('does not confuse a member with another text whose path looks alike', () => {
  const parts = (first: object, between: object, last: object) => delta(first) + delta(between) + delta(last) + finish
  const ofCall = (said: object) => ({ tool_calls: [{ index: 0, ...said }] })
  const begun = ofCall({ function: { name: 'f', arguments: one } })
  const rest = ofCall({ function: { arguments: two } })
  const event = (type: string, said: unknown) => data({ type: `response.${type}.delta`, output_index: 0, delta: said })
  const block = (index: number, said: object) => data({ type: 'content_block_delta', index, delta: said })
  const text = (said: string) => ({ type: 'text_delta', text: said })
  const message = data({ type: 'message_start', message: { id: 'm', content: [] } })
  for (const [dialect, stream] of [
    [chat, parts({ content: 'a bla' }, { 'content~text/text': 'X' }, { content: 'ckbird' })],
    [chat, parts({ content: 'a bla' }, { '': { content: 'X' } }, { content: 'ckbird' })],
    [chat, parts({ a: { b: 'a bla' } }, { 'a/b': 'X' }, { a: { b: 'ckbird' } })],
    [chat, parts(begun, ofCall({ 'function/arguments': 'X' }), rest)],
    [chat, parts(begun, { 'tool_calls[0]': { function: { arguments: 'X' } } }, rest)],
    [chat, delta({}, { text: 'a bla' }) + delta({ choice: { text: 'X' } }) + delta({}, { text: 'ckbird' })],
    [messages, block(0, text('a bla')) + block(0, { type: 'x', '': { text: 'X' } }) + block(0, text('ckbird'))],
    [
      messages,
      message +
        block(0, text('')) +
        message +
        [0, 0.1]
          .map((at) =>
            data({
              type: 'content_block_start',
              index: at,
              content_block: { type: 'text', text: at === 0 ? 'a bla' : 'X' },
            }),
          )
          .join('') +
        block(0, text('ckbird')),
    ],
    [responses, event('a', { b: 'a bla' }) + event('a/b', 'X') + event('a', { b: 'ckbird' })],
  ] as const) {
    expect(pass(dialect, stream).stop?.verdict).toBe('block')
  }
})

test('sends held text in its own member, whatever the member’s name', () => {
  for (const name of ['x/y', 'x#20000000', 'x[5]', 'x~text', '', '%2f', '__proto_']) {
    expect(pass(chat, delta({ [name]: 'hello b' }) + finish).text).toContain(`{${JSON.stringify(name)}:"b"}`)
  }
})

test('reads a long list in an unknown frame to its end in one frame', () => {
  const list = (last: string) => data({ x: [...Array.from({ length: 4000 }, () => 'b'), last] })
  const { text, stop } = pass(chat, list('b'))
  expect(stop).toBeNull()
  expect(text.length).toBeLessThan(3 * list('b').length)
  expect(text.match(/"b"/g)).toHaveLength(4001)
  expect(pass(chat, list('a blackbird')).stop?.verdict).toBe('block')
  const inFrames = data({ x: ['', 'a black'] }) + data({ x: ['', 'bird'] })
  expect(pass(chat, inFrames).stop?.verdict).toBe('block')
})
