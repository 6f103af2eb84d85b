/** Streamed answers with text, calls of tools and usage, as each kind of provider writes them. */
import { EventStreamCodec } from '@smithy/eventstream-codec'
import { isObject } from '../../../src/languages/reading/json-value.ts'
import { messageFrames } from '../../fakes/messages.ts'
import { eventFrames } from '../../fakes/responses.ts'
import { type Reply, streamReply } from '../../fakes/upstream.ts'
import type { Wire } from './request-forms.ts'
import { callSignature, patchText, thought, used } from './task.ts'

export interface Wanted {
  id: string
  name: string
  namespace: string | null
  input: object
  /** A tool of free form, which responses alone have. */
  custom: boolean
}

/** Pieces of a text, of a few characters each; characters may be cut in their middle by the split of the bytes. */
const pieces = (text: string): string[] =>
  Array.from({ length: Math.ceil([...text].length / 5) }, (_, at) => [...text].slice(at * 5, at * 5 + 5).join(''))

const data = (values: readonly (object | string)[], ending = '\n'): Buffer =>
  Buffer.from(
    values
      .map((value) => `data: ${typeof value === 'string' ? value : JSON.stringify(value)}${ending}${ending}`)
      .join(''),
  )

const fullName = ({ namespace, name }: Wanted): string => (namespace === null ? name : `${namespace}__${name}`)

function chatStream(parts: readonly string[], calls: readonly Wanted[], asked: unknown): Buffer {
  // OpenAI's own models show no thoughts in this language.
  const thinks = isObject(asked) && !String(asked.model).startsWith('gpt-')
  const base = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1_700_000_000, model: 'm' }
  const chunk = (delta: object, finish_reason: string | null = null) => ({
    ...base,
    choices: [{ index: 0, delta, finish_reason }],
  })
  return Buffer.concat([
    Buffer.from(': keep-alive\n\n'),
    data([
      chunk({ role: 'assistant', content: '' }),
      ...(thinks ? pieces(thought.thinking).map((reasoning_content) => chunk({ reasoning_content })) : []),
      ...parts.map((content) => chunk({ content })),
      ...calls.flatMap((call, index) => [
        chunk({
          tool_calls: [{ index, id: call.id, type: 'function', function: { name: fullName(call), arguments: '' } }],
        }),
        ...pieces(JSON.stringify(call.input)).map((piece) =>
          chunk({ tool_calls: [{ index, function: { arguments: piece } }] }),
        ),
      ]),
      chunk({}, calls.length > 0 ? 'tool_calls' : 'stop'),
      {
        ...base,
        choices: [],
        usage: {
          prompt_tokens: used.input,
          completion_tokens: used.output,
          total_tokens: used.input + used.output,
          prompt_tokens_details: { cached_tokens: used.cached },
        },
      },
      '[DONE]',
    ]),
  ])
}

function responsesStream(parts: readonly string[], calls: readonly Wanted[], asked: unknown, number: number): Buffer {
  const response = (status: string, more: object = {}) => ({
    ...{ id: `resp_${number}`, object: 'response', created_at: 1_700_000_000, status, error: null, output: [] },
    ...{ incomplete_details: null, instructions: null, metadata: {}, parallel_tool_calls: true, temperature: 1 },
    ...{ tool_choice: 'auto', tools: isObject(asked) ? (asked.tools ?? []) : [], top_p: 1, usage: null, model: 'm' },
    ...more,
  })
  const content = { type: 'output_text', annotations: [], logprobs: [], text: parts.join('') }
  const message = { id: `msg_${number}`, type: 'message', status: 'completed', role: 'assistant', content: [content] }
  const place = { output_index: 1, item_id: message.id, content_index: 0 }
  const reasoning = { id: `rs_${number}`, type: 'reasoning', summary: [], encrypted_content: thought.signature }
  const items = calls.map(({ id, name, namespace, input, custom }) => ({
    ...{ id: `${custom ? 'ctc' : 'fc'}_${id}`, type: custom ? 'custom_tool_call' : 'function_call' },
    ...{ status: 'completed', call_id: id, name, ...(namespace !== null && { namespace }) },
    ...(custom ? { input: patchText } : { arguments: JSON.stringify(input) }),
  }))
  return eventFrames([
    { type: 'response.created', response: response('in_progress') },
    { type: 'response.output_item.added', output_index: 0, item: reasoning },
    { type: 'response.output_item.done', output_index: 0, item: reasoning },
    { type: 'response.output_item.added', output_index: 1, item: { ...message, status: 'in_progress', content: [] } },
    { type: 'response.content_part.added', ...place, part: { ...content, text: '' } },
    ...parts.map((delta) => ({ type: 'response.output_text.delta', ...place, delta, logprobs: [] })),
    { type: 'response.output_text.done', ...place, text: content.text, logprobs: [] },
    { type: 'response.content_part.done', ...place, part: content },
    { type: 'response.output_item.done', output_index: 1, item: message },
    ...items.flatMap((item, at) => {
      const where = { output_index: at + 2, item_id: item.id }
      const kind = item.type === 'custom_tool_call' ? 'custom_tool_call_input' : 'function_call_arguments'
      const member = item.type === 'custom_tool_call' ? 'input' : 'arguments'
      const text = String('input' in item ? item.input : item.arguments)
      return [
        {
          type: 'response.output_item.added',
          output_index: at + 2,
          item: { ...item, status: 'in_progress', [member]: '' },
        },
        ...pieces(text).map((delta) => ({ type: `response.${kind}.delta`, ...where, delta })),
        { type: `response.${kind}.done`, ...where, [member]: text },
        { type: 'response.output_item.done', output_index: at + 2, item },
      ]
    }),
    {
      type: 'response.completed',
      response: response('completed', {
        output: [reasoning, message, ...items],
        usage: {
          ...{ input_tokens: used.input, input_tokens_details: { cached_tokens: used.cached } },
          ...{ output_tokens: used.output, output_tokens_details: { reasoning_tokens: 0 } },
          total_tokens: used.input + used.output,
        },
      }),
    },
  ])
}

