/** Waits for workers to answer a recall: until each has told of its balance and the ledger has what it told. */
export class RecallAnswers {
  readonly #waiting = new Set<{ silent: Set<string>; done(): void }>()

  /** Resolves when these workers have told of these accounts, or `late` resolves. */
  async expect(balances: readonly { worker: string; account: string }[], late: Promise<void>): Promise<void> {
    if (balances.length === 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const waiting = { silent: new Set(balances.map(({ worker, account }) => `${worker} ${account}`)), done: resolve }
    this.#waiting.add(waiting)
    await Promise.race([promise, late])
    this.#waiting.delete(waiting)
  }

  record(worker: string, accounts: readonly string[]): void {
    for (const { silent, done } of this.#waiting) {
      for (const account of accounts) silent.delete(`${worker} ${account}`)
      if (silent.size === 0) done()
    }
  }
}
