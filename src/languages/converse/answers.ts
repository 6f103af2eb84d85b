/**
 * Answers of Bedrock's Converse, whole and as errors (AWS Bedrock Runtime API: ConverseResponse, StopReason, TokenUsage
 * with CacheDetail, Citation, ReasoningContentBlock).
 */
import type { Usage } from '../dialect.ts'
import type { FinishReason, NeutralAnswer, NeutralCitation, NeutralError, NeutralPart } from '../neutral.ts'
import { countOf, isObject, type JsonObject, objectsOf, textOf } from '../reading/json-value.ts'
import { finishWith } from '../translation/finish.ts'
import { argumentsText, unusable } from '../translation/translation-errors.ts'

/** Throws `upstream_provider_error` if there is no message. */
export function readConverseAnswer(body: unknown): NeutralAnswer {
  const message = isObject(body) && isObject(body.output) ? body.output.message : null
  if (!isObject(body) || !isObject(message)) throw unusable('The provider sent no message')
  const parts = objectsOf(message.content).flatMap((block, index) => partsOf(block, `output.message.content.${index}`))
  return {
    id: null,
    model: null,
    parts,
    finish: finishOf(
      body.stopReason,
      parts.some(({ kind }) => kind === 'tool_call'),
    ),
    stopSequence: stopSequenceOf(body),
    usage: usageOf(body.usage),
  }
}

function partsOf(block: JsonObject, at: string): NeutralPart[] {
  const { text, toolUse, reasoningContent, citationsContent } = block
  if (typeof text === 'string') return [{ kind: 'text', text, at }]
  if (isObject(toolUse)) {
    const [id, name] = [textOf(toolUse.toolUseId) ?? '', textOf(toolUse.name) ?? '']
    return [{ kind: 'tool_call', id, name, arguments: argumentsText(toolUse.input), at }]
  }
  if (isObject(reasoningContent)) return [thoughtOf(reasoningContent, at)]
  if (isObject(citationsContent)) return [citedText(citationsContent, at)]
  if (holdsMedia(block)) throw unusable(mediaMessage)
  return []
}

export const mediaMessage = 'The provider answered with media, which is not translated'

const media = ['image', 'document', 'video', 'audio'] as const

/** Whether no caller's language has a place for this block, or piece of a block. */
export const holdsMedia = (block: JsonObject): boolean => media.some((kind) => isObject(block[kind]))

function thoughtOf({ reasoningText, redactedContent }: JsonObject, at: string): NeutralPart {
  const text = isObject(reasoningText) ? reasoningText : {}
  return {
    kind: 'thought',
    text: textOf(text.text) ?? '',
    signature: textOf(text.signature),
    redacted: textOf(redactedContent),
    language: 'converse',
    at,
  }
}

const citedText = ({ content, citations }: JsonObject, at: string): NeutralPart => ({
  kind: 'text',
  text: joined(content),
  citations: objectsOf(citations).map(citationOf),
  at,
})

const joined = (texts: unknown): string =>
  objectsOf(texts)
    .map(({ text }) => textOf(text) ?? '')
    .join('')

/** A Citation of an answer, or one in a stream's CitationsDelta. */
export function citationOf(original: JsonObject): NeutralCitation {
  const { title, source, sourceContent, location } = original
  const web = isObject(location) && isObject(location.web) ? location.web : {}
  return {
    title: textOf(title) ?? textOf(source),
    url: textOf(web.url),
    citedText: joined(sourceContent) || null,
    original,
  }
}

/** StopReason; `refusal` is Anthropic's own, which Converse does not list but may pass on. */
const reasons: Readonly<Record<string, FinishReason>> = {
  tool_use: 'tool_calls',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  guardrail_intervened: 'content_filter',
  content_filtered: 'content_filter',
  refusal: 'refusal',
  malformed_model_output: 'error',
  malformed_tool_use: 'error',
}

export function finishOf(reason: unknown, called: boolean): FinishReason {
  const known = typeof reason === 'string' && Object.hasOwn(reasons, reason) ? reasons[reason] : undefined
  return finishWith(known ?? 'stop', called && reason !== 'stop_sequence')
}

/** The values of the fields that the request asked the model for (`models.ts`). */
export const stopSequenceOf = ({ additionalModelResponseFields: fields }: JsonObject): string | null =>
  isObject(fields) ? textOf(fields.stop_sequence) : null

/** Converse does not include cache reads and writes in its input count. */
export function usageOf(usage: unknown): Usage | null {
  if (!isObject(usage)) return null
  const [input, read, write] = [usage.inputTokens, usage.cacheReadInputTokens, usage.cacheWriteInputTokens].map(countOf)
  const hourly = objectsOf(usage.cacheDetails).filter(({ ttl }) => ttl === '1h')
  return {
    inputTokens: input == null ? null : input + (read ?? 0) + (write ?? 0),
    outputTokens: countOf(usage.outputTokens),
    cachedInputTokens: read ?? null,
    cacheWriteTokens: write ?? null,
    reasoningTokens: null,
    ...(hourly.length > 0 && {
      cacheWriteHourTokens: hourly.reduce((sum, { inputTokens }) => sum + (countOf(inputTokens) ?? 0), 0),
    }),
  }
}

/** `{"message": …}`, with the exception's name where `bedrock.ts` found it in a header. */
export function readConverseError(status: number | null, body: unknown): NeutralError {
  const error = isObject(body) ? body : {}
  const message = textOf(error.message) ?? textOf(error.Message) ?? (typeof body === 'string' ? body : null)
  const code = textOf(error.__type)
  return { status, code, message: message?.trim() || code || 'The provider answered with an error' }
}
