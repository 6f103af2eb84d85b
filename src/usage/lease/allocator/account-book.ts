/** The balances of the ledger as one allocation sees them: as read, plus what it has granted so far. */

import { type BalanceTotals, inRound, outstanding, roundSize } from '../lease.ts'
import type { CounterIncrease, LedgerBalance } from './balance-ledger.ts'

export class AccountBook {
  readonly #accounts = new Map<string, Map<string, LedgerBalance>>()
  readonly #increased = new Map<string, CounterIncrease>()
  readonly #granted = new Set<string>()

  constructor(balances: readonly LedgerBalance[]) {
    for (const balance of balances) this.#workers(balance.account).set(balance.worker, fromLatestRound({ ...balance }))
  }

  balance(account: string, worker: string): LedgerBalance | null {
    return this.#accounts.get(account)?.get(worker) ?? null
  }

  of(account: string): LedgerBalance[] {
    return [...this.#workers(account).values()]
  }

  /** Granted and not returned, over all workers. */
  held(account: string): number {
    return this.of(account).reduce((sum, { granted, returned }) => sum + granted - returned, 0)
  }

  settled(account: string): number {
    return this.of(account).reduce((sum, balance) => sum + balance.settled, 0)
  }

  /** Grants more to a worker and returns its new balance. */
  grant(account: string, worker: string, amount: number): LedgerBalance {
    const balance = this.#own(account, worker)
    balance.granted += amount
    this.#granted.add(account)
    this.#recordIncrease(balance)
    return balance
  }

  /** Applies a worker's report of what it has returned, at most what is outstanding. */
  returned(worker: string, report: BalanceTotals): void {
    const balance = this.balance(report.account, worker)
    if (balance === null) return
    const total = inRound(report, balance.rounds).returned
    if (total <= balance.returned) return
    balance.returned = Math.min(total, balance.returned + Math.max(0, outstanding(balance)))
    fromLatestRound(balance)
    this.#recordIncrease(balance)
  }

  get increases(): CounterIncrease[] {
    return [...this.#increased.values()]
  }

  /** Accounts of which something was granted. */
  get granted(): ReadonlySet<string> {
    return this.#granted
  }

  #recordIncrease({ account, worker, rounds, granted, returned }: LedgerBalance): void {
    this.#increased.set(`${worker} ${account}`, { account, worker, rounds, granted, returned })
  }

  #own(account: string, worker: string): LedgerBalance {
    const known = this.balance(account, worker)
    if (known !== null) return known
    const fresh = { account, worker, rounds: 0, granted: 0, returned: 0, settled: 0 }
    this.#workers(account).set(worker, fresh)
    return fresh
  }

  #workers(account: string): Map<string, LedgerBalance> {
    const known = this.#accounts.get(account)
    if (known !== undefined) return known
    const fresh = new Map<string, LedgerBalance>()
    this.#accounts.set(account, fresh)
    return fresh
  }
}

/** Moves whole rounds from `granted` and `returned` to `rounds`, so that both stay exact integers. */
function fromLatestRound(balance: LedgerBalance): LedgerBalance {
  const ended = Math.floor(balance.returned / roundSize)
  balance.rounds += ended
  balance.granted -= ended * roundSize
  balance.returned -= ended * roundSize
  return balance
}
