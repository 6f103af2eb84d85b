/** Cells of the ledger as one decision sees them: as read, and with what the decision raises. */

import { type CellTotals, inRound, outstanding, roundSize } from '../lease.ts'
import type { LedgerCell, Raise } from './balance-ledger.ts'

export class AccountBook {
  readonly #accounts = new Map<string, Map<string, LedgerCell>>()
  readonly #raised = new Map<string, Raise>()
  readonly #granted = new Set<string>()

  constructor(cells: readonly LedgerCell[]) {
    for (const cell of cells) this.#workers(cell.account).set(cell.worker, fromLatestRound({ ...cell }))
  }

  cell(account: string, worker: string): LedgerCell | null {
    return this.#accounts.get(account)?.get(worker) ?? null
  }

  of(account: string): LedgerCell[] {
    return [...this.#workers(account).values()]
  }

  /** Granted and not returned, over all workers. */
  held(account: string): number {
    return this.of(account).reduce((sum, { granted, returned }) => sum + granted - returned, 0)
  }

  settled(account: string): number {
    return this.of(account).reduce((sum, cell) => sum + cell.settled, 0)
  }

  /** Grants more to a worker; gives the cell as it is then. */
  grant(account: string, worker: string, amount: number): LedgerCell {
    const cell = this.#own(account, worker)
    cell.granted += amount
    this.#granted.add(account)
    this.#raise(cell)
    return cell
  }

  /** Takes in what a worker says to have returned: never more than what is outstanding. */
  returned(worker: string, told: CellTotals): void {
    const cell = this.cell(told.account, worker)
    if (cell === null) return
    const total = inRound(told, cell.rounds).returned
    if (total <= cell.returned) return
    cell.returned = Math.min(total, cell.returned + Math.max(0, outstanding(cell)))
    fromLatestRound(cell)
    this.#raise(cell)
  }

  get raises(): Raise[] {
    return [...this.#raised.values()]
  }

  /** Accounts of which something was granted. */
  get granted(): ReadonlySet<string> {
    return this.#granted
  }

  #raise({ account, worker, rounds, granted, returned }: LedgerCell): void {
    this.#raised.set(`${worker} ${account}`, { account, worker, rounds, granted, returned })
  }

  #own(account: string, worker: string): LedgerCell {
    const known = this.cell(account, worker)
    if (known !== null) return known
    const fresh = { account, worker, rounds: 0, granted: 0, returned: 0, settled: 0 }
    this.#workers(account).set(worker, fresh)
    return fresh
  }

  #workers(account: string): Map<string, LedgerCell> {
    const known = this.#accounts.get(account)
    if (known !== undefined) return known
    const fresh = new Map<string, LedgerCell>()
    this.#accounts.set(account, fresh)
    return fresh
  }
}

/** Takes whole rounds off what was granted and came back, so that both stay exact however often that happens. */
function fromLatestRound(cell: LedgerCell): LedgerCell {
  const ended = Math.floor(cell.returned / roundSize)
  cell.rounds += ended
  cell.granted -= ended * roundSize
  cell.returned -= ended * roundSize
  return cell
}
