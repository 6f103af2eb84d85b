/** What a lane holds for one exchange. */
import type { Held, Reservation } from './allowance.ts'
import type { LaneCell } from './lane-cell.ts'
import type { LaneUsage } from './lane-usage.ts'
import { mostHeld } from './lease.ts'

interface Share {
  cell: LaneCell
  amount: number
}

export class LaneReservation implements Reservation {
  readonly #usage: LaneUsage
  readonly #shares: Share[] = []
  #settled = false

  constructor(usage: LaneUsage) {
    this.#usage = usage
  }

  add(cell: LaneCell, amount: number): void {
    const known = this.#shares.find((share) => share.cell === cell)
    if (known === undefined) this.#shares.push({ cell, amount })
    else known.amount += amount
  }

  get held(): readonly Held[] {
    return this.#shares.map(({ cell, amount }) => ({ account: cell.account, amount }))
  }

  extend(more: readonly Held[]): boolean {
    return !this.#settled && this.#usage.extend(this, more)
  }

  settle(used: readonly Held[]): readonly Held[] {
    if (this.#settled) return []
    this.#settled = true
    return this.#shares.map(({ cell, amount }) => {
      const use = Math.min(used.find(({ account }) => account === cell.account)?.amount ?? 0, mostHeld)
      this.#usage.settle(cell, amount, use)
      return { account: cell.account, amount: use }
    })
  }

  release(): void {
    this.settle([])
  }
}
