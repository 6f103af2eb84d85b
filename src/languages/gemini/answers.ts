/**
 * Usage, reasons to finish and errors of Gemini: GenerateContentResponse, its UsageMetadata and PromptFeedback, and
 * Candidate.FinishReason of the API v1beta (googleapis, google/ai/generativelanguage/v1beta/generative_service.proto),
 * whose names are in lower camel case on the wire.
 */
import type { Usage } from '../dialect.ts'
import type { FinishReason, NeutralError } from '../neutral.ts'
import { countOf, isObject, type JsonObject, objectsOf, textOf } from '../reading/json-value.ts'
import { finishWith } from '../translation/finish.ts'

/** `LANGUAGE`: the answer was flagged for a language that is not supported. Only Vertex AI sends `MODEL_ARMOR`. */
const finishes: ReadonlyMap<string, FinishReason> = new Map([
  ['STOP', 'stop'],
  ['MAX_TOKENS', 'length'],
  ['SAFETY', 'content_filter'],
  ['RECITATION', 'content_filter'],
  ['LANGUAGE', 'content_filter'],
  ['BLOCKLIST', 'content_filter'],
  ['PROHIBITED_CONTENT', 'content_filter'],
  ['SPII', 'content_filter'],
  ['MODEL_ARMOR', 'content_filter'],
  ['IMAGE_SAFETY', 'content_filter'],
  ['IMAGE_PROHIBITED_CONTENT', 'content_filter'],
  ['IMAGE_RECITATION', 'content_filter'],
])

/**
 * Why an answer ended; null if it has not. Any other reason (`OTHER`, `MALFORMED_FUNCTION_CALL`,
 * `UNEXPECTED_TOOL_CALL`, `TOO_MANY_TOOL_CALLS`, those of images) is an error. A blocked prompt has no candidate.
 */
export function finishOf(candidate: JsonObject | undefined, feedback: unknown, called: boolean): FinishReason | null {
  const reason = textOf(candidate?.finishReason)
  if (reason === null || reason === 'FINISH_REASON_UNSPECIFIED') {
    return isObject(feedback) && textOf(feedback.blockReason) !== null ? 'content_filter' : null
  }
  return finishWith(finishes.get(reason) ?? 'error', called)
}

/**
 * Input includes tokens read from a cache and results of the provider's own tools; output includes the thoughts, which
 * Gemini counts separately.
 */
export function readGeminiUsage(metadata: unknown): Usage | null {
  if (!isObject(metadata)) return null
  const input = countOf(metadata.promptTokenCount)
  const [output, thoughts] = [countOf(metadata.candidatesTokenCount), countOf(metadata.thoughtsTokenCount)]
  if (input === null && output === null) return null
  const audio = audioIn(metadata.promptTokensDetails)
  return {
    inputTokens: input === null ? null : input + (countOf(metadata.toolUsePromptTokenCount) ?? 0),
    outputTokens: output === null && thoughts === null ? null : (output ?? 0) + (thoughts ?? 0),
    cachedInputTokens: countOf(metadata.cachedContentTokenCount),
    cacheWriteTokens: null,
    reasoningTokens: thoughts,
    ...(audio !== null && { audioInputTokens: audio }),
  }
}

const audioIn = (details: unknown): number | null =>
  countOf(objectsOf(details).find(({ modality }) => modality === 'AUDIO')?.tokenCount)

/** Its body is an error, or in some answers an array of one. The code is Google's canonical one, in lower case. */
export function readGeminiError(status: number | null, body: unknown): NeutralError {
  const [first] = Array.isArray(body) ? objectsOf(body) : [body]
  const error = isObject(first) && isObject(first.error) ? first.error : {}
  const code = textOf(error.status)?.toLowerCase() ?? null
  return { status, code, message: textOf(error.message) ?? 'The provider refused the request' }
}

/**
 * Whole seconds after which an error says to try again (`google.rpc.RetryInfo`, a delay like `34.07s`); null without.
 */
export function geminiRetryDelay(body: JsonObject | null): number | null {
  const error = body !== null && isObject(body.error) ? body.error : {}
  for (const { retryDelay } of objectsOf(error.details)) {
    const seconds = /^(\d{1,9}(?:\.\d+)?)s$/.exec(textOf(retryDelay) ?? '')?.[1]
    if (seconds !== undefined) return Math.ceil(Number(seconds))
  }
  return null
}
