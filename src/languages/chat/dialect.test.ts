import { expect, test } from 'bun:test'
import { Failure } from '../../failure.ts'
import { completions } from '../completions/dialect.ts'
import { messages } from '../messages/dialect.ts'
import { responses } from '../responses/dialect.ts'
import { dataOf, factsOf, framesOf, openNext, receivedFrom, start } from '../testing/streams.ts'
import { chat } from './dialect.ts'

test('chat.read takes model, stream and the length of all text', () => {
  const messages = [
    { role: 'user', content: 'abcd' },
    { role: 'user', content: [{ type: 'text', text: 'efgh' }, { type: 'image_url' }] },
    { role: 'assistant', content: null, tool_calls: [{ function: { name: 'f', arguments: '{"a":1}' } }] },
  ]
  expect(chat.read({ model: 'm', stream: true, messages })).toMatchObject({
    model: 'm',
    stream: true,
    inputEstimate: 4,
  })
  expect(chat.read({ model: 'm' })).toMatchObject({ model: 'm', stream: false, inputEstimate: 0 })
  expect(() => chat.read({ model: 7 })).toThrow(Failure)
})

const frame = (data: string) => chat.reader(start).frame({ event: null, data })

test('chat.readFrame tells text, usage, the provider’s error and the end', () => {
  const delta = { content: 'ab', reasoning_content: 'c', tool_calls: [{ function: { arguments: '{}' } }] }
  expect(frame(JSON.stringify({ choices: [{ delta }], usage: null }))).toEqual({
    terminal: false,
    textLength: 5,
    usage: null,
    error: null,
    ours: false,
  })
  expect(frame('{"choices":[],"usage":{"prompt_tokens":2,"completion_tokens":1}}').usage).toEqual({
    inputTokens: 2,
    outputTokens: 1,
    cachedInputTokens: null,
    cacheWriteTokens: null,
    reasoningTokens: null,
  })
  expect(frame('{"error":{"type":"server_error"}}').error).toBe('server_error')
  expect(frame('[DONE]').terminal).toBe(true)
  for (const data of ['', '{"choices":[null,{"delta":3}]}']) {
    expect(frame(data)).toMatchObject({ terminal: false, textLength: 0, error: null })
  }
  // What nobody knows is text.
  for (const data of ['not json', '7', 'null', '[]']) {
    expect(frame(data)).toMatchObject({ terminal: false, textLength: data.length, error: null })
  }
})

test('chat.errorFrames say the envelope and end the stream', () => {
  const text = new TextDecoder().decode(
    chat.reader(start).errorFrames(new Failure('upstream_provider_error'), 'request-1'),
  )
  const [first, last] = text.split('\n\n')
  expect(JSON.parse(first?.slice(6) ?? '')).toMatchObject({
    error: { type: 'server_error', param: null, code: 'upstream_provider_error' },
    request_id: 'request-1',
  })
  expect(last).toBe('data: [DONE]')
})

test('chat.read finds limits, input beyond the body, and members without a bound', () => {
  const read = (more: object) => chat.read({ model: 'm', ...more })
  expect(read({ max_tokens: 3, max_completion_tokens: 5, n: 2, session_id: 's' })).toMatchObject({
    outputLimit: 5,
    choices: 2,
    sessionId: 's',
    beyondBody: false,
    unbounded: null,
  })
  expect(read({ max_tokens: -1, max_completion_tokens: 5 }).outputLimit).toBeNull()
  expect(read({ max_tokens: 0, max_completion_tokens: 5 }).outputLimit).toBeNull()
  const part = (content: object) => ({ messages: [{ role: 'user', content: [content] }] })
  expect(read(part({ type: 'image_url', image_url: { url: 'https://example.com' } })).beyondBody).toBe(true)
  expect(read(part({ type: 'file', file: { file_id: 'f' } })).beyondBody).toBe(true)
  expect(read({ messages: [{ role: 'assistant', audio: { id: 'a' } }] }).beyondBody).toBe(true)
  expect(read({ web_search_options: {} }).unbounded).toBe('web_search_options')
  expect(read({ tools: [{ type: 'browser' }] }).unbounded).toBe('tools')
  for (const [param, value] of [
    ['n', 0],
    ['max_tokens', '5'],
    ['max_completion_tokens', 1.5],
    ['response_format', 'json'],
    ['session_id', 5],
  ] as const) {
    expect(() => read({ [param]: value })).toThrow(expect.objectContaining({ code: 'invalid_parameter', param }))
  }
})

