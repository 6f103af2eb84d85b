/** Requests that wait for their limits, in order of arrival. A waiting request holds nothing: it gets all or none. */

import type { WorkerAccount, WorkerAccounts } from './lease/worker/worker-accounts.ts'
import type { AccountName, Demand, Reservation } from './usage-limits.ts'

export interface WaitingRequest {
  readonly number: number
  readonly demands: readonly Demand[]
  /** When it arrived, monotonic. */
  readonly since: number
  resolve(reservation: Reservation): void
  reject(reason: unknown): void
}

export interface TotalDemand {
  want: number
  min: number
  /** When the oldest arrived, monotonic. */
  since: number
}

export class WaitingRequests {
  readonly #accounts: WorkerAccounts
  readonly #waiting = new Map<number, WaitingRequest>()
  #number = 0

  constructor(accounts: WorkerAccounts) {
    this.#accounts = accounts
  }

  /** The number of the latest request. */
  get last(): number {
    return this.#number
  }

  get size(): number {
    return this.#waiting.size
  }

  add(request: Omit<WaitingRequest, 'number'>): WaitingRequest {
    const added = { ...request, number: ++this.#number }
    this.#waiting.set(added.number, added)
    for (const { account } of added.demands) this.#accounts.get(account).waiting++
    return added
  }

  remove(request: WaitingRequest): boolean {
    if (!this.#waiting.delete(request.number)) return false
    for (const { account } of request.demands) this.#accounts.get(account).waiting--
    return true
  }

  /**
   * The demands of waiting requests, grouped by the set of accounts: for each account the sum, and the least that
   * serves any request.
   */
  totalDemands(): Map<AccountName, TotalDemand>[] {
    const groups = new Map<string, Map<AccountName, TotalDemand>>()
    for (const { demands, since } of this.#waiting.values()) {
      const key = demands.map(({ account }) => account).join('\n')
      const sums = groups.get(key) ?? new Map<AccountName, TotalDemand>()
      groups.set(key, sums)
      for (const { account, want, min } of demands) {
        const known = sums.get(account)
        sums.set(account, {
          want: (known?.want ?? 0) + want,
          min: Math.min(known?.min ?? min, min),
          since: known?.since ?? since,
        })
      }
    }
    return [...groups.values()]
  }

  /**
   * The requests that can be served now, first come first served on each account, with their shares. `partial` names
   * accounts whose whole rest the worker has: a request takes less than it wants there, down to its minimum, and one
   * that needs more does not block the others.
   */
  *served(partial: ReadonlySet<AccountName>): Generator<[WaitingRequest, [WorkerAccount, number][]]> {
    const blocked = new Set<AccountName>()
    for (const request of [...this.#waiting.values()]) {
      if (request.demands.some(({ account }) => blocked.has(account))) continue
      const shares: [WorkerAccount, number][] = []
      let served = true
      for (const { account: name, want, min } of request.demands) {
        const account = this.#accounts.get(name)
        const balance = this.#accounts.available(account)
        const enough = balance >= (partial.has(name) ? Math.max(1, min) : want)
        if (enough) shares.push([account, Math.min(want, balance)])
        else {
          served = false
          if (!partial.has(name)) blocked.add(name)
        }
      }
      if (served && this.remove(request)) yield [request, shares]
    }
  }

  /**
   * Removes and returns the requests with a number up to `upTo`, arrived by `arrivedBy`, whose minimum the account
   * cannot cover.
   */
  takeRefused(account: WorkerAccount, upTo: number, arrivedBy: number): WaitingRequest[] {
    const balance = this.#accounts.available(account)
    return [...this.#waiting.values()].filter(
      (request) =>
        request.number <= upTo &&
        request.since <= arrivedBy &&
        request.demands.some(({ account: name, min }) => name === account.name && min > balance) &&
        this.remove(request),
    )
  }
}
