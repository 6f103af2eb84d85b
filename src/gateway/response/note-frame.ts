/** What a frame of a streamed answer tells, noted on the exchange as it comes, whether or not it is passed on. */
import type { FrameFacts } from '../../languages/dialect.ts'
import type { Gateway } from '../context.ts'
import type { Exchange } from '../exchange.ts'

/** Characters of generated text, and in milliseconds when the first of them came. */
export function noteText(exchange: Exchange, { clock }: Gateway, { textLength }: FrameFacts): void {
  exchange.relayedText += textLength
  if (textLength > 0 && exchange.firstTokenMs === null) {
    exchange.firstTokenMs = Math.round(clock.monotonic() - exchange.startedMonotonic)
  }
}

/** What the provider reported, and how much text came since. */
export function noteUsage(exchange: Exchange, { usage, textLength }: FrameFacts): void {
  if (usage !== null && usage !== exchange.usage) {
    exchange.usage = usage
    exchange.textSinceUsage = 0
  } else exchange.textSinceUsage += textLength
}
