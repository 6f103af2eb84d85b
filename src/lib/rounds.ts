/**
 * Work that is done again and again, one round after the other: the next begins a while after the last has ended, so that
 * slow rounds never pile up, and whoever stops can wait for the one that runs.
 */
export class Rounds {
  readonly #work: () => Promise<void>
  readonly #restMs: number
  #timer: Timer | null = null
  #running: Promise<void> = Promise.resolve()
  #stopped = false

  /** `work` deals with its own failures. */
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

  /** Resolves when the round that runs has ended; none follows. */
  async stop(): Promise<void> {
    this.#stopped = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    await this.#running
  }
}
