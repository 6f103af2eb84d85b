/**
 * Determines the usage of an exchange: what the provider reported, completed by an estimate from the text.
 *
 * 1. A report within a stream counts for the text before it. When text followed without another report, the output is
 *    the larger of report and estimate.
 * 2. A missing output, or zero output for an answer with text, is estimated. So is a missing input, or any input in a
 *    report of zeros.
 * 3. A part of the input is at most the input. A report larger than the text stands, because reasoning is not visible.
 * 4. Of a request sent as several calls only the calls that were sent count, by their reports where there are any.
 *
 * Usage that contains an estimate is flagged.
 */
import { estimateTokens, type Usage } from '../../languages/dialect.ts'
import { families } from '../../languages/families.ts'
import type { Exchange } from '../exchange.ts'

/** A usual bit rate of recorded speech, for answers that do not state their duration. */
const audioBytesPerSecond = 16_000
/** Roughly the audio tokens that one character of spoken text makes. */
const speechTokensPerCharacter = 1.5

export const noUsage: Usage = {
  inputTokens: 0,
  outputTokens: 0,
  cachedInputTokens: null,
  cacheWriteTokens: null,
  reasoningTokens: null,
}

/** Completes the reported usage. `estimated` says whether any part is an estimate. */
export function completedUsage(exchange: Exchange, reported: Usage): { usage: Usage; estimated: boolean } {
  // Audio billed by time reports no tokens, and neither do some images.
  if (isGiven(reported.audioSeconds) || isGiven(reported.images)) return { usage: reported, estimated: false }
  const { relayedCharacters, call } = exchange
  const { charactersSinceUsage, reader, unreportedInputTokens } = call
  const { inputTokens, outputTokens } = reported
  if (unreportedInputTokens !== null) {
    const whole = { ...reported, inputTokens: (inputTokens ?? 0) + unreportedInputTokens }
    return { usage: whole, estimated: unreportedInputTokens > 0 }
  }
  const hasText = relayedCharacters > 0
  const withoutOutput = outputTokens === null ? hasText || reader !== null : outputTokens === 0 && hasText
  const withoutInput = inputTokens === null || (inputTokens === 0 && withoutOutput)
  const isBehind = withoutOutput || charactersSinceUsage > 0
  if (!withoutInput && !isBehind) return { usage: limitPartsToInput(reported), estimated: false }
  const estimate = estimateUsage(exchange)
  const usage: Usage = {
    ...reported,
    inputTokens: withoutInput ? estimate.inputTokens : inputTokens,
    outputTokens: isBehind ? Math.max(outputTokens ?? 0, estimate.outputTokens ?? 0) : outputTokens,
  }
  if (withoutInput && isGiven(estimate.audioInputTokens)) usage.audioInputTokens = estimate.audioInputTokens
  if (isBehind && isGiven(estimate.audioOutputTokens)) usage.audioOutputTokens = estimate.audioOutputTokens
  return { usage: limitPartsToInput(usage), estimated: true }
}

const isGiven = (count: number | null | undefined): count is number => count !== null && count !== undefined

/** Limits each part of the input to the input. */
export function limitPartsToInput(usage: Usage): Usage {
  const { inputTokens, cachedInputTokens, cacheWriteTokens, cacheWriteHourTokens, audioInputTokens } = usage
  const input = inputTokens ?? 0
  const isWithin =
    (cachedInputTokens ?? 0) + (cacheWriteTokens ?? 0) <= input &&
    (cacheWriteHourTokens ?? 0) <= (cacheWriteTokens ?? 0) &&
    (audioInputTokens ?? 0) <= input
  if (isWithin) return usage
  const cached = isGiven(cachedInputTokens) ? Math.min(cachedInputTokens, input) : null
  const written = isGiven(cacheWriteTokens) ? Math.min(cacheWriteTokens, input - (cached ?? 0)) : null
  const within: Usage = { ...usage, cachedInputTokens: cached, cacheWriteTokens: written }
  if (isGiven(cacheWriteHourTokens)) within.cacheWriteHourTokens = Math.min(cacheWriteHourTokens, written ?? 0)
  if (isGiven(audioInputTokens)) within.audioInputTokens = Math.min(audioInputTokens, input)
  return within
}

/** Estimates usage from the text alone. */
export function estimateUsage(exchange: Exchange): Usage {
  const { facts, relayedCharacters, dialect, parsed, bodyLength, attempts, call } = exchange
  const spoken = families[dialect.family].gives === 'audio' && attempts.length > 0 ? speechCharacters(parsed) : 0
  const sound = Math.ceil(call.soundTokens)
  return {
    ...noUsage,
    inputTokens: call.unreportedInputTokens ?? facts?.inputEstimate ?? 0,
    outputTokens: estimateTokens(relayedCharacters) + Math.ceil(spoken * speechTokensPerCharacter) + sound,
    ...(facts?.soundEstimate !== undefined && { audioInputTokens: facts.soundEstimate }),
    ...(sound > 0 && { audioOutputTokens: sound }),
    images: families[dialect.family].gives === 'images' && attempts.length > 0 ? (facts?.choices ?? 1) : null,
    audioSeconds: families[dialect.family].takes === 'audio' ? bodyLength / audioBytesPerSecond : null,
  }
}

/** The number of characters to be spoken. */
export const speechCharacters = (parsed: Exchange['parsed']): number =>
  typeof parsed?.input === 'string' ? parsed.input.length : 0