test('chat.requestText returns and replaces every text, also names, but not encoded bytes', () => {
  const body = {
    messages: [
      { role: 'system', content: 'one', name: 'name' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'two', unknown: { deep: ['three'] } },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA', detail: 'low' } },
          { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
        ],
      },
      {
        role: 'assistant',
        content: null,
        refusal: 'four',
        reasoning_content: 'five',
        tool_calls: [
          { id: 'c', type: 'function', function: { name: 'f', arguments: '{"a":"six"}' } },
          { id: 'd', type: 'custom', custom: { name: 'g', input: 'seven' } },
        ],
      },
      { role: 'tool', tool_call_id: 'c', content: 'eight' },
    ],
    prediction: { type: 'content', content: 'nine' },
    tools: [{ type: 'function', function: { name: 'f', description: 'ten', parameters: { enum: ['kept'] } } }],
    tool_choice: { type: 'function', function: { name: 'f' } },
  }
  const slots = chat.requestText(body)
  expect(slots.map(({ member, kind, role, text }) => [member, kind, role, text])).toEqual([
    ['messages', 'content', 'system', 'one'],
    ['messages', 'name', 'system', 'name'],
    ['messages', 'content', 'user', 'two'],
    ['messages', 'content', 'user', 'three'],
    ['messages', 'refusal', 'assistant', 'four'],
    ['messages', 'reasoning', 'assistant', 'five'],
    ['messages', 'name', 'assistant', 'f'],
    ['messages', 'tool_arguments', 'assistant', '{"a":"six"}'],
    ['messages', 'name', 'assistant', 'g'],
    ['messages', 'content', 'assistant', 'seven'],
    ['messages', 'tool_result', 'tool', 'eight'],
    ['prediction', 'content', 'assistant', 'nine'],
    ['tools', 'name', 'system', 'f'],
    ['tools', 'content', 'system', 'ten'],
    ['tools', 'content', 'system', 'kept'],
    ['tool_choice', 'name', 'system', 'f'],
  ])
  for (const slot of slots) slot.replace('X')
  expect(new Set(chat.requestText(body).map(({ text }) => text))).toEqual(new Set(['X']))
})

test('finds token text wherever a list of whole numbers replaces a text', () => {
  const user = (content: unknown) => ({ messages: [{ role: 'user', content }] })
  for (const [dialect, body, member] of [
    [chat, { prompt_token_ids: [1, 2] }, 'prompt_token_ids'],
    [chat, { input_ids: [[1], [2]] }, 'input_ids'],
    [chat, { new_member: [1, 2] }, 'new_member'],
    [chat, { new_member: { prompt_token_ids: [1] } }, 'new_member'],
    [chat, user([1, 2]), 'messages'],
    [chat, user([{ type: 'text', text: [1, 2] }]), 'messages'],
    [messages, user([1]), 'messages'],
    [responses, { input: [1, 2] }, 'input'],
    [responses, { input: [{ role: 'user', content: [1, 2] }] }, 'input'],
    [completions, { prompt: 'a', prompt_token_ids: [1] }, 'prompt_token_ids'],
    [completions, { prompt: ['a', 1] }, 'prompt'],
    [chat, { stop_token_ids: [1], logit_bias: { 5: 1 }, tools: [{ parameters: { enum: [1, 2] } }] }, null],
    [chat, user([{ type: 'text', text: 'a' }]), null],
    [messages, user([{ type: 'tool_use', input: { ids: [1, 2] } }]), null],
    [responses, { input: [{ type: 'message', content: [{ text: 'a', logprobs: [{ bytes: [97] }] }] }] }, null],
  ] as const) {
    expect([body, dialect.tokenInput?.(body)]).toEqual([body, member])
  }
})

