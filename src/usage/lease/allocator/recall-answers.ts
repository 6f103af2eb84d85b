/** Waits until workers have answered a recall and the ledger has their answers. */
export class RecallAnswers {
  readonly #waiting = new Set<{ silent: Set<string>; done(): void }>()

  /** Resolves when these workers have reported these accounts, or when `late` resolves. */
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
