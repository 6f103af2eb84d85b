import { expect, test } from 'bun:test'
import { Failure, waitingWords } from '../../failure.ts'
import { dataOf, framesOf, openNext, receivedFrom, start } from '../testing/streams.ts'
import { responses, textFormatOf } from './dialect.ts'

const fieldAtFault = (body: Record<string, unknown>): string | null => {
  try {
    responses.read(body)
    return null
  } catch (thrown) {
    return thrown instanceof Failure ? thrown.param : 'not a failure'
  }
}
const sse = (...events: readonly { type: string; [member: string]: unknown }[]) =>
  framesOf(Buffer.from(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')))

test('responses.read reads the fields that the gateway acts on', () => {
  const body = {
    model: 'm',
    stream: true,
    instructions: 'abcd',
    input: [
      { role: 'user', content: 'efgh' },
      { type: 'function_call', arguments: '{"a":1}', name: 'f', call_id: 'c' },
    ],
    max_output_tokens: 7,
    session_id: 's',
  }
  expect(responses.read(body)).toEqual({
    model: 'm',
    stream: true,
    inputEstimate: 4,
    outputLimit: 7,
    choices: 1,
    beyondBody: false,
    unbounded: null,
    sessionId: 's',
  })
  expect(responses.read({ model: 'm', input: 'abcdefgh' }).inputEstimate).toBe(2)
})

test('responses.read finds input beyond the body and members without a cost bound', () => {
  const beyond = [
    { previous_response_id: 'r' },
    { conversation: 'c' },
    { prompt: { id: 'p' } },
    { input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'f' }] }] },
    { input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'https://example.com/a.png' }] }] },
    { input: [{ type: 'item_reference', id: 'i' }] },
  ]
  for (const more of beyond) expect([more, responses.read({ model: 'm', ...more }).beyondBody]).toEqual([more, true])
  const unbounded = (more: Record<string, unknown>) => responses.read({ model: 'm', ...more }).unbounded
  // The gateway follows it to its end (gateway/stored/README.md).
  expect(unbounded({ background: true })).toBeNull()
  expect(unbounded({ tools: [{ type: 'web_search' }] })).toBe('tools')
  expect(unbounded({ input: [{ type: 'additional_tools', tools: [{ type: 'web_search' }] }] })).toBe('tools')
  expect(unbounded({ tools: [{ type: 'function', name: 'f' }, { type: 'custom' }] })).toBeNull()
  expect(responses.read({ model: 'm', tools: [{ type: 'web_search' }], max_tool_calls: 3 })).toMatchObject({
    unbounded: null,
    toolUses: 3,
  })
})

test('responses.read refuses values that it cannot act on, and names the field', () => {
  const schema = { name: 'n', strict: true, schema: { type: 'object' } }
  const asked = { model: 'm', response_format: { type: 'json_schema', json_schema: schema } }
  expect(fieldAtFault(asked)).toBeNull()
  expect(fieldAtFault({ ...asked, text: { format: { type: 'json_schema', ...schema } } })).toBeNull()
  expect(fieldAtFault({ ...asked, text: { format: { type: 'json_object' } } })).toBe('response_format')
  expect(fieldAtFault({ model: 'm', response_format: 'json' })).toBe('response_format')
  expect(fieldAtFault({ model: 'm', max_output_tokens: 'many' })).toBe('max_output_tokens')
  expect(fieldAtFault({ model: 'm', session_id: 7 })).toBe('session_id')
  expect(fieldAtFault({})).toBe('model')
  expect(textFormatOf({ type: 'json_object' })).toEqual({ type: 'json_object' })
})

test("reads the variables of a stored prompt and a schema's descriptions, under any name", () => {
  const input = { type: 'input_text', text: 'said' }
  const parameters = { type: 'object', properties: { logprobs: { type: 'number', description: 'told' } } }
  const tools = [{ type: 'function', name: 'f', parameters }]
  const slots = responses.requestText({ prompt: { id: 'p', variables: { logprobs: input } }, tools })
  expect(slots.map(({ text }) => text)).toEqual(expect.arrayContaining(['said', 'told']))
})

