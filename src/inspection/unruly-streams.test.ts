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
  const { bytes, stop } = inspector.end()
  if (bytes !== null) out.push(bytes)
  return { text: Buffer.concat(out).toString(), stop }
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

/** The calls of a stream's choices as a client that joins by number makes them, and how many frames name one. */
function callsOf(text: string) {
  const calls: { name: string; arguments: string; named: number }[] = []
  for (const [, line = ''] of text.matchAll(/^data: (\{.*)$/gm)) {
    for (const {
      delta: { tool_calls: parts = [] },
    } of JSON.parse(line).choices ?? []) {
      for (const { index: number, function: part = {} } of parts) {
        const index = number ?? 0
        calls[index] ??= { name: '', arguments: '', named: 0 }
        const known = calls[index]
        known.name += part.name ?? ''
        known.arguments += part.arguments ?? ''
        if (part.name) known.named++
      }
    }
  }
  return calls
}

const callFrame = (...calls: object[]) => delta({ tool_calls: calls })
const done = finish + data('[DONE]')

test('a name in parts leaves whole, with the first frame that has some of it, or not at all', () => {
  const part = (name: string, more: object = {}) => callFrame({ index: 0, function: { name, ...more } })
  for (let split = 1; split < 9; split++) {
    const [first, rest] = ['blackbird'.slice(0, split), 'blackbird'.slice(split)]
    for (const stream of [
      part(first) + part(rest) + part('', { arguments: '{}' }) + done,
      part(first) + part(rest, { arguments: '{}' }) + done,
      part(first, { arguments: '' }) + delta({ content: 'hi' }) + part(rest) + done,
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

test('a name that its call says again is one name; after other arguments another name contradicts', () => {
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
    return typeof name === 'string' && name !== '' ? [name] : []
  })
  return new Set([said.join(''), said[0] ?? '', said.at(-1) ?? ''])
}

test('a name that is said again is left out, whatever is said with it, so that every client has it once', () => {
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
  const retired = legacy({ ...zeta, arguments: '' }, { ...zeta, ...open }, { ...zeta, ...close })
  expect(namesOf(pass(chat, retired).text, 'function_call')).toEqual(new Set(['zeta']))
})

test('a tool that is forbidden is called by no client, in whatever pieces it is named', () => {
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

/** Passes a stream that no rule reads, but whose tools a policy decides on. */
function watch(stream: string): string {
  const reader = chat.reader(start)
  const inspector = new StreamInspector(reader, [], true)
  const out = framesOf(Buffer.from(stream)).map((frame) => {
    const facts = frame.data === null ? null : reader.frame({ event: frame.event, data: frame.data })
    return inspector.take(frame, facts?.terminal ?? false).bytes ?? new Uint8Array(0)
  })
  return Buffer.concat(out).toString()
}

test('a frame with a name waits no longer than the name; one whose name is whole does not wait', () => {
  const reader = chat.reader(start)
  const inspector = new StreamInspector(reader, [forbids('block')])
  const passes = (frames: string) =>
    framesOf(Buffer.from(frames)).map((frame) => {
      reader.frame({ event: frame.event, data: frame.data ?? '' })
      return Buffer.from(inspector.take(frame, false).bytes ?? []).toString()
    })
  const named = callFrame({ index: 0, id: 'one', function: { name: 'get_weather', arguments: '' } })
  const begun = callFrame({ index: 0, function: { arguments: '{"a":' } })
  const whole = callFrame({ index: 1, id: 'two', function: { name: 'get_time', arguments: '{}' } })
  const text = delta({ content: 'hello ' })
  expect(passes(text + named + begun + whole + text)).toEqual([text, '', named + begun, whole, text])
})

const argumentsPart = (text: string, more: object = {}) => call(text, more)
const [one, two] = ['{"a":"bla', 'ckbird"}']
const named = { name: 'f' }

test('calls go on by number, by id or by position, whichever each delta has', () => {
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

test('a delta that says in two ways which call it is of stops the stream where a policy may', () => {
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

test('calls that are all numbered 0, each whole, are calls of their own', () => {
  const whole = (id: string, name: string) => callFrame({ index: 0, id, function: { name, arguments: '{"a":"bla"}' } })
  const stream = whole('1', 'f') + whole('2', 'f') + whole('3', 'g') + done
  expect(pass(chat, stream, forbids('redact'))).toEqual({ text: stream, stop: null })
})

test('labels, ids and padding are read where they are not what the languages have', () => {
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

test('a label that is no string hides no text', () => {
  for (const name of ['status', 'type', 'finish_reason', 'model']) {
    expect(pass(chat, data({ choices: [], [name]: { deep: ['a blackbird'] } })).stop?.verdict).toBe('block')
  }
})

test('text behind the end of a choice is read with what stands before it', () => {
  const end = data('[DONE]')
  const usage = data({ id: 'c', choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 } })
  const contentOf = (text: string) => [...text.matchAll(/"content":"([^"]*)"/g)].map(([, said]) => said).join('')
  for (let split = 1; split < 9; split++) {
    const [first, rest] = [`a ${'blackbird'.slice(0, split)}`, 'blackbird'.slice(split)]
    for (const stream of [
      delta({ content: first }) + finish + delta({ content: `${rest} b` }) + end,
      delta({ content: first }) + finish + usage + delta({ content: `${rest} b` }, { finish_reason: 'stop' }) + end,
      delta({ content: first }, { finish_reason: 'stop' }) + delta({ content: `${rest} b` }),
    ]) {
      const blocked = pass(chat, stream)
      expect(blocked.stop?.verdict).toBe('block')
      expect('a ').toStartWith(contentOf(blocked.text))
      const redacted = pass(chat, stream, forbids('redact'))
      expect(redacted.stop).toBeNull()
      expect(contentOf(redacted.text)).toBe('a [TERM] b')
      expect(redacted.text.match(/"finish_reason":"stop"/g)).toEqual(stream.match(/"finish_reason":"stop"/g))
    }
    const held = delta({ content: first }) + finish + usage + end
    const { text } = pass(chat, held)
    expect(contentOf(text)).toBe(first)
    expect(text).toEndWith(finish + usage + end)
  }
  const late = pass(chat, delta({ content: 'hello ' }) + finish + delta({ content: 'more b' }) + end)
  expect(contentOf(late.text)).toBe('hello more b')
  expect(late.text).toEndWith(end)
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

test('what no policy of tools has read does not leave where one may stop the answer', () => {
  const call = '{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"blackbird"}}]}}]}'
  const hello = delta({ content: 'hello' })
  for (const field of ['\uFEFFdata', ' data', 'Data', 'data ', '']) {
    expect(watch(`:\n\n${field}: ${call}\n\n${field}: ${call}\n${hello}`)).toBe(`:\n\n:\n\n${hello}`)
  }
})

test('a byte order mark that does not begin the stream hides no line of data', () => {
  const halves = ['{"id":"c","choices":[{"index":0,"delta":{"content":"blackbird"}}]', '}']
  const [ours, theirs] = [`\uFEFFdata: ${halves[0]}\n`, `data: ${halves[1]}\n\n`]
  const { text } = pass(chat, `${delta({ content: 'hello' })}${ours}${theirs}`)
  expect(text).toBe(`${delta({ content: 'hello' })}${theirs}`)
  const own = pass(chat, ours + theirs)
  expect(own.stop?.verdict).toBe('block')
  expect(own.text).not.toContain('blackbird')
})

test('log probabilities leave nowhere, whoever brings them; what a tool is asked for does, where it is allowed', () => {
  const spelt = [{ token: 'black' }, { token: 'bird' }]
  for (const logprobs of [spelt, { content: spelt }]) {
    const item = { type: 'message', content: [{ type: 'output_text', text: '', inner: { logprobs } }] }
    for (const [dialect, said] of [
      [chat, { choices: [{ index: 0, delta: { content: '' }, logprobs }] }],
      [chat, { choices: [{ index: 0, delta: { content: '', logprobs } }] }],
      [chat, { choices: [], logprobs }],
      [chat, { unheard: { logprobs } }],
      [responses, { type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: '', logprobs }],
      [responses, { type: 'response.output_item.done', output_index: 0, item }],
      [responses, { type: 'response.completed', response: { output: [item], logprobs } }],
    ] as const) {
      expect(pass(dialect, data(said)).text).not.toMatch(/black|bird/)
      expect(pass(dialect, data(said)).text).not.toBe('')
    }
  }
  const input = { logprobs: [{ token: 'x' }] }
  const block = { type: 'tool_use', id: 't', name: 'f', input }
  const asked = data({ type: 'content_block_start', index: 0, content_block: block })
  expect(pass(messages, asked)).toEqual({ text: asked, stop: null })
})

test('a delta is read as one whatever else its event brings', () => {
  const event = (said: string, more: object) =>
    data({ type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: said, ...more })
  for (const more of [{ response: {} }, { item: {} }, { part: {} }, { item: { type: 'message' } }]) {
    const stream = event('a black', more) + event('bird', more)
    const blocked = pass(responses, stream)
    expect(blocked.stop?.verdict).toBe('block')
    expect(blocked.text).not.toContain('black')
    expect(pass(responses, stream, forbids('redact')).text).toContain('"delta":"[TERM]"')
  }
})

test('an event that is another by its name than by its data stops the stream where a policy may', () => {
  const said = { index: 0, delta: { type: 'text_delta', text: 'a black' } }
  const spoken = { output_index: 0, content_index: 0, delta: 'a black' }
  for (const [dialect, name, value] of [
    [messages, 'content_block_delta', { type: 'ping', ...said }],
    [messages, 'content_block_delta', { type: 'content_block_stop', ...said }],
    [responses, 'response.output_text.delta', { type: 'response.refusal.delta', ...spoken }],
    [responses, 'response.output_text.delta', { type: 'response.in_progress', ...spoken }],
  ] as const) {
    const stream = `event: ${name}\n${data(value)}`
    const { text, stop } = pass(dialect, stream)
    expect(stop).toMatchObject({ verdict: 'block', entry: 'contradiction' })
    expect(text).not.toContain('black')
    const watched = { ...forbids('block'), enforced: false }
    expect(pass(dialect, stream, watched)).toEqual({ text: stream, stop: null })
  }
  for (const line of ['', 'event: message\n', 'event: content_block_delta\n']) {
    const usual = `${line}${data({ type: 'content_block_delta', ...said, delta: { type: 'text_delta', text: 'a' } })}`
    expect(pass(messages, usual)).toEqual({ text: usual, stop: null })
  }
})

test('what ends a stream ends it for every client that stops there, and lets nothing unread out', () => {
  const held = delta({ content: 'a black' })
  for (const end of ['[DONE]', ' [DONE]', '[DONE] ', '[DONE] bye']) {
    const facts = chat.reader(start).frame({ event: null, data: end })
    expect(facts).toMatchObject({ terminal: true, textLength: 0 })
    const { text, stop } = pass(chat, held + data(end))
    expect(stop).toBeNull()
    expect(text.indexOf('black')).toBeGreaterThan(0)
    expect(text).toEndWith(data(end))
  }
  const more = pass(chat, held + data('[DONE] a blackbird'))
  expect(more.stop?.verdict).toBe('block')
  expect(more.text).not.toContain('blackbird')
  expect(pass(chat, data('[DONE] a blackbird'), forbids('redact')).text).toBe(data('[DONE] a [TERM]'))
})

const blackChunk = '{"choices":[{"index":0,"delta":{"content":"\\u0062lackbird"}}]}'

test('data in which some would read JSON that is none to others stops the stream where a policy may', () => {
  for (const lines of [
    [blackChunk, '{}'],
    ['hello', blackChunk],
    [`${blackChunk},`],
    [`[${blackChunk}]`],
    [`\uFEFF${blackChunk}`],
    ['"\\u0062lackbird"'],
  ]) {
    const stream = `${lines.map((line) => `data: ${line}\n`).join('')}\n`
    for (const dialect of [chat, messages, responses]) {
      expect(pass(dialect, stream)).toMatchObject({ text: '', stop: { entry: 'contradiction' } })
      expect(pass(dialect, stream, { ...forbids('block'), enforced: false })).toEqual({ text: stream, stop: null })
    }
  }
  for (const harmless of ['hello', 'C:\\temp', 'say "hi"', '{"a":', '[1]']) {
    expect(pass(chat, data(harmless))).toEqual({ text: data(harmless), stop: null })
  }
})

test('data in several lines leaves in one where it was read, since some read each line for itself', () => {
  const inLines = (content: string) =>
    `data: {"x":\ndata: {"choices":[{"index":0,"delta":{"content":"${content}"}}]}\ndata: }\n\n`
  for (const dialect of [chat, messages]) {
    expect(pass(dialect, inLines('hello')).text.match(/^data/gm)).toHaveLength(1)
    expect(pass(dialect, inLines('hello'), { ...forbids('block'), enforced: false }).text).toBe(inLines('hello'))
  }
})

test('choices, deltas and items that are none of these are read, or stop the stream', () => {
  for (const frame of [
    data({ choices: ['a blackbird'] }),
    data({ choices: [[{ delta: { content: 'a blackbird' } }]] }),
    delta('a blackbird'),
    delta([{ content: 'a blackbird' }]),
  ]) {
    const { text, stop } = pass(chat, frame)
    expect(stop?.verdict).toBe('block')
    expect(text).not.toContain('blackbird')
  }
  for (const output of ['a blackbird', ['a blackbird'], { text: 'a blackbird' }]) {
    const { text, stop } = pass(responses, data({ type: 'response.completed', response: { output } }))
    expect(stop?.verdict).toBe('block')
    expect(text).not.toContain('blackbird')
  }
})

test('content goes on from a string to typed parts of it, and back', () => {
  const part = (text: string) => [{ type: 'text', text }]
  for (const [first, second] of [
    ['a black', part('bird')],
    [part('a black'), 'bird'],
  ] as const) {
    const stream = delta({ content: first }) + delta({ content: second }) + finish
    const blocked = pass(chat, stream)
    expect(blocked.stop?.verdict).toBe('block')
    expect(blocked.text).not.toContain('bird')
    expect(pass(chat, stream, forbids('redact')).text).toContain('[TERM]')
  }
})
