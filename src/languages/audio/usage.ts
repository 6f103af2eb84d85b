/** The usage that the audio families report: tokens with their kinds, or seconds of audio. */
import type { Usage } from '../dialect.ts'
import { countOf, isObject } from '../reading/json-value.ts'

/** Null if there is no usage, or nothing in it can be counted. */
export function readAudioUsage(usage: unknown): Usage | null {
  if (!isObject(usage)) return null
  const { input_token_details: input, output_token_details: output } = usage
  const seconds = durationOf(usage.seconds)
  const read: Usage = {
    inputTokens: countOf(usage.input_tokens),
    outputTokens: countOf(usage.output_tokens),
    cachedInputTokens: null,
    cacheWriteTokens: null,
    reasoningTokens: null,
    audioInputTokens: isObject(input) ? countOf(input.audio_tokens) : null,
    audioOutputTokens: isObject(output) ? countOf(output.audio_tokens) : null,
    audioSeconds: seconds,
  }
  return read.inputTokens === null && read.outputTokens === null && seconds === null ? null : read
}

/** A year: longer than any accepted upload. */
const mostSeconds = 31_536_000

/** Seconds of audio, which some providers report as text; null if the value is not a possible duration. */
function durationOf(value: unknown): number | null {
  const seconds = typeof value === 'string' && /^\d{1,9}(?:\.\d{1,9})?$/.test(value) ? Number(value) : value
  return typeof seconds === 'number' && seconds >= 0 && seconds <= mostSeconds ? seconds : null
}
