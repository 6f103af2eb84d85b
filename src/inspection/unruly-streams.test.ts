/** Providers that break their own protocol, on purpose or not: what is blocked reaches the caller through no side door. */
import { expect, test } from 'bun:test'
import { chat } from '../dialects/chat.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { messages } from '../dialects/messages.ts'
import { responses } from '../dialects/responses.ts'
import { framesOf, start } from '../dialects/test-streams.ts'
import type { InspectionRule, Stop, TextAction } from './rule.ts'
import { StreamInspector } from './stream.ts'
import { termDetector } from './term-detector.ts'
import { ruleOf } from './test-passing.ts'

const plain = { caseSensitive: false, homoglyphs: false, wordBoundaries: false }
const forbids = (action: TextAction): InspectionRule => ruleOf(termDetector(['blackbird'], 'TERM', plain), action)

interface Passed {
  text: string
  stop: Stop | null
}

function pass(dialect: Dialect, stream: string, rule: InspectionRule = forbids('block')): Passed {
  const reader = dialect.reader(start)
  const inspector = new StreamInspector(reader, [rule])
  const out: Uint8Array[] = []
  for (const frame of framesOf(Buffer.from(stream))) {
    const facts = frame.data === null ? null : reader.frame({ event: frame.event, data: frame.data })
    const { bytes, stop } = inspector.take(frame, facts?.terminal ?? false)
    if (bytes !== null) out.push(bytes)
    if (stop !== null) return { text: Buffer.concat(out).toString(), stop }
  }
  return { text: Buffer.concat(out).toString(), stop: null }
}

const data = (value: unknown) => `data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`
const delta = (value: unknown, more: object = {}) => data({ id: 'c', choices: [{ index: 0, delta: value, ...more }] })
const finish = delta({}, { finish_reason: 'stop' })
const call = (text: string, more: object = {}) => ({ function: { arguments: text }, ...more })

test('arguments of calls that are not numbered go on from frame to frame', () => {
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

test('two calls in one frame that are not numbered are two texts', () => {
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

test('the names of tools are read in every language, whole', () => {
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

test('a name in parts is stopped at its last part, and one that is said again is no longer one', () => {
  const part = (name: string) => delta({ tool_calls: [{ index: 0, function: { name } }] })
  expect(pass(chat, part('black') + part('bird')).stop?.verdict).toBe('block')
  expect(pass(chat, part('bird') + part('bird') + part('bird')).stop).toBeNull()
})

test('a label that is no string hides no text', () => {
  for (const name of ['status', 'type', 'finish_reason', 'model']) {
    expect(pass(chat, data({ choices: [], [name]: { deep: ['a blackbird'] } })).stop?.verdict).toBe('block')
  }
})

test('a match across the end of a choice stops the stream, whatever the rule does', () => {
  for (const action of ['block', 'redact'] as const) {
    for (let split = 1; split < 9; split++) {
      const [first, rest] = ['blackbird'.slice(0, split), 'blackbird'.slice(split)]
      const passed = pass(
        chat,
        delta({ content: `a ${first}` }) + finish + delta({ content: `${rest} b` }),
        forbids(action),
      )
      expect(passed.stop?.verdict).toBe('block')
      const spelled = [...passed.text.matchAll(/"content":"([^"]*)"/g)].map(([, text]) => text)
      expect(spelled.join('')).toBe(`a ${first}`)
    }
  }
  const harmless = pass(chat, delta({ content: 'a' }) + finish + delta({ content: ' x' }) + delta({ content: ' y' }))
  expect(harmless.stop).toBeNull()
  expect(harmless.text).toContain('" y"')
})

test('comments, ids, unknown fields and event names carry nothing that was not read', () => {
  const spoken = delta({ content: 'hello' }).trimEnd()
  const aside = `: blackbird\n\nid: blackbird\nretry: 5\nblackbird: x\nevent: blackbird\n${spoken}\n\n`
  const twice = `event: ping\nevent: blackbird\n${spoken}\n\n`
  const { text } = pass(chat, `${aside}${twice}event: ping\n${spoken}\n\n${finish}`)
  expect(text).toBe(`:\n\n${spoken}\n\n${spoken}\n\nevent: ping\n${spoken}\n\n${finish}`)
  const watched = { ...forbids('block'), enforced: false }
  expect(pass(chat, aside, watched).text).toBe(aside)
})
