import { expect, test } from 'bun:test'
import { Failure, type FailureCode } from '../../failure.ts'
import { dataOf, factsOf, framesOf, openNext, receivedFrom, start } from '../testing/streams.ts'
import { messages } from './dialect.ts'

const sse = (...events: readonly { type: string; [member: string]: unknown }[]) =>
  framesOf(Buffer.from(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')))
const opening = {
  type: 'message_start',
  message: {
    id: 'msg_1',
    role: 'assistant',
    content: [],
    usage: { input_tokens: 5, cache_read_input_tokens: 3, output_tokens: 1 },
  },
}
const blockStart = (index: number, block: object) => ({ type: 'content_block_start', index, content_block: block })
const blockDelta = (index: number, delta: object) => ({ type: 'content_block_delta', index, delta })
const blockStop = (index: number) => ({ type: 'content_block_stop', index })

test('messages.read reads the fields that the gateway acts on', () => {
  const body = {
    model: 'm',
    max_tokens: 9,
    system: [{ type: 'text', text: 'abcd', cache_control: { type: 'ephemeral' } }],
    messages: [{ role: 'user', content: 'efgh' }],
  }
  expect(messages.read(body)).toEqual({
    model: 'm',
    stream: false,
    inputEstimate: 2,
    outputLimit: 9,
    choices: 1,
    beyondBody: false,
    unbounded: null,
    sessionId: null,
  })
  const asked = (content: unknown, more: object = {}) =>
    messages.read({ model: 'm', messages: [{ role: 'user', content }], ...more })
  expect(asked([{ type: 'image', source: { type: 'url', url: 'https://example.com' } }]).beyondBody).toBe(true)
  expect(asked([{ type: 'document', source: { type: 'file', file_id: 'f' } }]).beyondBody).toBe(true)
  expect(asked([{ type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'a' } }]).beyondBody).toBe(
    false,
  )
  expect(asked('a', { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }).unbounded).toBe('tools')
  expect(asked('a', { tools: [{ type: 'web_search_20250305', max_uses: 2 }] })).toMatchObject({
    unbounded: null,
    toolUses: 2,
  })
  expect(asked('a', { tools: [{ name: 'f', input_schema: {} }, { type: 'bash_20250124' }] }).unbounded).toBeNull()
  expect(asked('a', { mcp_servers: [{}] }).unbounded).toBe('mcp_servers')
})

test('messages.read refuses response_format', () => {
  expect(() => messages.read({ model: 'm', response_format: { type: 'json_object' } })).toThrow(
    expect.objectContaining({ status: 422, param: 'response_format' }),
  )
})

test('messages.requestText gives every text, tool input as JSON, and replaces it in place', () => {
  const body = {
    system: 'one',
    messages: [
      { role: 'user', content: 'two' },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'three', signature: 'signed' },
          { type: 'tool_use', id: 't', name: 'f', input: { q: 'four', n: 1 } },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 't', content: [{ type: 'text', text: 'five' }] },
          { type: 'document', title: 'six', source: { type: 'text', media_type: 'text/plain', data: 'seven' } },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
        ],
      },
    ],
  }
  const slots = messages.requestText(body)
  expect(slots.map(({ member, kind, role, text }) => [member, kind, role, text])).toEqual([
    ['system', 'content', 'system', 'one'],
    ['messages', 'content', 'user', 'two'],
    ['messages', 'reasoning', 'assistant', 'three'],
    ['messages', 'name', 'assistant', 'f'],
    ['messages', 'tool_arguments', 'assistant', '{"q":"four","n":1}'],
    ['messages', 'tool_result', 'tool', 'five'],
    ['messages', 'content', 'user', 'six'],
    ['messages', 'content', 'user', 'seven'],
  ])
  for (const slot of slots) slot.replace(slot.text.replaceAll(/[a-z]{3,}/g, 'X'))
  expect(JSON.stringify(body)).not.toMatch(/"(one|two|three|four|five|six|seven)"/)
  expect(body.messages[1]?.content).toEqual([
    { type: 'thinking', thinking: 'X', signature: 'gatehouse.messages..' },
    { type: 'tool_use', id: 't', name: 'f', input: { q: 'X', n: 1 } },
  ] as never)
})

