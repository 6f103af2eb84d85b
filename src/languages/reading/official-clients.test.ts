/** What the official clients make of frames that the gateway writes itself, or writes anew. */
import { describe, expect, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { Failure, waitingWords } from '../../failure.ts'
import { chat } from '../chat/dialect.ts'
import type { Dialect } from '../dialect.ts'
import { messages } from '../messages/dialect.ts'
import { responses } from '../responses/dialect.ts'
import { framesOf, heldBack, openNext, recordings, start } from '../testing/streams.ts'

const answering = (bytes: Uint8Array, type = 'text/event-stream') => ({
  apiKey: 'none',
  maxRetries: 0,
  fetch: async () => new Response(bytes, { headers: { 'content-type': type } }),
})
const input = [{ role: 'user' as const, content: 'hello' }]

/** Reads a stream to its end with the helper of the client that speaks the dialect. */
async function readBy(dialect: Dialect, bytes: Uint8Array): Promise<unknown> {
  if (dialect === messages) {
    const request = { model: 'm', max_tokens: 5, messages: input }
    return await new Anthropic(answering(bytes)).messages.stream(request).finalMessage()
  }
  const client = new OpenAI(answering(bytes))
  if (dialect === responses) return await client.responses.stream({ model: 'm', input: 'hello' }).finalResponse()
  return await client.chat.completions.stream({ model: 'm', messages: input }).finalChatCompletion()
}

const sse = (...events: readonly { type: string; [member: string]: unknown }[]) =>
  Buffer.from(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''))

/** A provider's stream up to its first text. */
const beginnings: readonly [Dialect, Buffer][] = [
  [
    chat,
    Buffer.from(
      'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"so far"},"finish_reason":null}]}\n\n',
    ),
  ],
  [
    responses,
    sse(
      { type: 'response.created', sequence_number: 0, response: { id: 'resp_1', object: 'response', output: [] } },
      {
        type: 'response.output_item.added',
        sequence_number: 1,
        output_index: 0,
        item: { id: 'msg_1', type: 'message', role: 'assistant', status: 'in_progress', content: [] },
      },
      {
        type: 'response.content_part.added',
        sequence_number: 2,
        item_id: 'msg_1',
        output_index: 0,
        content_index: 0,
        part: { type: 'output_text', text: '', annotations: [] },
      },
      {
        type: 'response.output_text.delta',
        sequence_number: 3,
        item_id: 'msg_1',
        output_index: 0,
        content_index: 0,
        delta: 'so far',
      },
    ),
  ],
  [
    messages,
    sse(
      {
        type: 'message_start',
        message: {
          id: 'msg_1',
          type: 'message',
          role: 'assistant',
          content: [],
          usage: { input_tokens: 1, output_tokens: 1 },
        },
      },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'so far' } },
    ),
  ],
]

const verdictan = { verdict: 'ESCALATE', reason_code: 'review', escalation: { id: 'e', status: 'queued' as const } }
const blocked = new Failure('content_policy_violation', { verdictan: { verdict: 'BLOCK', reason_code: 'terms' } })

const waiting: Record<string, object> = {
  chat: { choices: [{ finish_reason: 'content_filter' }] },
  responses: {
    status: 'incomplete',
    incomplete_details: { reason: 'content_filter' },
    verdictan,
  },
  messages: { stop_reason: 'refusal' },
}

