/** Limits in memory, for tests of the code that uses them: amounts are reserved, booked and given back. */
import { type Demand, type Reservation, type ReservedAmount, type UsageLimits, UsageRefused } from '../usage-limits.ts'

export class InMemoryLimits implements UsageLimits {
  /** What is left of each account; one that is not named has no limit. */
  readonly balances: Map<string, number>
  /** How often reservations were ended, by what; more than once for one of them throws. */
  settled = 0
  released = 0
  reserved = 0
  /** Milliseconds until a reservation is given. */
  delay = 0
  refuseWith: UsageRefused['reason'] = 'exhausted'

  constructor(balances: Readonly<Record<string, number>>) {
    this.balances = new Map(Object.entries(balances))
  }

  reserve(demands: readonly Demand[], signal: AbortSignal): Reservation | Promise<Reservation> {
    if (this.delay === 0) return this.#take(demands)
    return Bun.sleep(this.delay).then(() => {
      signal.throwIfAborted()
      return this.#take(demands)
    })
  }

  exhausted(account: string): boolean {
    return this.balances.get(account) === 0
  }

  #take(demands: readonly Demand[]): Reservation {
    const held: ReservedAmount[] = demands.map(({ account, want, min }) => {
      if (!(min >= 1)) throw new RangeError(`${account}: ${min} is demanded`)
      const left = this.balances.get(account) ?? Number.POSITIVE_INFINITY
      if (left < min) throw new UsageRefused(account, this.refuseWith, { left })
      return { account, amount: Math.min(want, left) }
    })
    for (const { account, amount } of held) this.#add(account, -amount)
    this.reserved += 1
    let ended = false
    const end = () => {
      if (ended) throw new Error('A reservation was ended twice')
      ended = true
    }
    return {
      held,
      extend: (more) => {
        if (more.some(({ account, amount }) => (this.balances.get(account) ?? amount) < amount)) return false
        for (const { account, amount } of more) {
          this.#add(account, -amount)
          const of = held.find((each) => each.account === account)
          if (of !== undefined) of.amount += amount
        }
        return true
      },
      book: (used) => {
        end()
        this.settled += 1
        for (const [index, { account, amount }] of held.entries())
          this.#add(account, amount - (used[index]?.amount ?? 0))
        return used
      },
      release: () => {
        end()
        this.released += 1
        for (const { account, amount } of held) this.#add(account, amount)
      },
    }
  }

  #add(account: string, amount: number): void {
    const left = this.balances.get(account)
    if (left !== undefined) this.balances.set(account, left + amount)
  }
}
