/** What a worker holds for one exchange. */
import type { Held, Reservation } from '../../allowance.ts'
import { mostHeld } from '../lease.ts'
import type { WorkerCell } from './worker-balance.ts'

/** What a reservation asks of the usage that made it. */
interface ReservingUsage {
  extend(reservation: WorkerReservation, more: readonly Held[]): boolean
  settle(cell: WorkerCell, held: number, used: number): void
}

export class WorkerReservation implements Reservation {
  readonly #usage: ReservingUsage
  readonly #cells: WorkerCell[] = []
  readonly #held: Held[] = []
  #settled = false

  constructor(usage: ReservingUsage) {
    this.#usage = usage
  }

  add(cell: WorkerCell, amount: number): void {
    const index = this.#cells.indexOf(cell)
    const held = (this.#held[index]?.amount ?? 0) + amount
    // Whoever was told what is held keeps what it was told.
    this.#held[index < 0 ? this.#cells.push(cell) - 1 : index] = { account: cell.account, amount: held }
  }

  get held(): readonly Held[] {
    return this.#held
  }

  extend(more: readonly Held[]): boolean {
    return !this.#settled && this.#usage.extend(this, more)
  }

  settle(used: readonly Held[]): readonly Held[] {
    if (this.#settled) return []
    this.#settled = true
    const settled: Held[] = []
    for (const [index, cell] of this.#cells.entries()) {
      const amount = Math.min(amountOf(used, cell.account), mostHeld)
      this.#usage.settle(cell, this.#held[index]?.amount ?? 0, amount)
      settled.push({ account: cell.account, amount })
    }
    return settled
  }

  release(): void {
    this.settle([])
  }
}

function amountOf(used: readonly Held[], name: string): number {
  for (const { account, amount } of used) if (account === name) return amount
  return 0
}
