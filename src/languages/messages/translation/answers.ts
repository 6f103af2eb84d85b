/**
 * Whole answers and errors of the messages language, read from Anthropic and written for its callers.
 *
 * - What a refusal says stands in `stop_details.explanation`, which is the language's own place for it.
 * - An answer that failed in the model (`error`) is none, as in every language.
 * - A call that a limit cut off before its arguments were whole is left out; elsewhere such arguments are no answer.
 * - Blocks of tools that Anthropic itself runs are passed over: no translated request asks for one.
 */

import { parseExactObject } from '../../../lib/json/exact-json.ts'
import type { Usage } from '../../dialect.ts'
import type {
  CallSignature,
  FinishReason,
  NeutralAnswer,
  NeutralCitation,
  NeutralError,
  NeutralPart,
  NeutralThought,
} from '../../neutral.ts'
import { isObject, type JsonObject, objectsOf, textOf } from '../../reading/json-value.ts'
import { isAltered } from '../../reading/texts/signed-reasoning.ts'
import { messagesCitation } from '../../translation/citation-locations.ts'
import { finishWith } from '../../translation/finish.ts'
import { markSignature, writtenOpaque } from '../../translation/signature.ts'
import { argumentsText, failed, unusable } from '../../translation/translation-errors.ts'
import type { AnswerStart } from '../../translation-language.ts'
import { errorTypeOf } from '../error.ts'
import { ownMessage, readUsage } from '../texts.ts'
import { citationOf } from './read-parts.ts'
import { isOwnCitation } from './write-parts.ts'

const finishes: ReadonlyMap<string, FinishReason> = new Map([
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['tool_use', 'tool_calls'],
  ['pause_turn', 'pause'],
  ['refusal', 'refusal'],
])

/** If the reason is unknown, the answer is assumed to have ended normally. */
export const finishOf = (stopReason: unknown, called: boolean): FinishReason =>
  stopReason === null || stopReason === undefined
    ? 'error'
    : finishWith(finishes.get(String(stopReason)) ?? 'stop', called && stopReason !== 'stop_sequence')

export function stopReasonOf(finish: FinishReason, stopSequence: string | null): string | null {
  if (finish === 'stop') return stopSequence === null ? 'end_turn' : 'stop_sequence'
  return stopReasons[finish]
}

const stopReasons = {
  length: 'max_tokens',
  tool_calls: 'tool_use',
  refusal: 'refusal',
  content_filter: 'refusal',
  pause: 'pause_turn',
  error: null,
} as const

export function readMessagesAnswer(body: unknown): NeutralAnswer {
  if (!isObject(body) || !Array.isArray(body.content)) {
    throw unusable('The provider sent no message')
  }
  const parts = objectsOf(body.content).flatMap((block, index) => partsOfAnswer(block, `content.${index}`))
  const explanation = explanationOf(body.stop_details)
  if (explanation !== null) parts.push({ kind: 'refusal', text: explanation, at: 'stop_details' })
  return {
    id: textOf(body.id),
    model: textOf(body.model),
    parts,
    finish: finishOf(
      body.stop_reason,
      parts.some(({ kind }) => kind === 'tool_call'),
    ),
    stopSequence: textOf(body.stop_sequence),
    usage: readUsage(body.usage),
  }
}

export const explanationOf = (details: unknown): string | null =>
  isObject(details) && details.type === 'refusal' ? textOf(details.explanation) : null

function partsOfAnswer(block: JsonObject, at: string): NeutralPart[] {
  const none = { text: '', signature: null, redacted: null, language: 'messages', at } as const
  switch (block.type) {
    case 'text': {
      const citations = objectsOf(block.citations).map(citationOf)
      return [{ kind: 'text', text: textOf(block.text) ?? '', ...(citations.length > 0 && { citations }), at }]
    }
    case 'thinking': {
      const signature = textOf(block.signature)
      const isSigned = signature !== null && !isAltered(signature)
      return [{ ...none, kind: 'thought', text: textOf(block.thinking) ?? '', signature: isSigned ? signature : null }]
    }
    case 'redacted_thinking':
      return [{ ...none, kind: 'thought', redacted: textOf(block.data) ?? '' }]
    case 'tool_use': {
      const input = argumentsText(block.input)
      return [{ kind: 'tool_call', id: textOf(block.id) ?? '', name: textOf(block.name) ?? '', arguments: input, at }]
    }
    default:
      return []
  }
}

