/**
 * What one exchange holds on a worker. `book` and `release` give it back: `book` without the amounts that were used,
 * `release` in full. The gateway calls them in `bookLimits` (gateway/accounting/settlement.ts).
 */
import type { Reservation, ReservedAmount } from '../../usage-limits.ts'
import { maxAmount } from '../lease.ts'
import type { WorkerBalance } from './worker-balance.ts'

/** What a reservation needs from `WorkerUsage`. */
interface ReservingUsage {
  extend(reservation: WorkerReservation, more: readonly ReservedAmount[]): boolean
  book(balance: WorkerBalance, held: number, used: number): void
}

export class WorkerReservation implements Reservation {
  readonly #usage: ReservingUsage
  readonly #balances: WorkerBalance[] = []
  readonly #held: ReservedAmount[] = []
  #settled = false

  constructor(usage: ReservingUsage) {
    this.#usage = usage
  }

  add(balance: WorkerBalance, amount: number): void {
    const index = this.#balances.indexOf(balance)
    const held = (this.#held[index]?.amount ?? 0) + amount
    // Replaced, not changed: callers keep the list that they read.
    this.#held[index < 0 ? this.#balances.push(balance) - 1 : index] = { account: balance.account, amount: held }
  }

  get held(): readonly ReservedAmount[] {
    return this.#held
  }

  extend(more: readonly ReservedAmount[]): boolean {
    return !this.#settled && this.#usage.extend(this, more)
  }

  book(used: readonly ReservedAmount[]): readonly ReservedAmount[] {
    if (this.#settled) return []
    this.#settled = true
    const settled: ReservedAmount[] = []
    for (const [index, balance] of this.#balances.entries()) {
      const amount = Math.min(amountOf(used, balance.account), maxAmount)
      this.#usage.book(balance, this.#held[index]?.amount ?? 0, amount)
      settled.push({ account: balance.account, amount })
    }
    return settled
  }

  release(): void {
    this.book([])
  }
}

function amountOf(used: readonly ReservedAmount[], name: string): number {
  for (const { account, amount } of used) if (account === name) return amount
  return 0
}
