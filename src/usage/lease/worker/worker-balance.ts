/** A worker's own share of one account, in memory. */
import { type BalanceReport, type BalanceTotals, inRound, outstanding, roundSize } from '../lease.ts'

export class WorkerBalance implements BalanceTotals {
  readonly account: string
  rounds: number
  granted: number
  /** Includes returns that may not be reported yet, because the outcomes that freed them are not committed. */
  returned: number
  settled: number
  open = 0
  /** How much of `returned` may be reported, and how much of it the control plane has acknowledged. */
  reportable: number
  acknowledgedReturned: number
  /** Monotonic. */
  usedAt: number
  /** Events up to this number contain everything that was settled here; null if not known yet. */
  settledBy: number | null = null
  /** Reserved since the last ask for this account. The next ask requests as much. */
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

  /** Applies the granted total of the ledger. Returns false if nothing is new. */
  adopt(totals: BalanceTotals): boolean {
    this.#goOn(totals.rounds)
    const { granted } = inRound(totals, this.rounds)
    if (granted <= this.granted) return false
    this.granted = granted
    return true
  }

  /** The control plane has answered this report. */
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

/** What a worker reports of an account without a balance. */
export const zeroBalance = (account: string): BalanceReport => ({
  account,
  rounds: 0,
  granted: 0,
  returned: 0,
  settled: 0,
  open: 0,
})
