/** Names of tools that come in pieces, or again and again: what leaves names one tool to every client. */
import { expect, test } from 'bun:test'
import { chat } from '../languages/chat/dialect.ts'
import { termDetector } from './detectors/terms/term-detector.ts'
import { callFrame, callsOf, delta, done, forbids, pass, passes, plain, watch } from './testing/inspecting.ts'
import { ruleOf } from './testing/passing.ts'

test('sends a tool name that arrives in parts whole, with its first frame, or not at all', () => {
  const part = (name: string, more: object = {}) => callFrame({ index: 0, function: { name, ...more } })
  for (let split = 1; split < 9; split++) {
    const [first, rest] = ['blackbird'.slice(0, split), 'blackbird'.slice(split)]
    for (const stream of [
      part(first) + part(rest) + part('', { arguments: '{}' }) + done,
      part(first) + part(rest, { arguments: '{}' }) + done,
      part(first) + part(rest),
    ]) {
      const blocked = pass(chat, stream)
      expect(blocked.stop?.verdict).toBe('block')
      expect(blocked.text).toBe('')
      const redacted = pass(chat, stream, forbids('redact'))
      expect(redacted.stop).toBeNull()
      expect(callsOf(redacted.text)[0]).toMatchObject({ name: '[TERM]', named: 1 })
    }
  }
  const later = pass(chat, part('my_black') + part('bird_2') + part('', { arguments: '{}' }) + done, forbids('redact'))
  expect(callsOf(later.text)).toEqual([{ name: 'my_[TERM]_2', arguments: '{}', named: 1 }])
  const harmless = pass(chat, part('get_') + part('wea') + part('ther', { arguments: '{}' }) + done)
  expect(callsOf(harmless.text)).toEqual([{ name: 'get_weather', arguments: '{}', named: 1 }])
})

test('accepts a repeated equal name and stops at another name after arguments', () => {
  const part = (name: string, text: string) => callFrame({ index: 0, id: 'one', function: { name, arguments: text } })
  const again = pass(chat, part('zeta', '') + part('zeta', '{"a":') + part('zeta', '1}') + done)
  expect(callsOf(again.text)).toEqual([{ name: 'zeta', arguments: '{"a":1}', named: 1 }])
  expect(pass(chat, part('black', '{"a":') + part('bird', '1}') + done).stop?.verdict).toBe('block')
})

