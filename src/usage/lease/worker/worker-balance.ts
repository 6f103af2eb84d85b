/** A worker's own share of one account, in memory. */
import { type CellReport, type CellTotals, inRound, outstanding, roundSize } from '../lease.ts'

export class WorkerCell implements CellTotals {
  readonly account: string
  rounds: number
  granted: number
  /** With what was given back but may not be said yet, because the outcomes that freed it are not committed. */
  returned: number
  settled: number
  open = 0
  /** What may be said to be returned, and what the control plane is known to have heard of it. */
  sayable: number
  heard: number
  /** Monotonic. */
  usedAt: number
  /** Events up to this number hold everything that was settled here; null where that is not known yet. */
  settledBy: number | null = null
  /** Reserved since this account was last asked for: what the next ask should bring. */
  reserved = 0

  constructor({ account, rounds, granted, returned, settled }: CellTotals, now: number) {
    this.account = account
    this.rounds = rounds
    this.granted = granted
    this.returned = this.sayable = this.heard = returned
    this.settled = settled
    this.usedAt = now
  }

  get balance(): number {
    return outstanding(this) - this.open
  }

  /** Takes in what the ledger says was granted; false where that is nothing new. */
  adopt(totals: CellTotals): boolean {
    this.#goOn(totals.rounds)
    const { granted } = inRound(totals, this.rounds)
    if (granted <= this.granted) return false
    this.granted = granted
    return true
  }

  /** The control plane has answered to this report. */
  hear(report: CellReport): void {
    this.heard = Math.max(this.heard, inRound(report, this.rounds).returned)
  }

  report(): CellReport {
    const { account, rounds, granted, sayable, settled, open } = this
    return { account, rounds, granted, returned: sayable, settled, open }
  }

  #goOn(rounds: number): void {
    if (rounds <= this.rounds) return
    const off = (rounds - this.rounds) * roundSize
    this.rounds = rounds
    this.granted -= off
    this.returned -= off
    this.sayable -= off
    this.heard -= off
  }
}

/** What the worker says of an account that it knows no cell of. */
export const noCell = (account: string): CellReport => ({
  account,
  rounds: 0,
  granted: 0,
  returned: 0,
  settled: 0,
  open: 0,
})
