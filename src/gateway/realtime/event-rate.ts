/** Counts events against a limit a second: a bucket that fills as time passes, and holds the events of one second. */
export class EventRate {
  readonly #limit: number
  #left: number
  #at: number

  /** `now`: monotonic milliseconds. */
  constructor(limit: number, now: number) {
    this.#limit = limit
    this.#left = limit
    this.#at = now
  }

  /** False if there are too many. */
  takes(now: number): boolean {
    this.#left = Math.min(this.#limit, this.#left + ((now - this.#at) / 1000) * this.#limit)
    this.#at = now
    if (this.#left < 1) return false
    this.#left -= 1
    return true
  }
}