test('chat.answerText replaces a text together with its log probabilities', () => {
  const body = {
    choices: [
      { index: 0, message: { role: 'assistant', content: 'secret' }, logprobs: { content: [{ token: 'secret' }] } },
    ],
    citations: ['https://example.com/secret'],
  }
  const slots = chat.answerText(body)
  expect(slots.map(({ member, text }) => [member, text])).toEqual([
    ['choices', 'secret'],
    ['citations', 'https://example.com/secret'],
  ])
  for (const slot of slots) slot.replace('[X]')
  expect(JSON.stringify(body)).not.toContain('secret')
})

const chunk = (choices: readonly object[], more: object = {}) =>
  `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 5, model: 'told-1', choices, ...more })}\n\n`
const choice = (index: number, delta: object, more: object = {}) => ({ index, delta, finish_reason: null, ...more })
const streamOf = (...chunks: readonly string[]) => framesOf(Buffer.from(`${chunks.join('')}data: [DONE]\n\n`))

test('marks only the usage frame that the gateway asked for', () => {
  const usage = { prompt_tokens: 1, completion_tokens: 2 }
  const frames = streamOf(
    chunk([], { prompt_filter_results: [] }),
    chunk([choice(0, { content: 'a' })]),
    chunk([choice(0, {}, { finish_reason: 'stop' })], { usage }),
    chunk([], { usage }),
  )
  const ours = (usageAdded: boolean) => factsOf(chat, frames, { ...start, usageAdded }).map((facts) => facts.ours)
  expect(ours(true)).toEqual([false, false, false, true, false])
  expect(ours(false)).toEqual([false, false, false, false, false])
})

test('a channel is a field of a choice and ends with its finish_reason', () => {
  const calls = (index: number, text: string) => ({ tool_calls: [{ index, function: { arguments: text } }] })
  const frames = streamOf(
    chunk([choice(0, { role: 'assistant', content: 'a' }), choice(1, { reasoning_content: 'r' })]),
    chunk([choice(0, { content: 'b', ...calls(1, '{"x"') }, { logprobs: { content: [{ token: 'b' }] } })]),
    chunk([choice(0, { ...calls(1, ':1}'), novelty: 'n', audio: { data: 'AAAA', transcript: 't' } })]),
    chunk([choice(0, {}, { finish_reason: 'tool_calls' })]),
    chunk([choice(1, { content: 'late' }, { finish_reason: 'stop' })]),
  )
  expect(receivedFrom(chat, frames)).toEqual({
    channels: {
      '0/content': 'ab',
      '1/reasoning_content': 'r',
      '0/tool_calls[1]/function/arguments': '{"x":1}',
      '0/novelty': 'n',
      '0/audio/transcript': 't',
      '1/content': 'late',
    },
    kinds: {
      '0/content': 'content',
      '1/reasoning_content': 'reasoning',
      '0/tool_calls[1]/function/arguments': 'tool_arguments',
      '0/novelty': 'content',
      '0/audio/transcript': 'content',
      '1/content': 'content',
    },
    wholes: [],
  })
  const reader = chat.reader(start)
  const opened = frames.map((frame) => openNext(reader, frame))
  expect(opened.map((frame) => frame?.ends.length)).toEqual([0, 0, 0, 4, 2, 0])
  expect(Buffer.from(opened[1]?.bytes() ?? []).toString()).not.toContain('token')
  expect(dataOf(framesOf(reader.delta('0/tool_calls[1]/function/arguments', 'x')))).toEqual([
    {
      id: 'chatcmpl-1',
      object: 'chat.completion.chunk',
      created: 5,
      model: 'told-1',
      choices: [choice(0, calls(1, 'x'))],
    },
  ])
})