test('responses.requestText gives every text, and replaces it in place', () => {
  const body = {
    model: 'm',
    instructions: 'one',
    input: [
      {
        role: 'user',
        content: [
          { type: 'input_text', text: 'two', unknown: 'three' },
          { type: 'input_image', image_url: 'data:image/png;base64,AAAA' },
        ],
      },
      { type: 'reasoning', id: 'rs', encrypted_content: 'gAAAA', summary: [{ type: 'summary_text', text: 'four' }] },
      { type: 'function_call', name: 'name', arguments: '{"a":"five"}', call_id: 'c' },
      { type: 'function_call_output', output: 'six', call_id: 'c' },
    ],
    tools: [
      {
        type: 'function',
        name: 'f',
        description: 'seven',
        parameters: { properties: { a: { type: 'string', description: 'eight' } } },
      },
    ],
  }
  const slots = responses.requestText(body)
  expect(slots.map(({ member, kind, role, text }) => [member, kind, role, text])).toEqual([
    ['instructions', 'content', 'system', 'one'],
    ['input', 'content', 'user', 'two'],
    ['input', 'content', 'user', 'three'],
    ['input', 'reasoning', 'assistant', 'four'],
    ['input', 'name', 'assistant', 'name'],
    ['input', 'tool_arguments', 'assistant', '{"a":"five"}'],
    ['input', 'tool_result', 'tool', 'six'],
    ['tools', 'name', 'system', 'f'],
    ['tools', 'content', 'system', 'seven'],
    ['tools', 'content', 'system', 'eight'],
  ])
  for (const slot of slots) slot.replace(slot.text.toUpperCase())
  expect(responses.requestText(body).map(({ text }) => text)).toEqual(slots.map(({ text }) => text.toUpperCase()))
  expect(body.instructions).toBe('ONE')
})

test('responses.answerText replaces a text together with its log probabilities', () => {
  const part = { type: 'output_text', text: 'secret', logprobs: [{ token: 'secret' }], annotations: [] }
  const body = { output: [{ type: 'message', role: 'assistant', content: [part] }], output_text: 'secret' }
  for (const slot of responses.answerText(body)) slot.replace('[X]')
  expect(JSON.stringify(body)).not.toContain('secret')
  expect(
    responses.readAnswer({ usage: { input_tokens: 3, output_tokens: 2, input_tokens_details: { cached_tokens: 1 } } }),
  ).toMatchObject({
    usage: { inputTokens: 3, outputTokens: 2, cachedInputTokens: 1 },
  })
})

const opening = {
  type: 'response.created',
  sequence_number: 0,
  response: { id: 'resp_1', model: 'm-1', status: 'in_progress', output: [] },
}
const address = { item_id: 'msg_1', output_index: 0, content_index: 0 }
const delta = (number: number, text: string) => ({
  type: 'response.output_text.delta',
  sequence_number: number,
  ...address,
  delta: text,
  logprobs: [{ token: text }],
})

test('an inserted frame takes the number of the next frame, and later numbers move up', () => {
  const reader = responses.reader(start)
  const done = { type: 'response.output_text.done', sequence_number: 3, ...address, text: 'abc', logprobs: [] }
  const completed = {
    type: 'response.completed',
    sequence_number: 4,
    response: { id: 'resp_1', output: [], usage: {} },
  }
  const out: Uint8Array[] = []
  for (const frame of sse(opening, delta(1, 'ab'), delta(2, 'c'), done, completed)) {
    const opened = openNext(reader, frame)
    for (const piece of opened?.pieces ?? []) if (piece.text === 'c') piece.replace('')
    for (const channel of opened?.ends ?? []) out.push(reader.delta(channel, 'c'))
    out.push(opened?.bytes() ?? frame.bytes)
  }
  const events = dataOf(framesOf(Buffer.concat(out)))
  expect(events.map(({ type, sequence_number: number }) => [type, number])).toEqual([
    ['response.created', 0],
    ['response.output_text.delta', 1],
    ['response.output_text.delta', 2],
    ['response.output_text.delta', 3],
    ['response.output_text.done', 4],
    ['response.completed', 5],
  ])
  expect(events[3]).toMatchObject({ ...address, delta: 'c' })
  expect(JSON.stringify(events)).not.toContain('token')
})

test('reads a repeated whole text as part of the same channel', () => {
  const item = { id: 'msg_1', type: 'message', content: [{ type: 'output_text', text: 'abc' }] }
  const frames = sse(
    opening,
    delta(1, 'abc'),
    { type: 'response.output_text.done', ...address, text: 'abc' },
    { type: 'response.content_part.done', ...address, part: { type: 'output_text', text: 'abc' } },
    { type: 'response.output_item.done', output_index: 0, item },
    { type: 'response.completed', response: { id: 'resp_1', output: [item] } },
  )
  expect(receivedFrom(responses, frames)).toEqual({
    channels: { '0/0/output_text': 'abc' },
    wholes: Array.from({ length: 4 }, () => '0/0/output_text=abc'),
    kinds: { '0/0/output_text': 'content' },
  })
})

