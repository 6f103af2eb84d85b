/** Reads and writes whole chat completions. */

import type { Usage } from '../../dialect.ts'
import type { FinishReason, NeutralAnswer, NeutralPart, NeutralToolCall } from '../../neutral.ts'
import { isObject, type JsonObject, objectsOf, textOf } from '../../reading/json-value.ts'
import { plainId, startedAt } from '../../reading/request-fields.ts'
import { finishWith } from '../../translation/finish.ts'
import { ownOpaque } from '../../translation/signature.ts'
import { failed, unusable } from '../../translation/translation-errors.ts'
import type { AnswerStart } from '../../translation-language.ts'
import { readUsage } from '../answer.ts'
import { annotationOf, annotationsIn } from './annotations.ts'
import { callSignatureIn, callSignatureMember, readThoughts, thoughtMembers } from './reasoning.ts'
import { type SpokenPart, spokenParts } from './spoken-parts.ts'

export function readChatAnswer(body: unknown): NeutralAnswer {
  const choice = isObject(body) ? objectsOf(body.choices)[0] : undefined
  if (!isObject(body) || choice === undefined || !isObject(choice.message)) {
    throw unusable("The provider's answer is no chat completion")
  }
  const parts = partsOf(choice.message)
  return {
    id: textOf(body.id),
    model: textOf(body.model),
    parts,
    finish: finishOf(textOf(choice.finish_reason), parts),
    stopSequence: null,
    usage: readUsage(body.usage, body.service_tier),
  }
}

/**
 * The gateway never asks a provider in the form from before tools existed: a call in that form would be lost without
 * notice.
 */
export function refuseRetiredCall({ function_call: call }: JsonObject): void {
  if (isObject(call) && (call.name || call.arguments))
    throw unusable("The provider's answer calls no tool it was given")
}

function partsOf(message: JsonObject): NeutralPart[] {
  refuseRetiredCall(message)
  const at = ''
  const parts: NeutralPart[] = readThoughts(message, at, ownOpaque)
  const citations = annotationsIn(message.annotations)
  for (const { kind, text } of joinedParts(spokenParts(message.content))) {
    if (kind === 'thought') parts.push({ kind, text, ...ownOpaque(null, 'chat', false), at })
    else if (kind === 'refusal') parts.push({ kind, text, at })
    // The ranges of citations count through the whole text, most often of one part.
    else parts.push({ kind, text, ...(citations.length > 0 && { citations: citations.splice(0) }), at })
  }
  const refusal = textOf(message.refusal)
  if (refusal !== null && refusal !== '') parts.push({ kind: 'refusal', text: refusal, at })
  for (const call of objectsOf(message.tool_calls)) parts.push(callOf(call))
  return parts
}

/** Parts of one kind that follow each other are one part, as in a stream. */
function joinedParts(parts: readonly SpokenPart[]): SpokenPart[] {
  const joined: SpokenPart[] = []
  for (const part of parts) {
    const last = joined.at(-1)
    if (last?.kind === part.kind) last.text += part.text
    else joined.push({ ...part })
  }
  return joined
}

function callOf(call: JsonObject): NeutralToolCall {
  if (!isObject(call.function)) throw unusable("The provider's answer calls a tool that is no function")
  const { name, arguments: text } = call.function
  const signature = callSignatureIn(call)
  return {
    kind: 'tool_call',
    id: textOf(call.id) ?? '',
    name: textOf(name) ?? '',
    arguments: textOf(text) ?? '',
    ...(signature !== null && { signature: { text: signature, language: 'chat' } }),
    at: '',
  }
}

const finishes: ReadonlyMap<string | null, FinishReason> = new Map([
  ['stop', 'stop'],
  ['length', 'length'],
  ['tool_calls', 'tool_calls'],
  ['function_call', 'tool_calls'],
  ['content_filter', 'content_filter'],
  ['error', 'error'],
])

/** A model that refuses says so in `refusal`, and stops. */
export function finishOf(reason: string | null, parts: readonly Pick<NeutralPart, 'kind'>[]): FinishReason {
  const finish = finishWith(
    finishes.get(reason) ?? 'stop',
    parts.some(({ kind }) => kind === 'tool_call'),
  )
  return finish === 'stop' && parts.some(({ kind }) => kind === 'refusal') ? 'refusal' : finish
}

export function writeChatAnswer(answer: NeutralAnswer, { model, exchangeId }: AnswerStart): JsonObject {
  if (answer.finish === 'error') throw unusable(failed.message)
  return {
    id: `chatcmpl-${plainId(exchangeId)}`,
    object: 'chat.completion',
    created: startedAt(exchangeId),
    model: answer.model ?? model,
    choices: [
      {
        index: 0,
        message: messageOf(answer.parts),
        logprobs: null,
        finish_reason: reasonOf(answer.finish, answer.parts),
      },
    ],
    ...(answer.usage !== null && { usage: writeUsage(answer.usage) }),
  }
}

/** A refusal without text looks like a filter's refusal here. */
export function reasonOf(finish: FinishReason, parts: readonly Pick<NeutralPart, 'kind'>[]): string {
  if (finish === 'refusal') return parts.some(({ kind }) => kind === 'refusal') ? 'stop' : 'content_filter'
  return finish === 'pause' ? 'stop' : finish
}

function messageOf(parts: readonly NeutralPart[]): JsonObject {
  let content = ''
  const annotations: JsonObject[] = []
  for (const part of parts) {
    if (part.kind !== 'text') continue
    const range = { start: content.length, end: content.length + part.text.length }
    annotations.push(...(part.citations ?? []).map((citation) => annotationOf(citation, range)))
    content += part.text
  }
  const calls = parts.filter((part) => part.kind === 'tool_call')
  const refusal = parts.flatMap((part) => (part.kind === 'refusal' ? part.text : [])).join('')
  const spoke = parts.some(({ kind }) => kind === 'text')
  return {
    role: 'assistant',
    content: spoke ? content : null,
    refusal: refusal === '' ? null : refusal,
    ...thoughtMembers(parts.filter((part) => part.kind === 'thought')),
    ...(annotations.length > 0 && { annotations }),
    ...(calls.length > 0 && { tool_calls: calls.map(writeCall) }),
  }
}

const writeCall = ({ id, name, arguments: text, signature }: NeutralToolCall): JsonObject => ({
  id,
  type: 'function',
  function: { name, arguments: text },
  ...(signature !== undefined && callSignatureMember(signature)),
})

/** The language has no member for cache writes; the gateway's reader knows these. */
export function writeUsage(usage: Usage): JsonObject {
  const [input, output] = [usage.inputTokens ?? 0, usage.outputTokens ?? 0]
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: countsOf({
      cached_tokens: usage.cachedInputTokens,
      cache_write_tokens: usage.cacheWriteTokens,
      cache_write_1h_tokens: usage.cacheWriteHourTokens,
      audio_tokens: usage.audioInputTokens,
    }),
    completion_tokens_details: countsOf({
      reasoning_tokens: usage.reasoningTokens,
      audio_tokens: usage.audioOutputTokens,
    }),
  }
}

/** The counts that were reported. */
export const countsOf = (counts: Readonly<Record<string, number | null | undefined>>): JsonObject =>
  Object.fromEntries(Object.entries(counts).filter(([, count]) => typeof count === 'number'))
