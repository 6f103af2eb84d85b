const messagesRemembered = 1000

/** What is remembered of a worker's process: which of its last messages have come. */
export class MessageNumbers {
  readonly process: string
  readonly #numbers = new Set<number>()
  #below = 0

  constructor(process: string) {
    this.process = process
  }

  /** Whether the message of this number comes for the first time; one that is very late counts as repeated. */
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
