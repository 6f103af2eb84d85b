/**
 * How many events one transaction takes in, so that grants, acknowledgements and reads never wait long behind it
 * (events/README.md: ingest batches stay under 5 ms). What a machine manages in that time is not known beforehand and
 * changes with what else it does, so each slice's duration decides on those after it. They aim at half of that time: the
 * more of it they need, the more of them are those whose thread the machine takes the processor from meanwhile.
 *
 *   longer than the target                          smaller, in proportion, by at most half: one hiccup says little
 *   a whole slice in less than three quarters of it larger by a quarter, which leaves it within
 *
 * Between the two it stays. A short slice, the rest of a batch, says nothing of larger ones. What a transaction costs
 * besides its events, such as the last page of each index, is shared by all of them: so slices are about as large as the
 * target allows.
 *
 * A process writes one slice at a time: a libSQL server does one transaction at a time anyway, and lets those that wait
 * for it pass each other. Four batches at once were no faster together, and kept some writes waiting for all of the 5
 * seconds that they have.
 */
import type { Clock } from '../../lib/clock.ts'
import type { LowPriority } from '../../store/open.ts'

interface PaceBounds {
  /** Milliseconds that a slice should take at most. */
  targetMs: number
  least: number
  most: number
}

/**
 * The least is for a machine so busy that whatever it is given takes longer: smaller slices cost more for each event (a
 * third more in sixteens than in 64s), and less would come in.
 */
export const localPace: PaceBounds = { targetMs: 2.5, least: 32, most: 500 }
/** A server's transaction has a way there and back, which smaller slices only make more of. */
export const remotePace: PaceBounds = { targetMs: 5, least: 64, most: 500 }
const first = 64
/** Of the target: what takes less is within it when it is larger by a quarter. */
const roomLeft = 0.75

export class SlicePace {
  readonly clock: Pick<Clock, 'monotonic'>
  readonly #bounds: PaceBounds
  #events: number
  #last: Promise<unknown> = Promise.resolve()

  readonly #onSlice: (milliseconds: number) => void

  /** `onSlice` is told how long each transaction held the database. */
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
   * Writes a slice of so many events when those before it are written. Its time is what the transaction held the database
   * for, or `readMs` where that is longer, for which reading its events has held this thread.
   */
  async write(events: number, readMs: number, work: (patient: LowPriority) => Promise<void>): Promise<void> {
    const held = (milliseconds: number): void => {
      this.#onSlice(milliseconds)
      this.#took(events, Math.max(milliseconds, readMs))
    }
    const done = this.#last.then(() => work({ held }))
    // The next one waits for this one and does not care how it ended; its own caller is told.
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