/** The name of a call as clients read it that join what they get, keep the first, or take the last. */
function namesOf(text: string, holder: 'tool_calls' | 'function_call' = 'tool_calls'): Set<string> {
  const said = [...text.matchAll(/^data: (\{.*)$/gm)].flatMap(([, line = '']) => {
    const { delta: part } = JSON.parse(line).choices[0]
    const name = holder === 'tool_calls' ? part.tool_calls?.[0].function?.name : part.function_call?.name
    return typeof name === 'string' ? [name] : []
  })
  return new Set([said.join(''), said[0] ?? '', said.at(-1) ?? ''])
}

test('drops a repeated name with its frame’s other labels, so that every client reads it once', () => {
  const frames = (...parts: object[]) => parts.map((part) => callFrame({ index: 0, ...part })).join('') + done
  const legacy = (...parts: object[]) => parts.map((part) => delta({ function_call: part })).join('') + done
  const [open, close] = [{ arguments: '{"a":' }, { arguments: '1}' }]
  const zeta = { name: 'zeta' }
  for (const stream of [
    frames({ id: 'one', function: { ...zeta, arguments: '' } }, { function: { ...zeta, ...open } }),
    frames({ function: zeta }, { function: { ...zeta, ...open } }, { function: { ...zeta, ...close } }),
    frames({ id: 'one', function: zeta }, { function: zeta }, { function: zeta }, { function: open }),
    frames({ id: 'one', function: zeta }, { id: 'one', type: 'function', function: { ...zeta, ...open } }),
    frames({ function: { name: 'ze' } }, { function: { name: 'ta' } }, { function: { ...zeta, ...open } }),
  ]) {
    expect(namesOf(pass(chat, stream).text)).toEqual(new Set(['zeta']))
    expect(namesOf(watch(stream))).toEqual(new Set(['zeta']))
  }
  // A name in equal pieces is one of them.
  for (const pieces of [2, 3]) {
    const stream = frames(...Array.from({ length: pieces }, () => ({ function: { name: 'da' } })))
    expect(namesOf(pass(chat, stream).text)).toEqual(new Set(['da']))
    expect(namesOf(watch(stream))).toEqual(new Set(['da']))
  }
  const parts = frames({ id: 'one', function: { name: 'ze' } }, { function: { name: 'ta' } }, { function: close })
  expect(pass(chat, parts).text).toBe(frames({ id: 'one', function: zeta }, { function: {} }, { function: close }))
  const retired = legacy({ ...zeta, arguments: '' }, { ...zeta, ...open }, { ...zeta, ...close })
  expect(namesOf(pass(chat, retired).text, 'function_call')).toEqual(new Set(['zeta']))
})

test('lets no client call a forbidden tool, in whatever pieces it is named', () => {
  const part = (name: string) => callFrame({ index: 0, function: { name } })
  for (const tool of ['coco', 'cocoa', 'cacao']) {
    const forbidden = ruleOf(termDetector([tool], 'TERM', plain), 'block')
    for (let first = 0; first <= tool.length; first++) {
      for (let second = first; second <= tool.length; second++) {
        const pieces = [tool.slice(0, first), tool.slice(first, second), tool.slice(second)]
        const stream = pieces.map(part).join('') + done
        const name = pieces.reduce((so, piece) => (piece === so ? so : so + piece), '')
        const { stop, text } = pass(chat, stream, forbidden)
        expect(namesOf(text)).not.toContain(tool)
        // Where halves are alike it is named once, and so is another tool's name.
        expect(stop?.verdict).toBe(name === tool ? 'block' : undefined)
      }
    }
  }
})

test('holds a frame only until its tool name is complete', () => {
  const named = callFrame({ index: 0, id: 'one', function: { name: 'get_weather' } })
  const begun = callFrame({ index: 0, function: { arguments: '{"a":' } })
  const whole = callFrame({ index: 1, id: 'two', function: { name: 'get_time', arguments: '{}' } })
  const text = delta({ content: 'hello ' })
  expect(passes(chat, text + named + begun + whole + text)).toEqual([text, '', named + begun, whole, text])
})

test('does not hold a comment behind a name', () => {
  const named = callFrame({ index: 0, id: 'one', function: { name: 'now' } })
  const begun = callFrame({ index: 0, function: { arguments: '{}' } })
  const heartbeat = ':\n\n'
  const asides = ': blackbird\n\nid: a\n\nevent: blackbird\n\n'
  expect(passes(chat, named + asides + begun)).toEqual(['', heartbeat, heartbeat, heartbeat, named + begun])
})

test('takes a name as complete when its arguments are announced as empty', () => {
  const text = delta({ content: 'hello ' })
  for (const named of [
    callFrame({ index: 0, id: 'one', type: 'function', function: { name: 'now', arguments: '' } }),
    callFrame({ index: 0, id: 'one', type: 'custom', custom: { name: 'now', input: '' } }),
    delta({ function_call: { name: 'now', arguments: '' } }),
  ]) {
    expect(passes(chat, named + text)).toEqual([named, text])
  }
})

test('stops the stream when a name continues after its arguments began', () => {
  const part = (name: string) => callFrame({ index: 0, id: 'one', function: { name, arguments: '' } })
  for (const action of ['block', 'redact'] as const) {
    for (let split = 1; split < 9; split++) {
      const [first, rest] = ['blackbird'.slice(0, split), 'blackbird'.slice(split)]
      for (const then of [part(rest), callFrame({ index: 0, function: { name: rest } })]) {
        const { text, stop } = pass(chat, part(first) + delta({ content: 'hi' }) + then + done, forbids(action))
        expect(stop?.verdict).toBe('block')
        expect([...namesOf(text)].join()).not.toContain(rest)
      }
    }
    expect(pass(chat, part('blackbird') + done, forbids('block')).text).toBe('')
  }
})
