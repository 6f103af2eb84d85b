/** What some clients read otherwise than the standard or a stream's language has it was read here too, or stays. */
import { expect, test } from 'bun:test'
import { chat } from '../languages/chat/dialect.ts'
import { messages } from '../languages/messages/dialect.ts'
import { responses } from '../languages/responses/dialect.ts'
import { start } from '../languages/testing/streams.ts'
import { data, delta, finish, forbids, pass, watch } from './testing/inspecting.ts'

test('sends no comment, id, unknown field or event name that was not inspected', () => {
  const spoken = delta({ content: 'hello' }).trimEnd()
  const aside = `: blackbird\n\nid: blackbird\nretry: 5\nblackbird: x\nevent: blackbird\n${spoken}\n\n`
  const twice = `event: ping\nevent: blackbird\n${spoken}\n\n`
  const { text } = pass(chat, `${aside}${twice}event: ping\n${spoken}\n\n${finish}`)
  expect(text).toBe(`:\n\n${spoken}\n\n${spoken}\n\nevent: ping\n${spoken}\n\n${finish}`)
  const watched = { ...forbids('block'), enforced: false }
  expect(pass(chat, aside, watched).text).toBe(aside)
})

test('does not send unread tool data while a tool policy may stop the answer', () => {
  const call = '{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"blackbird"}}]}}]}'
  const hello = delta({ content: 'hello' })
  for (const field of ['\uFEFFdata', ' data', 'Data', 'data ', '']) {
    expect(watch(`:\n\n${field}: ${call}\n\n${field}: ${call}\n${hello}`)).toBe(`:\n\n:\n\n${hello}`)
  }
})

test('reads a data line behind a byte order mark that does not begin the stream', () => {
  const halves = ['{"id":"c","choices":[{"index":0,"delta":{"content":"blackbird"}}]', '}']
  const [ours, theirs] = [`\uFEFFdata: ${halves[0]}\n`, `data: ${halves[1]}\n\n`]
  const { text } = pass(chat, `${delta({ content: 'hello' })}${ours}${theirs}`)
  expect(text).toBe(`${delta({ content: 'hello' })}${theirs}`)
  const own = pass(chat, ours + theirs)
  expect(own.stop?.verdict).toBe('block')
  expect(own.text).not.toContain('blackbird')
})

