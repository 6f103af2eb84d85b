/** The simulator's responses: one message of one text, whole or as the events that the official client puts together. */
import { type JsonObject, objectsOf } from '../../languages/reading/json-value.ts'
import { settingsEcho } from '../../languages/responses/settings-echo.ts'
import type { UpstreamCall } from '../provider.ts'
import {
  contentText,
  created,
  eventStream,
  idOf,
  limitOf,
  namedFrame,
  readMessages,
  type Said,
  type SimulatedModel,
  say,
} from './text.ts'

export function answerResponses(call: UpstreamCall, body: JsonObject, model: SimulatedModel): Response {
  const { texts, lastText } =
    typeof body.input === 'string' ? { texts: [body.input], lastText: body.input } : readMessages(objectsOf(body.input))
  const limit = limitOf(body, ['max_output_tokens'])
  const said = say({ model, limit, lastText, texts: [contentText(body.instructions), ...texts] })
  const settings = settingsEcho(body)
  if (call.stream) return eventStream(frames(call, said, settings))
  return Response.json(responseOf(call, said, said.cut ? 'incomplete' : 'completed', settings))
}

function* frames(call: UpstreamCall, said: Said, settings: JsonObject): Generator<string> {
  let number = 0
  const frame = (type: string, members: object) => namedFrame(type, { sequence_number: number++, ...members })
  const item = messageOf(call, said, 'in_progress')
  const place = { item_id: item.id, output_index: 0, content_index: 0 }
  const response = responseOf(call, said, 'in_progress', settings)
  yield frame('response.created', { response })
  yield frame('response.in_progress', { response })
  yield frame('response.output_item.added', { output_index: 0, item: { ...item, content: [] } })
  yield frame('response.content_part.added', { ...place, part: partOf('') })
  for (const delta of said.words) yield frame('response.output_text.delta', { ...place, delta, logprobs: [] })
  const text = said.words.join('')
  yield frame('response.output_text.done', { ...place, text, logprobs: [] })
  yield frame('response.content_part.done', { ...place, part: partOf(text) })
  const status = said.cut ? 'incomplete' : 'completed'
  yield frame('response.output_item.done', { output_index: 0, item: messageOf(call, said, status) })
  yield frame(`response.${status}`, { response: responseOf(call, said, status, settings) })
}

type Status = 'in_progress' | 'completed' | 'incomplete'

function responseOf(call: UpstreamCall, said: Said, status: Status, settings: JsonObject) {
  const running = status === 'in_progress'
  return {
    id: `resp_simulator_${idOf(call)}`,
    object: 'response',
    created_at: created,
    completed_at: status === 'completed' ? created : null,
    status,
    error: null,
    incomplete_details: status === 'incomplete' ? { reason: 'max_output_tokens' } : null,
    model: call.model,
    output: running ? [] : [messageOf(call, said, status)],
    ...settings,
    usage: running ? null : usageOf(said),
  }
}

const messageOf = (call: UpstreamCall, { words }: Said, status: Status) => ({
  id: `msg_simulator_${idOf(call)}`,
  type: 'message',
  role: 'assistant',
  status,
  content: [partOf(words.join(''))],
})

const partOf = (text: string) => ({ type: 'output_text', text, annotations: [], logprobs: [] })

const usageOf = ({ inputTokens, words }: Said) => ({
  input_tokens: inputTokens,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: words.length,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: inputTokens + words.length,
})
