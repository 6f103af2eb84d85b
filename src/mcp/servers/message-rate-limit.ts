import type { Clock } from '../../lib/clock.ts'

const burst = 2000
const aSecond = 500

/** Limits the unrequested messages of one server to one session: a burst, then a number of messages a second. */
export class MessageRateLimit {
  readonly #clock: Clock
  #left = burst
  #at: number

  constructor(clock: Clock) {
    this.#clock = clock
    this.#at = clock.monotonic()
  }

  /** Whether one more message is accepted. */
  accepts(): boolean {
    const now = this.#clock.monotonic()
    this.#left = Math.min(burst, this.#left + ((now - this.#at) / 1000) * aSecond)
    this.#at = now
    if (this.#left < 1) return false
    this.#left -= 1
    return true
  }

  /** The message was an answer, which does not count. */
  refund(): void {
    this.#left += 1
  }
}