for (const [dialect, beginning] of beginnings) {
  const begun = () => {
    const reader = dialect.reader(start)
    for (const frame of framesOf(beginning)) openNext(reader, frame)
    return reader
  }

  test(`${dialect.family}: an escalation is read, from the start and after text`, async () => {
    const fresh = dialect.reader(start).escalationFrames(verdictan, false)
    expect(await readBy(dialect, fresh)).toMatchObject(waiting[dialect.family] ?? {})
    const late = Buffer.concat([beginning, begun().escalationFrames(verdictan, true)])
    expect(await readBy(dialect, late)).toMatchObject(waiting[dialect.family] ?? {})
  })

  test(`${dialect.family}: a block raises an error with its code`, async () => {
    const bytes = Buffer.concat([beginning, begun().errorFrames(blocked, 'request-1')])
    const error = await readBy(dialect, bytes).catch((thrown: unknown) => thrown)
    if (dialect === messages) {
      expect(error).toBeInstanceOf(Anthropic.APIError)
      expect(error).toMatchObject({
        error: { error: { code: 'content_policy_violation' }, verdictan: { verdict: 'BLOCK' } },
      })
    } else {
      expect(error).toBeInstanceOf(OpenAI.APIError)
      expect(error).toMatchObject({ code: 'content_policy_violation', type: 'invalid_request_error' })
    }
  })
}

test('whole escalations are read as answers without content, and of responses with words to a person', async () => {
  const whole = (dialect: Dialect) => {
    const body = dialect.escalation(dialect.read({ model: 'm' }), verdictan, start.exchangeId)
    return answering(Buffer.from(JSON.stringify(body)), 'application/json')
  }
  const completion = await new OpenAI(whole(chat)).chat.completions.create({ model: 'm', messages: input })
  expect(completion.choices[0]?.message.content).toBeNull()
  const response = await new OpenAI(whole(responses)).responses.create({ model: 'm', input: 'hello' })
  expect([response.status, response.output_text]).toEqual(['incomplete', waitingWords(verdictan)])
  const request = { model: 'm', max_tokens: 5, messages: input }
  const message = await new Anthropic(whole(messages)).messages.create(request)
  expect([message.content, message.stop_reason]).toEqual([[], 'refusal'])
})

const recorded: readonly [Dialect, string][] = [
  [chat, 'openai-text.chunks.txt'],
  [responses, 'openai-reasoning-encrypted-content.1.chunks.txt'],
  [responses, 'openai-web-search-tool.1.chunks.txt'],
  [responses, 'openai-phase.1.chunks.txt'],
  [messages, 'anthropic-text.chunks.txt'],
  [messages, 'anthropic-json-tool.1.chunks.txt'],
  [messages, 'anthropic-clear-thinking.1.chunks.txt'],
]
const all = [...recordings('openai-chat'), ...recordings('openai-responses'), ...recordings('anthropic-messages')]

describe('recorded streams', () => {
  for (const [dialect, name] of recorded) {
    test(`${name}: with text held back and let go, the client gathers the same answer`, async () => {
      const bytes = all.find((recording) => recording.name === name)?.bytes ?? Buffer.alloc(0)
      const passed = heldBack(dialect, framesOf(bytes), () => 9)
      expect(Buffer.concat(passed.map((frame) => frame.bytes)).equals(bytes)).toBe(false)
      const read = await readBy(dialect, Buffer.concat(passed.map((frame) => frame.bytes)))
      expect(read).toEqual(await readBy(dialect, bytes))
    })
  }
})

test('the official client has a name once that came with every delta of its call', async () => {
  const chunk = (delta: object, finish_reason: string | null = null) => {
    const choices = [{ index: 0, delta, finish_reason }]
    return `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices })}\n\n`
  }
  const part = (text: string) =>
    chunk({ tool_calls: [{ index: 0, id: 't', type: 'function', function: { name: 'look', arguments: text } }] })
  const came = `${chunk({ role: 'assistant', content: null })}${part('')}${part('{"a":')}${part('1}')}${chunk({}, 'tool_calls')}data: [DONE]\n\n`
  const reader = chat.reader(start)
  const left = framesOf(Buffer.from(came)).map((frame) => openNext(reader, frame)?.bytes() ?? frame.bytes)
  expect(
    Buffer.concat(left)
      .toString()
      .match(/"name"/g),
  ).toHaveLength(1)
  const called = { name: 'look', arguments: '{"a":1}' }
  expect(await readBy(chat, Buffer.concat(left))).toMatchObject({
    choices: [{ message: { tool_calls: [{ id: 't', function: called }] } }],
  })
})