test('takes the last figure of each count as usage, with cache reads and writes in the input', () => {
  const frames = sse(
    opening,
    { type: 'message_delta', delta: {}, usage: { output_tokens: 4 } },
    {
      type: 'message_delta',
      delta: {},
      usage: {
        input_tokens: 6,
        cache_read_input_tokens: 3,
        cache_creation_input_tokens: 2,
        cache_creation: { ephemeral_1h_input_tokens: 1 },
        server_tool_use: { web_search_requests: 4 },
        output_tokens: 9,
      },
    },
    { type: 'message_stop' },
  )
  const usages = factsOf(messages, frames).map(({ usage }) => [usage?.inputTokens, usage?.outputTokens])
  expect(usages).toEqual([
    [8, null],
    [8, 4],
    [11, 9],
    [11, 9],
  ])
  expect(factsOf(messages, frames).at(-1)).toMatchObject({
    terminal: true,
    usage: { cachedInputTokens: 3, cacheWriteTokens: 2, cacheWriteHourTokens: 1, toolUses: 4 },
  })
})

test('a stream is read into channels, blocks of the same number apart', () => {
  const frames = sse(
    opening,
    blockStart(0, { type: 'thinking', thinking: '', signature: '' }),
    blockDelta(0, { type: 'thinking_delta', thinking: 'hm' }),
    blockDelta(0, { type: 'signature_delta', signature: 'signed' }),
    blockStop(0),
    blockStart(1, { type: 'tool_use', id: 't', name: 'f', input: {} }),
    blockDelta(1, { type: 'input_json_delta', partial_json: '{"a":' }),
    blockDelta(1, { type: 'input_json_delta', partial_json: '1}' }),
    blockStop(1),
    blockStart(2, { type: 'text', text: '' }),
    blockDelta(2, { type: 'text_delta', text: 'a' }),
    blockDelta(2, { type: 'citations_delta', citation: { type: 'char_location', cited_text: 'b' } }),
    blockDelta(2, { type: 'new_delta', novelty: 'c' }),
    blockStop(2),
    blockStart(2, { type: 'text', text: 'd' }),
    blockDelta(2, { type: 'text_delta', text: 'e' }),
    blockStop(2),
    { type: 'message_stop' },
  )
  const received = receivedFrom(messages, frames)
  expect(Object.values(received.channels)).toEqual(['hm', '{"a":1}', 'a', 'c', 'de'])
  expect(Object.values(received.kinds)).toEqual(['reasoning', 'tool_arguments', 'content', 'content', 'content'])
  expect(received.wholes).toContain('2/citation/cited_text=b')
})

test('the empty input that a call begins with is its arguments only where no delta of it follows', () => {
  const begun = blockStart(1, { type: 'tool_use', id: 't', name: 'f', input: {} })
  const part = (json: string) => blockDelta(1, { type: 'input_json_delta', partial_json: json })
  const stop = { type: 'message_stop' }
  const given = (...events: { type: string }[]) => {
    const { channels, wholes } = receivedFrom(messages, sse(opening, begun, ...events))
    return [...Object.values(channels), ...wholes.filter((whole) => whole.startsWith('1/input'))]
  }
  expect(given(part(''), part('{"a":'), part('1}'), blockStop(1), stop)).toEqual(['{"a":1}'])
  for (const events of [[], [part('')]]) {
    expect(given(...events, blockStop(1), stop).filter((text) => text !== '')).toEqual(['1/input={}'])
    expect(given(...events, stop).filter((text) => text !== '')).toEqual(['1/input={}'])
  }
})

test('thinking keeps its signature where its text was only late, and loses it where it was altered', () => {
  const signed = (alter: (text: string) => string) => {
    const reader = messages.reader(start)
    const out: Uint8Array[] = []
    const frames = sse(
      opening,
      blockStart(0, { type: 'thinking', thinking: '', signature: '' }),
      blockDelta(0, { type: 'thinking_delta', thinking: 'one ' }),
      blockDelta(0, { type: 'thinking_delta', thinking: 'two' }),
      blockDelta(0, { type: 'signature_delta', signature: 'signed' }),
    )
    let held = ''
    for (const frame of frames) {
      const opened = openNext(reader, frame)
      for (const piece of opened?.pieces ?? []) {
        held += piece.text
        piece.replace('')
      }
      for (const channel of opened?.ends ?? []) out.push(reader.delta(channel, alter(held)))
      out.push(opened?.bytes() ?? frame.bytes)
    }
    return Buffer.concat(out).toString()
  }
  expect(signed((text) => text)).toContain('"signature":"signed"')
  expect(signed(() => '[X]')).not.toContain('"signature":"signed"')
  expect(signed(() => '[X]')).toContain('{"type":"signature_delta","signature":"gatehouse.messages.."}')
})

