import type { Clock } from '../../lib/clock.ts'

const burst = 2000
const aSecond = 500

/** How much one server may say to one session that it was not asked for: a burst, and then so many messages a second. */
export class Flood {
  readonly #clock: Clock
  #left = burst
  #at: number

  constructor(clock: Clock) {
    this.#clock = clock
    this.#at = clock.monotonic()
  }

  /** Whether one more message is taken. */
  takes(): boolean {
    const now = this.#clock.monotonic()
    this.#left = Math.min(burst, this.#left + ((now - this.#at) / 1000) * aSecond)
    this.#at = now
    if (this.#left < 1) return false
    this.#left -= 1
    return true
  }

  /** The message was an answer: as many come as requests are sent. */
  giveBack(): void {
    this.#left += 1
  }
}
