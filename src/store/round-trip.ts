import type { LowPriority } from './open.ts'

/**
 * How long the way to a server and back takes at the moment: as long as the quickest read of late, which is forgotten
 * slowly. What a write takes beyond that it held the database for, or waited there for another control plane's.
 */
export class RoundTrip {
  readonly #now: () => number
  #milliseconds = Number.POSITIVE_INFINITY

  /** `now` in milliseconds, never going back. */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Runs a read and learns from the time it takes. */
  async seen<Result>(read: () => Promise<Result>): Promise<Result> {
    const began = this.#now()
    const result = await read()
    this.#milliseconds = Math.min(this.#now() - began, this.#milliseconds * forgetting)
    return result
  }

  /** Runs a write and tells how long it took beyond the way. */
  async beyond<Result>(write: () => Promise<Result>, patient: LowPriority | undefined): Promise<Result> {
    const began = this.#now()
    const result = await write()
    patient?.held?.(Math.max(0, this.#now() - began - this.#milliseconds))
    return result
  }
}

const forgetting = 1.05
