/**
 * What a request demands of its limits, and the reservation it gets (usage/lease/README.md). An account is one limit:
 * a token's requests, a token's money, or a budget's window. Amounts are requests or nano-dollars.
 */

/** Names an account: `token/<id>/requests`, `token/<id>/money`, `budget/<id>`. */
export type AccountName = string

export interface Demand {
  account: AccountName
  want: number
  /** The least that still serves the request, 1 or more; equal to `want` if it cannot be lowered. */
  min: number
}

export interface ReservedAmount {
  /** The account's booked name, with a budget's window start. */
  account: AccountName
  amount: number
}

/**
 * Why a limit refuses: used up; too little is left for this request, but enough for others; the rest is held by
 * running requests; part of it is unreachable; or it is a limit for each value, and there are too many values.
 */
export type RefusalCause = 'exhausted' | 'short' | 'held' | 'unknown' | 'too_many_values'

export class UsageRefused extends Error {
  override readonly name = 'UsageRefused'
  readonly account: AccountName
  readonly reason: RefusalCause
  /** Whole seconds after which a retry makes sense. */
  readonly retryAfter: number | null
  /** What is left, including what running requests hold; null if unknown. */
  readonly left: number | null

  constructor(
    account: AccountName,
    reason: RefusalCause,
    { retryAfter = null, left = null }: { retryAfter?: number | null; left?: number | null } = {},
  ) {
    super(`${account}: ${reason}`)
    this.account = account
    this.reason = reason
    this.retryAfter = retryAfter
    this.left = left
  }
}

export interface Reservation {
  readonly held: readonly ReservedAmount[]
  /** Reserves more, for a more expensive attempt. False if that is not possible at once. */
  extend(more: readonly ReservedAmount[]): boolean
  /**
   * Books the used amounts and returns the rest to the worker's balance. Call it once, in the tick that writes the
   * outcome, with the result as the outcome's `settlements`.
   */
  book(used: readonly ReservedAmount[]): readonly ReservedAmount[]
  /** Returns everything: nothing was opened. */
  release(): void
}

export interface UsageLimits {
  /**
   * Reserves on all accounts or on none, at once if the worker's balances suffice. Throws or rejects with
   * `UsageRefused`, or a RangeError if a demand is zero. An empty list gives a reservation that holds nothing. Each
   * account appears once.
   */
  reserve(demands: readonly Demand[], signal: AbortSignal): Reservation | Promise<Reservation>
  /** Whether the ledger has already said that nothing is left of this account. Never asks. */
  exhausted(account: AccountName): boolean
}