test('inspects unknown fields and events', () => {
  const frames = sse(
    opening,
    { type: 'response.new_text.delta', output_index: 2, delta: 'part' },
    { type: 'response.news', output_index: 2, headline: 'read me', nested: { list: ['and me'] } },
    { type: 'response.audio.delta', delta: 'AAAA' },
    { type: 'response.image_generation_call.partial_image', output_index: 1, partial_image_b64: 'AAAA' },
  )
  const { channels, wholes } = receivedFrom(responses, frames)
  expect(channels).toEqual({
    '2//new_text': 'part',
    'unforeseen/headline': 'read me',
    'unforeseen/nested/list#0': 'and me',
  })
  expect(wholes.map((whole) => whole.split('=')[1])).toEqual(['response.news'])
})

test('writes an error flat, nested and with the extension, under the next number', () => {
  const reader = responses.reader(start)
  for (const frame of sse(opening, delta(1, 'a'))) openNext(reader, frame)
  const failure = new Failure('content_policy_violation', { verdictan: { verdict: 'BLOCK', reason_code: 'terms' } })
  const [frame] = framesOf(reader.errorFrames(failure, 'request-1'))
  expect(frame?.event).toBe('error')
  expect(JSON.parse(frame?.data ?? '')).toEqual({
    type: 'error',
    sequence_number: 2,
    code: 'content_policy_violation',
    message: 'A policy blocked this',
    param: null,
    error: {
      message: 'A policy blocked this',
      type: 'invalid_request_error',
      param: null,
      code: 'content_policy_violation',
    },
    request_id: 'request-1',
    verdictan: { verdict: 'BLOCK', reason_code: 'terms' },
  })
})

test('an escalation sends its opening events only if the provider has not', () => {
  const verdictan = { verdict: 'ESCALATE', reason_code: 'review', escalation: { id: 'e', status: 'queued' as const } }
  const fresh = dataOf(framesOf(responses.reader(start).escalationFrames(verdictan, false)))
  expect(fresh.map(({ type, sequence_number: number }) => [number, type])).toEqual(
    [
      ...['response.created', 'response.output_item.added', 'response.content_part.added'],
      ...['response.output_text.delta', 'response.output_text.done', 'response.content_part.done'],
      ...['response.output_item.done', 'response.incomplete'],
    ].map((type, number) => [number, type]),
  )
  const message = {
    type: 'message',
    role: 'assistant',
    content: [{ type: 'output_text', text: waitingWords(verdictan) }],
  }
  const incomplete = { status: 'incomplete', incomplete_details: { reason: 'content_filter' }, output: [message] }
  expect(fresh.at(-1)).toMatchObject({ verdictan, response: { ...incomplete, verdictan, model: 'asked-for' } })
  const reader = responses.reader(start)
  for (const frame of sse(opening, delta(1, 'a'))) openNext(reader, frame)
  const late = dataOf(framesOf(reader.escalationFrames(verdictan, true)))
  expect(late).toMatchObject([
    { type: 'response.incomplete', sequence_number: 2, response: { id: 'resp_1', ...incomplete, output: [] } },
  ])
  const body = responses.escalation(responses.read({ model: 'm' }), verdictan, start.exchangeId)
  expect(body).toMatchObject({ object: 'response', model: 'm', ...incomplete })
})

test('an escalation is a completed response for a client that shows nothing else', () => {
  const verdictan = { verdict: 'ESCALATE', reason_code: 'review', escalation: { id: 'e', status: 'queued' as const } }
  const frames = dataOf(framesOf(responses.reader({ ...start, textOnly: true }).escalationFrames(verdictan, false)))
  expect(frames.at(-1)).toMatchObject({ type: 'response.completed', verdictan, response: { status: 'completed' } })
  const body = responses.escalation(responses.read({ model: 'm' }), verdictan, start.exchangeId, true)
  const content = [{ type: 'output_text', text: waitingWords(verdictan) }]
  expect(body).toMatchObject({ status: 'completed', incomplete_details: null, output: [{ content }], verdictan })
})

test('the service tier is read of requests and of answers', () => {
  expect(responses.read({ model: 'm', input: '', service_tier: 'flex' }).serviceTier?.name).toBe('flex')
  expect(responses.read({ model: 'm', input: '', service_tier: 1 }).serviceTier?.name).toBe('')
  const answer = { usage: { input_tokens: 1, output_tokens: 1 }, service_tier: 'priority' }
  expect(responses.readAnswer(answer).usage?.serviceTier).toBe('priority')
})
