/** A lane's own share of one account, in memory. */
import { type CellReport, type CellTotals, outstanding } from './lease.ts'

export class LaneCell implements CellTotals {
  readonly account: string
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

  constructor({ account, granted, returned, settled }: CellTotals, now: number) {
    this.account = account
    this.granted = granted
    this.returned = this.sayable = this.heard = returned
    this.settled = settled
    this.usedAt = now
  }

  get balance(): number {
    return outstanding(this) - this.open
  }

  report(): CellReport {
    const { account, granted, sayable, settled, open } = this
    return { account, granted, returned: sayable, settled, open }
  }
}

/** What the lane says of an account that it knows no cell of. */
export const noCell = (account: string): CellReport => ({ account, granted: 0, returned: 0, settled: 0, open: 0 })