function messagesStream(parts: readonly string[], calls: readonly Wanted[], number: number): Buffer {
  const block = (index: number, content_block: object, deltas: readonly object[]) => [
    { type: 'content_block_start', index, content_block },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ]
  const usage = {
    input_tokens: used.input - used.cached,
    cache_read_input_tokens: used.cached,
    cache_creation_input_tokens: 0,
  }
  return messageFrames([
    {
      type: 'message_start',
      message: {
        ...{ id: `msg_${number}`, type: 'message', role: 'assistant', model: 'm', content: [] },
        ...{ stop_reason: null, stop_sequence: null, usage: { ...usage, output_tokens: 1 } },
      },
    },
    { type: 'ping' },
    ...block(0, { type: 'thinking', thinking: '', signature: '' }, [
      { type: 'thinking_delta', thinking: thought.thinking },
      { type: 'signature_delta', signature: thought.signature },
    ]),
    ...block(
      1,
      { type: 'text', text: '' },
      parts.map((text) => ({ type: 'text_delta', text })),
    ),
    ...calls.flatMap((call, at) =>
      block(
        at + 2,
        { type: 'tool_use', id: call.id, name: fullName(call), input: {} },
        ['', ...pieces(JSON.stringify(call.input))].map((partial_json) => ({ type: 'input_json_delta', partial_json })),
      ),
    ),
    {
      type: 'message_delta',
      delta: { stop_reason: calls.length > 0 ? 'tool_use' : 'end_turn', stop_sequence: null },
      usage: { output_tokens: used.output },
    },
    { type: 'message_stop' },
  ])
}

function geminiStream(parts: readonly string[], calls: readonly Wanted[]): Buffer {
  const frame = (part: object, finishReason?: string) => ({
    candidates: [{ content: { role: 'model', parts: [part] }, index: 0, ...(finishReason && { finishReason }) }],
    usageMetadata: {
      ...{ promptTokenCount: used.input, cachedContentTokenCount: used.cached, candidatesTokenCount: used.output },
      totalTokenCount: used.input + used.output,
    },
    modelVersion: 'm',
    responseId: 'r1',
  })
  const all = [
    { text: thought.thinking, thought: true },
    ...parts.map((text) => ({ text })),
    ...calls.map((call, at) => ({
      functionCall: { id: call.id, name: fullName(call), args: call.input },
      ...(at === 0 && { thoughtSignature: callSignature }),
    })),
  ]
  return data(
    all.map((part, at) => frame(part, at === all.length - 1 ? 'STOP' : undefined)),
    '\r\n',
  )
}

const codec = new EventStreamCodec(
  (bytes) => Buffer.from(bytes).toString(),
  (text) => Buffer.from(text),
)

function converseStream(parts: readonly string[], calls: readonly Wanted[]): Buffer {
  const events: [string, object][] = [
    ['messageStart', { role: 'assistant' }],
    ...[{ text: thought.thinking }, { signature: thought.signature }].map((reasoningContent): [string, object] => [
      'contentBlockDelta',
      { contentBlockIndex: 0, delta: { reasoningContent } },
    ]),
    ['contentBlockStop', { contentBlockIndex: 0 }],
    ...parts.map((text): [string, object] => ['contentBlockDelta', { contentBlockIndex: 1, delta: { text } }]),
    ['contentBlockStop', { contentBlockIndex: 1 }],
    ...calls.flatMap((call, at): [string, object][] => [
      [
        'contentBlockStart',
        { contentBlockIndex: at + 2, start: { toolUse: { toolUseId: call.id, name: fullName(call) } } },
      ],
      ...pieces(JSON.stringify(call.input)).map((input): [string, object] => [
        'contentBlockDelta',
        { contentBlockIndex: at + 2, delta: { toolUse: { input } } },
      ]),
      ['contentBlockStop', { contentBlockIndex: at + 2 }],
    ]),
    ['messageStop', { stopReason: calls.length > 0 ? 'tool_use' : 'end_turn' }],
    [
      'metadata',
      {
        usage: {
          ...{ inputTokens: used.input - used.cached, cacheReadInputTokens: used.cached, outputTokens: used.output },
          totalTokens: used.input + used.output,
        },
        metrics: { latencyMs: 5 },
      },
    ],
  ]
  return Buffer.concat(
    events.map(([event, payload]) =>
      codec.encode({
        headers: {
          ':event-type': { type: 'string', value: event },
          ':content-type': { type: 'string', value: 'application/json' },
          ':message-type': { type: 'string', value: 'event' },
        },
        body: Buffer.from(JSON.stringify(payload)),
      }),
    ),
  )
}

export function streamOf(
  wire: Wire,
  parts: readonly string[],
  calls: readonly Wanted[],
  asked: unknown,
  number: number,
): Reply {
  switch (wire) {
    case 'chat':
      return streamReply(chatStream(parts, calls, asked))
    case 'responses':
      return streamReply(responsesStream(parts, calls, asked, number))
    case 'messages':
      return streamReply(messagesStream(parts, calls, number))
    case 'gemini':
      return streamReply(geminiStream(parts, calls))
    case 'converse':
      return {
        headers: { 'content-type': 'application/vnd.amazon.eventstream' },
        framing: 'chunked',
        body: converseStream(parts, calls),
      }
  }
}
