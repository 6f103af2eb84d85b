/**
 * The control plane's time, from the monotonic clock and an offset (fleet/README.md, Clocks). An answer was written
 * between its request and its arrival, so it bounds the offset from both sides, and moves it only if it is out of
 * bounds. So one late answer does not make the gateway late, and a drifting clock is followed.
 */
import type { Clock } from '../../lib/clock.ts'

export class GatewayTime {
  readonly #clock: Pick<Clock, 'monotonic'>
  #offset: number

  /** `start` is the best known time now, in milliseconds since the epoch. */
  constructor(clock: Pick<Clock, 'monotonic'>, start: number) {
    this.#clock = clock
    this.#offset = start - clock.monotonic()
  }

  now(): number {
    return this.#offset + this.#clock.monotonic()
  }

  /** Applies the time of an answer that has just arrived, with the monotonic instant of its request. */
  synchronize(now: number, askedAt: number): void {
    this.#offset = Math.min(Math.max(this.#offset, now - this.#clock.monotonic()), now - askedAt)
  }
}
