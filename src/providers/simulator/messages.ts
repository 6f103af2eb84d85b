/** The simulator's messages: one text block, whole or as the events that the official client puts together. */
import type { JsonObject } from '../../languages/reading/json-value.ts'
import type { UpstreamCall } from '../provider.ts'
import {
  contentText,
  countWords,
  eventStream,
  idOf,
  limitOf,
  namedFrame,
  readMessages,
  type Said,
  type SimulatedModel,
  say,
} from './text.ts'

export function answerMessages(call: UpstreamCall, body: JsonObject, model: SimulatedModel): Response {
  const { texts, lastText } = readMessages(body.messages)
  const limit = limitOf(body, ['max_tokens'])
  const said = say({ model, limit, lastText, texts: [contentText(body.system), ...texts] })
  if (call.stream) return eventStream(frames(call, said))
  return Response.json({
    ...messageOf(call),
    content: [{ type: 'text', text: said.words.join('') }],
    stop_reason: stopOf(said),
    usage: usageOf(said, said.words.length),
  })
}

/** The count that `usage.input_tokens` of the answer would have. */
export function countMessages(body: JsonObject): Response {
  const { texts } = readMessages(body.messages)
  return Response.json({ input_tokens: countWords([contentText(body.system), ...texts]) })
}

function* frames(call: UpstreamCall, said: Said): Generator<string> {
  yield namedFrame('message_start', { message: { ...messageOf(call), usage: usageOf(said, 0) } })
  yield namedFrame('content_block_start', { index: 0, content_block: { type: 'text', text: '' } })
  yield namedFrame('ping')
  for (const text of said.words) {
    yield namedFrame('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })
  }
  yield namedFrame('content_block_stop', { index: 0 })
  const delta = { stop_reason: stopOf(said), stop_sequence: null }
  yield namedFrame('message_delta', { delta, usage: { output_tokens: said.words.length } })
  yield namedFrame('message_stop')
}

const messageOf = (call: UpstreamCall) => ({
  id: `msg_simulator_${idOf(call)}`,
  type: 'message',
  role: 'assistant',
  model: call.model,
  content: [],
  stop_reason: null,
  stop_sequence: null,
})

const stopOf = ({ cut }: Said): 'end_turn' | 'max_tokens' => (cut ? 'max_tokens' : 'end_turn')

const usageOf = ({ inputTokens }: Said, outputTokens: number) => ({
  input_tokens: inputTokens,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: outputTokens,
})