test('joins typed content parts to one text for each type', () => {
  const part = (type: string, text: string) => ({ type, [type]: text })
  const frames = streamOf(
    chunk([choice(0, { content: [part('thinking', 'h')] })]),
    chunk([choice(0, { content: [part('text', 'a'), part('text', 'b'), { type: 'reference', title: 'alone' }] })]),
    chunk([choice(0, { content: [part('text', 'c')] })]),
  )
  const { channels, wholes } = receivedFrom(chat, frames)
  expect(channels).toEqual({ '0/content~thinking/thinking': 'h', '0/content': 'abc' })
  expect(wholes).toEqual(['0/content#2/title=alone'])
  const reader = chat.reader(start)
  for (const frame of frames) openNext(reader, frame)
  const [added] = dataOf(framesOf(reader.delta('0/content', 'x')))
  expect(added).toMatchObject({ choices: [choice(0, { content: [part('text', 'x')] })] })
})

test('reads a frame that is not JSON as one text', () => {
  const reader = chat.reader(start)
  const [frame] = framesOf(Buffer.from('id: 7\ndata: plain words\n\n'))
  const opened = frame === undefined ? null : openNext(reader, frame)
  opened?.pieces[0]?.replace('X')
  expect(Buffer.from(opened?.bytes() ?? []).toString()).toBe('id: 7\ndata: X\n\n')
})

test('an escalation is a chunk without content and the end', () => {
  const escalation = { id: '0192f7a4-5b1e-7d7a-9a55-0c1d2e3f4a5b', status: 'queued' as const }
  const verdictan = { verdict: 'ESCALATE', reason_code: 'review', escalation }
  const words = expect.stringContaining(
    `reviewer has to decide about this request, in the inbox of the Gatehouse console or with: gatehouse escalation claim ${escalation.id}.`,
  )
  const frames = framesOf(chat.reader(start).escalationFrames(verdictan, false))
  expect(frames.at(-1)?.data).toBe('[DONE]')
  expect(dataOf(frames)).toMatchObject([
    {
      model: 'asked-for',
      choices: [{ index: 0, delta: { content: null, refusal: words }, finish_reason: 'content_filter' }],
      verdictan,
    },
  ])
  const body = chat.escalation(chat.read({ model: 'm' }), verdictan, start.exchangeId)
  expect(body).toMatchObject({
    choices: [{ message: { content: null, refusal: words }, finish_reason: 'content_filter' }],
    verdictan,
  })
  // For a client that shows a person nothing else.
  const shown = chat.reader({ ...start, textOnly: true }).escalationFrames(verdictan, false)
  expect(dataOf(framesOf(shown))).toMatchObject([
    { choices: [{ delta: { content: words }, finish_reason: 'stop' }], verdictan },
  ])
  expect(chat.escalation(chat.read({ model: 'm' }), verdictan, start.exchangeId, true)).toMatchObject({
    choices: [{ message: { content: words, refusal: null }, finish_reason: 'stop' }],
    verdictan,
  })
})

test('a finish reason of "null" or "" ends no text', () => {
  for (const [finish_reason, ends] of [
    ['', 0],
    ['null', 0],
    [null, 0],
    ['stop', 1],
  ] as const) {
    const [frame] = framesOf(Buffer.from(chunk([choice(0, { content: 'a' }, { finish_reason })])))
    expect(frame && openNext(chat.reader(start), frame)?.ends).toHaveLength(ends)
  }
})

test('a frame whose text a policy changed keeps the numbers that a double cannot hold', () => {
  const data = (text: string) => `{"choices":[{"index":0,"delta":{"content":"${text}"}}],"seed":12345678901234567890}`
  const [frame] = framesOf(Buffer.from(`data: ${data('secret')}\n\n`))
  const opened = frame === undefined ? null : openNext(chat.reader(start), frame)
  for (const piece of opened?.pieces ?? []) piece.replace('[SECRET]')
  expect(Buffer.from(opened?.bytes() ?? []).toString()).toBe(`data: ${data('[SECRET]')}\n\n`)
})
