/** Notes on the exchange what a frame of a streamed answer states, whether or not the frame is passed on. */
import type { FrameFacts } from '../../languages/dialect.ts'
import type { Gateway } from '../context.ts'
import type { Exchange } from '../exchange.ts'

/** Counts characters of generated text, and the milliseconds until the first. */
export function noteText(exchange: Exchange, { clock }: Gateway, { textLength, soundTokens }: FrameFacts): void {
  exchange.relayedCharacters += textLength
  if (soundTokens !== undefined) exchange.call.soundTokens += soundTokens
  if (textLength > 0 && exchange.firstTokenMs === null) {
    exchange.firstTokenMs = Math.round(clock.monotonic() - exchange.startedMonotonic)
  }
}

/** Notes reported usage and the amount of text since. */
export function noteUsage(exchange: Exchange, { usage, textLength }: FrameFacts): void {
  if (usage !== null && usage !== exchange.call.usage) {
    exchange.call.usage = usage
    exchange.call.charactersSinceUsage = 0
  } else exchange.call.charactersSinceUsage += textLength
}