export function writeMessagesAnswer(answer: NeutralAnswer, asked: AnswerStart): JsonObject {
  const { parts, finish, stopSequence, usage } = answer
  if (finish === 'error') throw unusable(failed.message)
  const refusal = parts.flatMap((part) => (part.kind === 'refusal' ? part.text : [])).join('')
  return {
    ...beginOf(answer, asked),
    content: parts.flatMap((part) => blocksOfAnswer(part, finish)),
    stop_reason: stopReasonOf(finish, stopSequence),
    stop_sequence: stopSequence,
    ...(refusal !== '' && { stop_details: refusalDetails(refusal) }),
    usage: usageOf(usage),
  }
}

/**
 * A message that has just begun. Its input is not known yet, so the count is zero: clients need a number, and the
 * gateway ignores this one.
 */
export function beginOf({ id, model }: Pick<NeutralAnswer, 'id' | 'model'>, asked: AnswerStart): JsonObject {
  const own = ownMessage(model ?? asked.model, asked.exchangeId)
  return id === null ? own : { ...own, id }
}

export const refusalDetails = (explanation: string): JsonObject => ({ type: 'refusal', category: null, explanation })

function blocksOfAnswer(part: NeutralPart, finish: FinishReason): JsonObject[] {
  switch (part.kind) {
    case 'text': {
      const citations = (part.citations ?? []).flatMap((citation) => writtenCitation(citation) ?? [])
      return [{ type: 'text', text: part.text, ...(citations.length > 0 && { citations }) }]
    }
    case 'thought':
      return [thoughtBlock(part)]
    case 'tool_call': {
      const { id, name, signature } = part
      const input = inputOf(part.arguments)
      if (input === null) return refuseUnlessCut(finish)
      const call = { type: 'tool_use', id, name, input }
      return signature === undefined ? [call] : [callSignatureBlock(id, signature), call]
    }
    case 'refusal':
      return []
    default:
      throw unusable('The answer holds media, which this language cannot say')
  }
}

/** The arguments of a call; null if they are not an object. */
export const inputOf = (text: string): JsonObject | null => (text.trim() === '' ? {} : parseExactObject(text))

/** Throws for arguments that are not an object, unless a limit or a filter cut them off. */
export function refuseUnlessCut(finish: FinishReason): [] {
  if (finish === 'length' || finish === 'content_filter') return []
  throw unusable('The provider called a tool with arguments that are no JSON object')
}

function thoughtBlock(thought: NeutralThought): JsonObject {
  const opaque = writtenOpaque(thought, 'messages') ?? ''
  if (thought.redacted !== null) return { type: 'redacted_thinking', data: opaque }
  return { type: 'thinking', thinking: thought.text, signature: opaque }
}

/** The language has no place for the signature of a call: it is written before the call as a thought without words. */
export const callSignatureBlock = (callId: string, { text, language }: CallSignature): JsonObject => ({
  type: 'thinking',
  thinking: '',
  signature: markSignature({ language, callId, redacted: false, signature: text }),
})

/**
 * Null for what the language cannot express: its web citations carry a sealed value that only Anthropic's own search
 * makes.
 */
export const writtenCitation = (citation: NeutralCitation): JsonObject | null =>
  isOwnCitation(citation) ? { ...citation.original } : messagesCitation(citation)

/** The input excludes cache reads and writes; zero if it was not reported, because clients need a number. */
export function usageOf(usage: Usage | null): JsonObject {
  if (usage === null) return { input_tokens: 0, output_tokens: 0 }
  const { inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens, reasoningTokens } = usage
  const hour = usage.cacheWriteHourTokens ?? null
  const cached = (cachedInputTokens ?? 0) + (cacheWriteTokens ?? 0)
  return {
    input_tokens: Math.max(0, (inputTokens ?? 0) - cached),
    ...(cachedInputTokens !== null && { cache_read_input_tokens: cachedInputTokens }),
    ...(cacheWriteTokens !== null && { cache_creation_input_tokens: cacheWriteTokens }),
    ...(hour !== null && {
      cache_creation: {
        ephemeral_5m_input_tokens: Math.max(0, (cacheWriteTokens ?? 0) - hour),
        ephemeral_1h_input_tokens: hour,
      },
    }),
    output_tokens: outputTokens ?? 0,
    ...(reasoningTokens !== null && { output_tokens_details: { thinking_tokens: reasoningTokens } }),
  }
}

export function readMessagesError(status: number | null, body: unknown): NeutralError {
  const error = isObject(body) && isObject(body.error) ? body.error : {}
  const code = textOf(error.code) ?? textOf(error.type)
  return { status, code, message: textOf(error.message) ?? 'The provider refused the request' }
}

export const writeMessagesError = ({ status, code, message }: NeutralError): JsonObject => ({
  type: 'error',
  error: { type: errorTypeOf(status ?? 500, code), message, ...(code !== null && { code }) },
})
