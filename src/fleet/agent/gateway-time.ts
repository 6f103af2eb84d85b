/**
 * The control plane's time, by the monotonic clock and an offset (fleet/README.md, Clocks). What was asked for at one
 * instant and has come at another was said between the two: each such answer bounds the offset from both sides, and
 * moves it only where it is out of bounds. So one late answer does not make the gateway late, and a clock that drifts
 * is followed.
 */
import type { Clock } from '../../lib/clock.ts'

export class GatewayTime {
  readonly #clock: Pick<Clock, 'monotonic'>
  #offset: number

  /** `start` is the time as far as it is known now, milliseconds since the epoch. */
  constructor(clock: Pick<Clock, 'monotonic'>, start: number) {
    this.#clock = clock
    this.#offset = start - clock.monotonic()
  }

  now(): number {
    return this.#offset + this.#clock.monotonic()
  }

  /** An answer has just come that says `now`; it was asked for at this monotonic instant. */
  synchronize(now: number, askedAt: number): void {
    this.#offset = Math.min(Math.max(this.#offset, now - this.#clock.monotonic()), now - askedAt)
  }
}