test('sends no log probabilities in any shape, but passes allowed tool arguments', () => {
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

test('inspects a member named logprobs in a schema or prompt like any other and keeps it', () => {
  const schema = (logprobs: object) => ({ type: 'object', properties: { logprobs, x: { type: 'string' } } })
  const listed = (logprobs: object) => {
    const item = { type: 'mcp_list_tools', id: 'm', tools: [{ name: 'f', input_schema: schema(logprobs) }] }
    return data({ type: 'response.output_item.done', output_index: 0, item })
  }
  const created = (response: object) => data({ type: 'response.created', response: { output: [], ...response } })
  const prompt = { id: 'p', variables: { logprobs: { type: 'input_text', text: 'x' } } }
  for (const stream of [
    listed({ type: 'boolean' }),
    listed({ type: 'array', items: [{ type: 'number' }] }),
    created({ tools: [{ type: 'function', name: 'f', parameters: schema({ type: 'integer' }) }] }),
    created({ prompt }),
  ]) {
    expect(pass(responses, stream)).toEqual({ text: stream, stop: null })
    expect(watch(stream)).toBe(stream)
  }
  for (const logprobs of [{ description: 'a blackbird' }, ['a blackbird'], [{ token: 'blackbird' }]]) {
    const { text, stop } = pass(responses, listed(logprobs))
    expect(stop?.verdict).toBe('block')
    expect(text).not.toContain('blackbird')
  }
  expect(pass(responses, listed({ logprobs: [{ token: 'black' }] })).text).toContain('{"logprobs":{"logprobs":[]}')
})

test('reads a delta whatever else its event contains', () => {
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

test('stops the stream when event name and data disagree and a policy may stop the answer', () => {
  const said = { index: 0, delta: { type: 'text_delta', text: 'a black' } }
  const spoken = { output_index: 0, content_index: 0, delta: 'a black' }
  for (const [dialect, name, value] of [
    [messages, 'content_block_delta', { type: 'ping', ...said }],
    [messages, 'content_block_delta', { type: 'content_block_stop', ...said }],
    [messages, 'response.output_text.delta', { type: 'content_block_delta', ...said }],
    [responses, 'content_block_delta', { type: 'response.output_text.delta', ...spoken }],
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

test('ends the stream for every client at the first terminal frame and sends no unread data', () => {
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

test('joins data of several lines to one line when it was inspected', () => {
  const inLines = (content: string) =>
    `data: {"x":\ndata: {"choices":[{"index":0,"delta":{"content":"${content}"}}]}\ndata: }\n\n`
  for (const dialect of [chat, messages]) {
    expect(pass(dialect, inLines('hello')).text.match(/^data/gm)).toHaveLength(1)
    expect(watch(inLines('hello')).match(/^data/gm)).toHaveLength(1)
    expect(pass(dialect, inLines('hello'), { ...forbids('block'), enforced: false }).text).toBe(inLines('hello'))
  }
})

test('writes a duplicate member once, as inspected, when a policy may change or stop the answer', () => {
  const calls = (functions: string) =>
    data(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":${functions}}]}}]}`)
  for (const first of ['"name":"zebra"', '"n\\u0061me":"zebra"']) {
    const stream = calls(`{${first},"name":"lion","arguments":"{}"}`)
    const read = calls('{"name":"lion","arguments":"{}"}')
    expect(watch(stream)).toBe(read)
    expect(pass(chat, stream).text).toBe(read)
    expect(pass(chat, stream, { ...forbids('block'), enforced: false }).text).toBe(stream)
  }
})

test('sends no log probabilities when a policy can only stop the answer', () => {
  const said = delta({ content: 'hello' }, { logprobs: { content: [{ token: 'hello' }] } })
  expect(watch(said)).toBe(delta({ content: 'hello' }, { logprobs: null }))
  expect(watch(delta({ content: 'hello' }))).toBe(delta({ content: 'hello' }))
})

test('reads or stops malformed choices, deltas and items', () => {
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

test('follows content that changes from a string to typed parts and back', () => {
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

test('stops the stream when a content block is begun again under its number', () => {
  const block = (text: string) =>
    data({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }) +
    data({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }) +
    data({ type: 'content_block_stop', index: 0 })
  const begun = data({ type: 'message_start', message: { id: 'm', content: [] } })
  const { text, stop } = pass(messages, begun + block('a black') + block('bird'))
  expect(stop?.verdict).toBe('block')
  expect(text).not.toContain('bird')
  expect(pass(messages, begun + block('a black') + begun + block('swan')).stop).toBeNull()
})

test('treats a name after complete arguments as another call only with its own id', () => {
  const call = (name: string, given: object) =>
    delta({ tool_calls: [{ index: 0, id: 't', function: { name, ...given } }] })
  const whole = { arguments: '{}' }
  expect(pass(chat, call('black', whole) + call('bird', { arguments: '' }) + finish).stop?.verdict).toBe('block')
  expect(pass(chat, call('black', whole) + call('bird', {}) + finish).stop?.verdict).toBe('block')
  expect(pass(chat, call('black', whole) + call('swan', whole) + finish).stop).toBeNull()
})

test('sends numbers that JSON lacks as null when a policy may change or stop the answer, and inspects nearby text', () => {
  const said = (number: string, content: string) =>
    `data: {"id":"c","choices":[{"index":0,"delta":{"content":"${content}"},"score":[${number}],"x":1e400}]}\n\n`
  for (const number of ['NaN', 'Infinity', '-Infinity', '-Infinity,{"y": NaN }']) {
    const stream = said(number, 'NaN of \\"Infinity') + said(number, ' birds') + finish
    const written = stream
      .replaceAll(/(?<=score":\[.*)(?:NaN|-?Infinity)/g, 'null')
      .replaceAll('{"y": null }', '{"y":null}')
    expect(pass(chat, stream)).toEqual({ text: written, stop: null })
    expect(watch(stream)).toBe(written)
    expect(pass(chat, stream, { ...forbids('block'), enforced: false }).text).toBe(stream)
    const split = said(number, 'a black') + said(number, 'bird') + finish
    expect(pass(chat, split).stop?.verdict).toBe('block')
    expect(pass(chat, split, forbids('redact')).text).toContain('[TERM]')
  }
  const scored = `data: {"choices":[{"index":0,"delta":{"content":"a"},"logprobs":{"content":[{"logprob":-Infinity}]}}]}\n\n`
  expect(pass(chat, scored).text).toBe(data({ choices: [{ index: 0, delta: { content: 'a' }, logprobs: null }] }))
  const twice = `data: {"choices":[{"index":0,"delta":{"content":"blackbird","content":NaN}}]}\n\n`
  expect(pass(chat, twice).text).toBe(data({ choices: [{ index: 0, delta: { content: null } }] }))
})

test('stops the stream at near-numbers and at such numbers in tool arguments, as malformed JSON', () => {
  for (const number of ['-NaN', '+Infinity', '--Infinity', 'nan', 'NaN1', 'Infinity.0', 'NaN NaN', "'NaN'", '[NaN,]']) {
    const stream = `data: {"choices":[{"index":0,"delta":{"content":"a"},"score":${number}}]}\n\n`
    expect(pass(chat, stream).stop?.entry).toBe('contradiction')
    expect(watch(stream)).toBe('undecided')
  }
  const block = (input: string) =>
    `data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f",${input}}}\n\n`
  expect(pass(messages, block('"input":{"a":[{"b":NaN}]}')).stop?.entry).toBe('contradiction')
  expect(pass(messages, block('"input":{"a":["NaN"]},"score":NaN'))).toEqual({
    text: block('"input":{"a":["NaN"]},"score":null'),
    stop: null,
  })
  const deep = `${'['.repeat(100_000)}NaN${']'.repeat(100_000)}`
  expect(pass(chat, `data: {"choices":[],"deep":${deep}}\n\n`).stop?.entry).toBe('contradiction')
})
