/**
 * What an exchange used: what its provider told, and where that is missing or cannot be, an estimate from the text.
 *
 * 1. A report in the middle of a stream counts for what came before it. Where text followed and no report did, the
 *    output is the larger of the report and the estimate.
 * 2. An output that was not told, or told to be nothing though there is text, is estimated; and the input where that was
 *    not told, or where nothing was told but zeros.
 * 3. What is a part of the input is no more than the input. Larger reports than the text explains stand: nobody sees
 *    what a model thinks.
 * 4. Of a request that is sent as several calls only those that were sent count, by their reports where they gave any.
 *
 * Whatever has an estimate in it is flagged.
 */
import { estimateTokens, type Usage } from '../../languages/dialect.ts'
import { families } from '../../languages/families.ts'
import type { Exchange } from '../exchange.ts'

/** A usual rate of recorded speech, for answers that do not say how long it was. */
const audioBytesPerSecond = 16_000
/** About how many tokens of sound a character of text is when it is spoken. */
const spokenTokensPerCharacter = 1.5

export const nothing: Usage = {
  inputTokens: 0,
  outputTokens: 0,
  cachedInputTokens: null,
  cacheWriteTokens: null,
  reasoningTokens: null,
}

/** What the provider told, completed where it told too little, and whether anything was. */
export function completedUsage(exchange: Exchange, told: Usage): { usage: Usage; estimated: boolean } {
  // Audio that is billed by time has no tokens to tell.
  if (isGiven(told.audioSeconds)) return { usage: told, estimated: false }
  const { relayedText, textSinceUsage, reader, unreportedInput } = exchange
  const { inputTokens, outputTokens } = told
  if (unreportedInput !== null) {
    const whole = { ...told, inputTokens: (inputTokens ?? 0) + unreportedInput }
    return { usage: whole, estimated: unreportedInput > 0 }
  }
  const hasText = relayedText > 0
  const withoutOutput = outputTokens === null ? hasText || reader !== null : outputTokens === 0 && hasText
  const withoutInput = inputTokens === null || (inputTokens === 0 && withoutOutput)
  const isBehind = withoutOutput || textSinceUsage > 0
  if (!withoutInput && !isBehind) return { usage: withinInput(told), estimated: false }
  const estimate = estimateOf(exchange)
  const usage = {
    ...told,
    inputTokens: withoutInput ? estimate.inputTokens : inputTokens,
    outputTokens: isBehind ? Math.max(outputTokens ?? 0, estimate.outputTokens ?? 0) : outputTokens,
  }
  return { usage: withinInput(usage), estimated: true }
}

const isGiven = (count: number | null | undefined): count is number => count !== null && count !== undefined

/** The same with no part of the input larger than the input. */
export function withinInput(usage: Usage): Usage {
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

/** What it used by its text alone. */
export function estimateOf(exchange: Exchange): Usage {
  const { facts, relayedText, dialect, parsed, bodyLength, attempts, unreportedInput } = exchange
  const spoken = families[dialect.family].gives === 'sound' && attempts.length > 0 ? spokenCharacters(parsed) : 0
  return {
    ...nothing,
    inputTokens: unreportedInput ?? facts?.inputEstimate ?? 0,
    outputTokens: estimateTokens(relayedText) + Math.ceil(spoken * spokenTokensPerCharacter),
    audioSeconds: families[dialect.family].takes === 'sound' ? bodyLength / audioBytesPerSecond : null,
  }
}

/** The text that is to be spoken. */
export const spokenCharacters = (parsed: Exchange['parsed']): number =>
  typeof parsed?.input === 'string' ? parsed.input.length : 0
