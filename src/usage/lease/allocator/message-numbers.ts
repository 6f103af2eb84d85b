const messagesRemembered = 1000

/** Remembers which of the latest messages of a worker's process have arrived. */
export class MessageNumbers {
  readonly process: string
  readonly #numbers = new Set<number>()
  #below = 0

  constructor(process: string) {
    this.process = process
  }

  /** Whether this message number arrives for the first time. A very late number counts as repeated. */
  first(number: number): boolean {
    if (number < this.#below || this.#numbers.has(number)) return false
    this.#numbers.add(number)
    this.#below = Math.max(this.#below, number - messagesRemembered)
    if (this.#numbers.size > 2 * messagesRemembered) {
      for (const each of this.#numbers) if (each < this.#below) this.#numbers.delete(each)
    }
    return true
  }
}
