/** The usage that the audio families report: tokens with their kinds, or seconds of audio. */
import type { Usage } from './dialect.ts'
import { countOf, isObject } from './json-value.ts'

/** Null where there is none, or nothing in it that can be counted. */
export function readAudioUsage(usage: unknown): Usage | null {
  if (!isObject(usage)) return null
  const { input_token_details: input, output_token_details: output, seconds } = usage
  const timed = typeof seconds === 'number' && Number.isFinite(seconds) && seconds >= 0
  const read: Usage = {
    inputTokens: countOf(usage.input_tokens),
    outputTokens: countOf(usage.output_tokens),
    cachedInputTokens: null,
    cacheWriteTokens: null,
    reasoningTokens: null,
    audioInputTokens: isObject(input) ? countOf(input.audio_tokens) : null,
    audioOutputTokens: isObject(output) ? countOf(output.audio_tokens) : null,
    audioSeconds: timed ? seconds : null,
  }
  return read.inputTokens === null && read.outputTokens === null && !timed ? null : read
}
