/**
 * How many events one transaction takes in, so that grants, acknowledgements and reads never wait long behind it
 * (protocols section 7: ingest batches stay under 5 ms). What a machine manages in that time is not known beforehand and
 * changes with what else it does, so each slice's duration decides on those after it:
 *
 *   longer than the target                smaller, in proportion, by at most half: one hiccup says little
 *   a whole slice in less than half of it larger by a quarter
 *
 * Between the two it stays. A short slice, the rest of a batch, says nothing of larger ones.
 */
export interface PaceBounds {
  /** Milliseconds that a slice should take at most. */
  targetMs: number
  least: number
  most: number
}

/** The least is for a disk so slow that the commit alone takes longer: smaller slices would not make that any shorter. */
const bounds: PaceBounds = { targetMs: 5, least: 32, most: 500 }
const first = 64

export class SlicePace {
  readonly #bounds: PaceBounds
  #events: number

  constructor(given: Partial<PaceBounds> = {}) {
    this.#bounds = { ...bounds, ...given }
    this.#events = this.#within(first)
  }

  /** Events of the next slice. */
  get events(): number {
    return this.#events
  }

  /** A slice of so many events held others up for so many milliseconds. */
  took(events: number, milliseconds: number): void {
    const { targetMs } = this.#bounds
    if (events < this.#events / 2) return
    if (milliseconds > targetMs) {
      this.#events = this.#within(Math.floor(events * Math.max(0.5, targetMs / milliseconds)))
    } else if (events >= this.#events && milliseconds < targetMs / 2) {
      this.#events = this.#within(Math.ceil(this.#events * 1.25))
    }
  }

  #within(events: number): number {
    return Math.min(this.#bounds.most, Math.max(this.#bounds.least, events))
  }
}
