/**
 * How many events one transaction takes, so that grants, acknowledgements and reads never wait long behind it
 * (events/README.md: ingest batches stay under 5 ms). What a machine manages in that time is unknown and changes with
 * its load, so each slice's duration determines the next ones. They aim at half of that time, since longer slices are
 * interrupted more often by other processes.
 *
 *  longer than the target                          smaller, in proportion, by at most half: one slow write says little
 *  a whole slice in less than three quarters of it larger by a quarter, which stays within the target
 *
 * In between the size stays. A short slice, the rest of a batch, says nothing about larger ones. The fixed cost of a
 * transaction, such as the last page of each index, is shared by its events, so slices are as large as the target
 * allows.
 *
 * A process writes one slice at a time: a libSQL server runs one transaction at a time anyway, and lets waiting ones
 * overtake each other. Four batches at once were no faster together, and delayed some writes by up to their 5 s limit.
 */
import type { Clock } from '../../lib/clock.ts'
import type { LowPriority } from '../../store/open.ts'

interface PaceBounds {
  /** The target duration of a slice in milliseconds. */
  targetMs: number
  least: number
  most: number
}

/**
 * The minimum is for a machine where every slice is slow: smaller slices cost more for each event (a third more with
 * 16 than with 64), so less would be ingested.
 */
export const localPace: PaceBounds = { targetMs: 2.5, least: 32, most: 500 }
/** A transaction of a server has a round trip, so smaller slices only add more of them. */
export const remotePace: PaceBounds = { targetMs: 5, least: 64, most: 500 }
const first = 64
/** The share of the target below which a slice may grow by a quarter. */
const roomLeft = 0.75

export class SlicePace {
  readonly clock: Pick<Clock, 'monotonic'>
  readonly #bounds: PaceBounds
  #events: number
  #last: Promise<unknown> = Promise.resolve()

  readonly #onSlice: (milliseconds: number) => void

  /** `onSlice` is called with how long each transaction held the database. */
  constructor(
    clock: Pick<Clock, 'monotonic'>,
    given: Partial<PaceBounds> = {},
    onSlice: (milliseconds: number) => void = () => undefined,
  ) {
    this.clock = clock
    this.#onSlice = onSlice
    this.#bounds = { ...localPace, ...given }
    this.#events = this.#within(first)
  }

  /** Events of the next slice. */
  get events(): number {
    return this.#events
  }

  /**
   * Writes a slice after the earlier ones. Its duration is how long the transaction held the database, or `readMs` if
   * reading its events blocked this thread for longer.
   */
  async write(events: number, readMs: number, work: (patient: LowPriority) => Promise<void>): Promise<void> {
    const held = (milliseconds: number): void => {
      this.#onSlice(milliseconds)
      this.#took(events, Math.max(milliseconds, readMs))
    }
    const done = this.#last.then(() => work({ held }))
    // The next one runs whether this one succeeds or fails. Its caller gets the error.
    this.#last = done.catch(() => undefined)
    await done
  }

  #took(events: number, milliseconds: number): void {
    const { targetMs } = this.#bounds
    if (events < this.#events / 2) return
    if (milliseconds > targetMs) {
      this.#events = this.#within(Math.floor(events * Math.max(0.5, targetMs / milliseconds)))
    } else if (events >= this.#events && milliseconds < targetMs * roomLeft) {
      this.#events = this.#within(Math.ceil(this.#events * 1.25))
    }
  }

  #within(events: number): number {
    return Math.min(this.#bounds.most, Math.max(this.#bounds.least, events))
  }
}
