/**
 * How stale the state is (fleet/README.md rule R3). An answer that the primary was at a head counts as of when it was
 * requested, once the state that is read has reached that head: revocations arrive by themselves, but policies and
 * limits come only with the state.
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
  /** The oldest answer whose head the state has not reached yet. */
  #pending: { head: Head; at: Instant } | null = null
  #ended = false

  /** `restored` is when a former process was last fresh, by the wall clock; an instant in the future counts as none. */
  constructor(clock: Clock, restored: number | null) {
    this.#clock = clock
    this.#wall = restored !== null && restored <= clock.now() ? restored : null
  }

  /**
   * The primary was at `head` at this instant, and the state is at `read`. Returns whether the freshness has advanced.
   */
  heard(head: Head, at: Instant, read: Head | null): boolean {
    // A restored primary never reaches versions that it has lost.
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

  /** The state has reached `read`. Returns whether the freshness has advanced. */
  read(read: Head | null): boolean {
    if (this.#pending === null || read === null || !reaches(read, this.#pending.head)) return false
    this.#freshAt(this.#pending.at)
    this.#pending = null
    return true
  }

  /** Whether the state lags behind the known head of the primary. */
  get behind(): boolean {
    return this.#pending !== null
  }

  /** Ends freshness for good: neither earlier nor pending answers count. */
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

  /** Milliseconds since the last fresh instant, by the clock that shows more; infinite if there was none. */
  age(): number {
    if (this.#wall === null) return Number.POSITIVE_INFINITY
    const byWall = this.#clock.now() - this.#wall
    return this.#monotonic === null ? byWall : Math.max(byWall, this.#clock.monotonic() - this.#monotonic)
  }

  /** The wall time of the last fresh instant, to be stored for a restart. */
  get wall(): number | null {
    return this.#wall
  }
}

/** Whether a state at `read` contains everything that the primary had at `head`. */
export const reaches = (read: Head, head: Head): boolean =>
  read.history === head.history &&
  (read.version > head.version || (read.version === head.version && read.nonce === head.nonce))
