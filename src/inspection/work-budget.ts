/**
 * How much work one policy may make of the texts of one exchange: one thread reads for all callers, so what takes too
 * long for one of them holds up everybody. A guard, not a measure of time: the same text always comes to the same.
 *
 * A move is one step of one alternative that a pattern is in. Patterns of everyday use make a few for each character.
 */
const movesPerUnit = 64
const movesInAny = 4_000_000

/** Reading the texts is more work than a policy may make: it cannot decide about them. */
export class WorkBudgetExceeded extends Error {
  constructor() {
    super('The patterns would take too long for this text')
  }
}

export class WorkBudget {
  #moves = 0
  #units = 0

  get moves(): number {
    return this.#moves
  }

  /** Counts what was done, and how many UTF-16 units of text were read by it. Throws `WorkBudgetExceeded`. */
  add(moves: number, units: number): void {
    this.#moves += moves
    this.#units += units
    if (this.#moves > movesInAny + movesPerUnit * this.#units) throw new WorkBudgetExceeded()
  }
}
