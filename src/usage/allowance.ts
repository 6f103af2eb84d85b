/**
 * What a request asks of the limits it draws on, and what it gets (usage/lease/README.md). An account is one limit: a
 * token's requests, a token's money, a budget's window. Amounts are requests, or nano-dollars.
 */

/** Names an account: `token/<id>/requests`, `token/<id>/money`, `budget/<id>`. */
export type AccountName = string

export interface Demand {
  account: AccountName
  want: number
  /** The least with which the request can still be served, 1 or more; equal to `want` where it cannot be lowered. */
  min: number
}

export interface HeldAmount {
  /** The account as it is booked, a budget's window start included. */
  account: AccountName
  amount: number
}

/**
 * Why a limit refuses: it is used up; what is left of it pays for other requests, but not for this one; the rest is held by
 * requests that run; or part of it is out of reach.
 */
export type RefusalCause = 'exhausted' | 'short' | 'held' | 'unknown'

export class UsageRefused extends Error {
  override readonly name = 'UsageRefused'
  readonly account: AccountName
  readonly reason: RefusalCause
  /** Whole seconds after which it makes sense to try again. */
  readonly retryAfter: number | null
  /** What is left of it, with what running requests hold; null where that is not known. */
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
  readonly held: readonly HeldAmount[]
  /** Holds more, for a dearer attempt; false where it cannot be had at once. */
  extend(more: readonly HeldAmount[]): boolean
  /**
   * Books what was used of each account and gives the rest back to the worker's balance; to be called in the tick in
   * which the outcome is written, whose `settlements` are what it returns. Once only.
   */
  book(used: readonly HeldAmount[]): readonly HeldAmount[]
  /** Gives everything back: nothing was opened. */
  release(): void
}

export interface Allowances {
  /**
   * Reserves on all accounts or on none; at once where the worker's balances suffice. Throws or rejects with
   * `UsageRefused`, or a RangeError where nothing is demanded of an account. An empty list gives a reservation that
   * holds nothing; no account stands in it twice.
   */
  reserve(demands: readonly Demand[], signal: AbortSignal): Reservation | Promise<Reservation>
  /** Whether the worker already has the ledger's word that nothing is left of this account; never asks. */
  exhausted(account: AccountName): boolean
}
