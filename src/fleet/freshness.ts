/** How old the newest news of the primary is (protocols section 4, rule 3). */
import type { Clock } from '../lib/clock.ts'

/** The same instant by both clocks. */
export interface Instant {
  wall: number
  monotonic: number
}

export const instant = (clock: Clock): Instant => ({ wall: clock.now(), monotonic: clock.monotonic() })

export class Freshness {
  readonly #clock: Clock
  #wall: number | null
  #monotonic: number | null = null

  /** `restored` is the wall instant that a former process was last fresh at; one in the future counts as none. */
  constructor(clock: Clock, restored: number | null) {
    this.#clock = clock
    this.#wall = restored !== null && restored <= clock.now() ? restored : null
  }

  /** News were asked for at this instant and were fresh. */
  freshAt({ wall, monotonic }: Instant): void {
    if (this.#monotonic !== null && monotonic <= this.#monotonic) return
    this.#wall = wall
    this.#monotonic = monotonic
  }

  /** Milliseconds since the last fresh instant, by the clock that says more; infinite where there was none. */
  age(): number {
    if (this.#wall === null) return Number.POSITIVE_INFINITY
    const byWall = this.#clock.now() - this.#wall
    return this.#monotonic === null ? byWall : Math.max(byWall, this.#clock.monotonic() - this.#monotonic)
  }

  /** The wall time of the last fresh instant, to be kept for a restart. */
  get wall(): number | null {
    return this.#wall
  }
}