test('errors have the types of their statuses', () => {
  const typeOf = (code: FailureCode) => messages.errorBody(new Failure(code, { param: 'model' }), 'r')
  const rows: readonly [FailureCode, string][] = [
    ['invalid_api_token', 'authentication_error'],
    ['tokens.budget_exhausted', 'billing_error'],
    ['permission_denied', 'permission_error'],
    ['model_not_found', 'not_found_error'],
    ['conflict', 'conflict_error'],
    ['request_too_large', 'request_too_large'],
    ['consumer_group_rate_limit_exceeded', 'rate_limit_error'],
    ['usage_authorization_rate_limited', 'rate_limit_error'],
    ['token_state_stale', 'api_error'],
    ['upstream_provider_error', 'api_error'],
    ['invalid_json', 'invalid_request_error'],
    ['invalid_parameter', 'invalid_request_error'],
  ]
  for (const [code, type] of rows) {
    expect(typeOf(code)).toMatchObject({ type: 'error', error: { type, code, param: 'model' }, request_id: 'r' })
  }
  expect(typeOf('provider_primary_path_error')).toMatchObject({ error: { type: 'api_error', code: 'upstream_error' } })
  const blocked = new Failure('content_policy_violation', { verdictan: { verdict: 'BLOCK', reason_code: 'terms' } })
  expect(messages.errorBody(blocked, 'r')).toEqual({
    type: 'error',
    error: { type: 'invalid_request_error', message: 'A policy blocked this', code: 'content_policy_violation' },
    request_id: 'r',
    verdictan: { verdict: 'BLOCK', reason_code: 'terms' },
  })
})

test("a provider's error in chat form is rewritten, and one in any other stays", () => {
  const inChat = { error: { message: 'Slow down', type: 'requests', param: null, code: 'rate_limited' }, extension: 1 }
  expect(messages.providerError(429, inChat, 'r')).toEqual({
    type: 'error',
    error: { type: 'rate_limit_error', message: 'Slow down', code: 'rate_limited' },
    request_id: 'r',
    extension: 1,
  })
  expect(messages.providerError(529, { error: 'overloaded' }, 'r')).toMatchObject({
    error: { type: 'overloaded_error', message: 'overloaded' },
  })
  expect(messages.providerError(400, { type: 'error', error: { type: 'x', message: 'y' } }, 'r')).toBeNull()
  expect(messages.providerError(400, { detail: 'none' }, 'r')).toBeNull()
  expect(messages.providerError(400, 'text', 'r')).toBeNull()
})

test('an escalation opens missing events and closes open blocks', () => {
  const verdictan = { verdict: 'ESCALATE', reason_code: 'review' }
  const fresh = dataOf(framesOf(messages.reader(start).escalationFrames(verdictan, false)))
  expect(fresh.map(({ type }) => type)).toEqual(['message_start', 'message_delta', 'message_stop'])
  const stop_details = { type: 'refusal', explanation: 'A reviewer has to decide about this request.' }
  expect(fresh[1]).toMatchObject({ delta: { stop_reason: 'refusal', stop_details }, verdictan })
  const reader = messages.reader(start)
  for (const frame of sse(opening, blockStart(0, { type: 'text', text: '' }))) openNext(reader, frame)
  const late = dataOf(framesOf(reader.escalationFrames(verdictan, true)))
  expect(late.map(({ type }) => type)).toEqual(['content_block_stop', 'message_delta', 'message_stop'])
  const body = messages.escalation(messages.read({ model: 'm' }), verdictan, start.exchangeId)
  expect(body).toMatchObject({
    type: 'message',
    model: 'm',
    content: [],
    stop_reason: 'refusal',
    stop_details,
    verdictan,
  })
})

test('an escalation is a text for a client that shows nothing else', () => {
  const verdictan = { verdict: 'ESCALATE', reason_code: 'review' }
  const text = 'A reviewer has to decide about this request.'
  const frames = dataOf(framesOf(messages.reader({ ...start, textOnly: true }).escalationFrames(verdictan, false)))
  expect(frames).toMatchObject([
    { type: 'message_start' },
    { type: 'content_block_start', index: 0 },
    { type: 'content_block_delta', index: 0, delta: { text } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, verdictan },
    { type: 'message_stop' },
  ])
  const body = messages.escalation(messages.read({ model: 'm' }), verdictan, start.exchangeId, true)
  expect(body).toMatchObject({ content: [{ type: 'text', text }], stop_reason: 'end_turn', verdictan })
})

test('fast mode and the service tier are read of requests and of usage', () => {
  const body = { model: 'm', max_tokens: 1, messages: [] }
  expect(messages.read({ ...body, speed: 'fast', service_tier: 'auto' }).serviceTier).toEqual({
    name: 'fast',
    param: 'speed',
  })
  expect(messages.read({ ...body, speed: 'standard', service_tier: 'auto' }).serviceTier?.name).toBe('auto')
  const usage = { input_tokens: 1, output_tokens: 1, service_tier: 'priority' }
  expect(messages.readAnswer({ usage }).usage?.serviceTier).toBe('priority')
  expect(messages.readAnswer({ usage: { ...usage, speed: 'fast' } }).usage?.serviceTier).toBe('fast')
})
