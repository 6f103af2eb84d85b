/**
 * How old the newest news of the primary are (fleet/README.md rule R3). News that the primary was at a head count, as
 * of the instant at which they were asked for, once the state that is read has come to that head: denials arrive by
 * themselves, policies and limits only with the state.
 */
import type { Clock } from '../../lib/clock.ts'
import type { Head } from '../../store/propagation.ts'

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
  /** The oldest news to which the state that is read has not come. */
  #pending: { head: Head; at: Instant } | null = null
  #ended = false

  /** `restored` is the wall instant that a former process was last fresh at; one in the future counts as none. */
  constructor(clock: Clock, restored: number | null) {
    this.#clock = clock
    this.#wall = restored !== null && restored <= clock.now() ? restored : null
  }

  /** The primary was at `head` at this instant; `read` is where the state that is read is. Says whether news count by it. */
  heard(head: Head, at: Instant, read: Head | null): boolean {
    // A primary that was restored never comes to what it has lost.
    if (this.#pending !== null && !reaches(head, this.#pending.head)) this.#pending = null
    const counted = this.read(read)
    if (read === null || !reaches(read, head)) {
      this.#pending ??= { head, at }
      return counted
    }
    this.#pending = null
    this.#freshAt(at)
    return true
  }

  /** The state that is read has come here. Says whether news count by it. */
  read(read: Head | null): boolean {
    if (this.#pending === null || read === null || !reaches(read, this.#pending.head)) return false
    this.#freshAt(this.#pending.at)
    this.#pending = null
    return true
  }

  /** Whether the state that is read is behind what has been heard of the primary. */
  get behind(): boolean {
    return this.#pending !== null
  }

  /** No news count any more, neither those that there were nor those that are on their way. */
  end(): void {
    this.#ended = true
    this.#wall = null
  }

  #freshAt({ wall, monotonic }: Instant): void {
    if (this.#ended) return
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

/** Whether a state that stands at `read` holds all that the primary had at `head`. */
export const reaches = (read: Head, head: Head): boolean =>
  read.history === head.history &&
  (read.version > head.version || (read.version === head.version && read.nonce === head.nonce))
