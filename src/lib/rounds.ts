/**
 * Repeats work in rounds: the next round begins some time after the last has ended, so slow rounds never pile up, and
 * a caller that stops can wait for the current one.
 */
export class Rounds {
  readonly #work: () => Promise<void>
  readonly #restMs: number
  #timer: Timer | null = null
  #running: Promise<void> = Promise.resolve()
  #stopped = false

  /** `work` handles its own failures. */
  constructor(restMs: number, work: () => Promise<void>) {
    this.#restMs = restMs
    this.#work = work
  }

  /** The first round begins after the first rest. */
  start(): void {
    if (this.#stopped) return
    this.#timer = setTimeout(() => {
      this.#running = this.#work()
      void this.#running.then(() => this.start())
    }, this.#restMs)
  }

  /** Resolves when the current round has ended; no other follows. */
  async stop(): Promise<void> {
    this.#stopped = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    await this.#running
  }
}
