/**
 * The items of a response's output, as answers and streams write them. A signature stands in a reasoning item's
 * `encrypted_content`, with whose it is where it is not this language's own (`languages/translation/signature.ts`).
 */

import { countsOf } from '../../chat/translation/answers.ts'
import { callSignatureMember } from '../../chat/translation/reasoning.ts'
import type { Usage } from '../../dialect.ts'
import type { FinishReason, NeutralCitation, NeutralPart, NeutralToolCall } from '../../neutral.ts'
import type { JsonObject } from '../../reading/json-value.ts'
import { plainId } from '../../reading/request-fields.ts'
import { type Opaque, writtenOpaque } from '../../translation/signature.ts'
import type { AnswerStart } from '../../translation-language.ts'
import { ownResponse } from '../answer.ts'
import { customInput, type StandIn } from './tools.ts'

export type ItemStatus = 'in_progress' | 'completed' | 'incomplete'

/** An id for the item at this place of the output. */
export const itemId = (prefix: 'msg' | 'rs' | 'fc' | 'ctc', exchangeId: string, index: number): string =>
  `${prefix}_${plainId(exchangeId)}${String(index).padStart(4, '0')}`

export const messageItem = (id: string, content: readonly JsonObject[], status: ItemStatus): JsonObject => ({
  id,
  type: 'message',
  status,
  role: 'assistant',
  content,
})

export const textPart = (text: string, annotations: readonly JsonObject[]): JsonObject => ({
  type: 'output_text',
  text,
  annotations,
  logprobs: [],
})

export const refusalPart = (refusal: string): JsonObject => ({ type: 'refusal', refusal })

export function reasoningItem(id: string, text: string, opaque: Opaque): JsonObject {
  const encrypted = writtenOpaque(opaque, 'responses')
  return {
    id,
    type: 'reasoning',
    summary: text === '' ? [] : [{ type: 'summary_text', text }],
    ...(encrypted !== null && { encrypted_content: encrypted }),
  }
}

interface Call extends Pick<NeutralToolCall, 'id' | 'name' | 'arguments' | 'signature'> {
  /** The input of a custom tool, if it is known apart from the arguments. */
  input?: string
}

/** A call of a function, or of the caller's own tool that the function stands for. */
export function callItem(id: string, call: Call, status: ItemStatus, standIn: StandIn | null): JsonObject {
  const isCustom = standIn?.isCustom === true
  return {
    id,
    type: isCustom ? 'custom_tool_call' : 'function_call',
    status,
    call_id: call.id,
    name: standIn?.name ?? call.name,
    ...(standIn !== null && standIn.namespace !== null && { namespace: standIn.namespace }),
    ...(isCustom ? { input: call.input ?? customInput(call.arguments) } : { arguments: call.arguments }),
    ...(call.signature !== undefined && callSignatureMember(call.signature)),
  }
}

export const callPrefix = (standIn: StandIn | null): 'fc' | 'ctc' => (standIn?.isCustom === true ? 'ctc' : 'fc')

/** A citation of a text, in the language's own form where it came in that. */
export function annotationOf({ original, url, title, citedText }: NeutralCitation, length: number): JsonObject {
  if (typeof original.type === 'string' && ownAnnotations.has(original.type) && original.url_citation === undefined) {
    return { ...original }
  }
  const range = { start_index: 0, end_index: length }
  if (url !== null) return { type: 'url_citation', url, title: title ?? '', ...range }
  return {
    type: 'document_citation',
    title: title ?? '',
    ...(citedText !== null && { cited_text: citedText }),
    ...range,
  }
}

const ownAnnotations: ReadonlySet<string> = new Set([
  ...['url_citation', 'file_citation', 'container_file_citation', 'file_path'],
])

/** A response in this state, with the settings of its request. */
export function responseBody(
  { model: asked, exchangeId, request }: AnswerStart,
  model: string | null,
  { usage, ...members }: { status?: string; usage: Usage | null } & JsonObject,
): JsonObject {
  const begun = ownResponse(model ?? asked, exchangeId, request)
  const tier = usage?.serviceTier
  return {
    ...begun,
    ...(members.status === 'completed' && { completed_at: Math.floor(Date.now() / 1000) }),
    ...(tier !== undefined && { service_tier: tier === 'standard' ? 'default' : tier }),
    ...members,
    usage: usage === null ? null : writeUsage(usage),
  }
}

/** How a response ends that finished so. */
export function endOf(finish: FinishReason, parts: readonly Pick<NeutralPart, 'kind'>[]): JsonObject {
  const unworded = finish === 'refusal' && !parts.some(({ kind }) => kind === 'refusal')
  if (finish === 'length') return incomplete('max_output_tokens')
  return finish === 'content_filter' || unworded ? incomplete('content_filter') : { status: 'completed' }
}

/** The items of an answer that was cut off: the last one is not whole, a call's arguments may be no JSON. */
export const lastCutOff = (output: readonly JsonObject[]): readonly JsonObject[] =>
  output.map((item, index) =>
    index === output.length - 1 && item.status === 'completed' ? { ...item, status: 'incomplete' } : item,
  )

const incomplete = (reason: string): JsonObject => ({ status: 'incomplete', incomplete_details: { reason } })

export function writeUsage(usage: Usage): JsonObject {
  const [input, output] = [usage.inputTokens ?? 0, usage.outputTokens ?? 0]
  return {
    input_tokens: input,
    input_tokens_details: countsOf({
      cached_tokens: usage.cachedInputTokens ?? 0,
      cache_write_tokens: usage.cacheWriteTokens,
      cache_write_1h_tokens: usage.cacheWriteHourTokens,
    }),
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens ?? 0 },
    total_tokens: input + output,
  }
}
