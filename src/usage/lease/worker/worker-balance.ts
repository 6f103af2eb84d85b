/** A worker's own share of one account, in memory. */
import { type BalanceReport, type BalanceTotals, inRound, outstanding, roundSize } from '../lease.ts'

export class WorkerBalance implements BalanceTotals {
  readonly account: string
  rounds: number
  granted: number
  /** With what was given back but may not be said yet, because the outcomes that freed it are not committed. */
  returned: number
  settled: number
  open = 0
  /** What may be said to be returned, and what the control plane is known to have heard of it. */
  reportable: number
  acknowledgedReturned: number
  /** Monotonic. */
  usedAt: number
  /** Events up to this number hold everything that was settled here; null where that is not known yet. */
  settledBy: number | null = null
  /** Reserved since this account was last asked for: what the next ask should bring. */
  reserved = 0

  constructor({ account, rounds, granted, returned, settled }: BalanceTotals, now: number) {
    this.account = account
    this.rounds = rounds
    this.granted = granted
    this.returned = this.reportable = this.acknowledgedReturned = returned
    this.settled = settled
    this.usedAt = now
  }

  get available(): number {
    return outstanding(this) - this.open
  }

  /** Takes in what the ledger says was granted; false where that is nothing new. */
  adopt(totals: BalanceTotals): boolean {
    this.#goOn(totals.rounds)
    const { granted } = inRound(totals, this.rounds)
    if (granted <= this.granted) return false
    this.granted = granted
    return true
  }

  /** The control plane has answered to this report. */
  acknowledge(report: BalanceReport): void {
    this.acknowledgedReturned = Math.max(this.acknowledgedReturned, inRound(report, this.rounds).returned)
  }

  report(): BalanceReport {
    const { account, rounds, granted, reportable, settled, open } = this
    return { account, rounds, granted, returned: reportable, settled, open }
  }

  #goOn(rounds: number): void {
    if (rounds <= this.rounds) return
    const off = (rounds - this.rounds) * roundSize
    this.rounds = rounds
    this.granted -= off
    this.returned -= off
    this.reportable -= off
    this.acknowledgedReturned -= off
  }
}

/** What the worker says of an account that it knows no balance of. */
export const zeroBalance = (account: string): BalanceReport => ({
  account,
  rounds: 0,
  granted: 0,
  returned: 0,
  settled: 0,
  open: 0,
})
