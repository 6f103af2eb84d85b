/** Gives each of what runs at once a number of its own. No number is larger than what ever ran at once. */
export class Slots {
  readonly #free: number[] = []
  #next = 0

  take(): number {
    return this.#free.pop() ?? this.#next++
  }

  give(slot: number): void {
    this.#free.push(slot)
  }
}
