/**
 * The messages between a worker and the control plane about usage, and their arithmetic (usage/lease/README.md).
 *
 * An account is one limit. balance(account, worker) has three counters that only grow: `granted`, which the control
 * plane raises, and `returned` and `settled`, which the worker raises. Every message carries totals and its receiver
 * takes the maximum, so lost, repeated and reordered messages do no harm. Two invariants give the guarantee:
 *
 *  control plane   sum over workers of (granted − returned) ≤ limit, checked and raised in one ledger transaction
 *  worker          settled + open ≤ granted − returned
 *
 * So the sum of `settled` never exceeds the limit, whatever the clocks say.
 *
 * Based on escrow transactions (O'Neil, "The Escrow Transactional Method", TODS 1986): an amount is reserved before the
 * work begins, without a lock on the rest; at the end the used part is taken and the rest goes back; a worst-case test
 * admits concurrent work. Different here: the quantity is split among holders that may be unreachable, as in later site
 * escrows, so there are leases to recall; the settled amount is what the work turned out to cost; nothing is rolled
 * back, since a provider cannot be; and no holder is believed beyond its grants.
 *
 * Messages carry no history: only the journal remembers a worker's former process. The ledger knows what a process held
 * when it died. That becomes free when the worker's next process registers and every event up to `through` is in the
 * ledger. These include the outcome of each opened exchange, settled at the full reserved amount if unknown. So a
 * worker needs no records of grants and returns.
 */

export interface BalanceTotals {
  /** The account's booked name. For a budget with windows it ends in `@` and the start of the window. */
  account: string
  /**
   * `granted` and `returned` grow without end, but only their difference matters. For every `roundSize` that came back
   * the control plane subtracts it from both and adds a round. The true counters are higher by `rounds` times
   * `roundSize`.
   */
  rounds: number
  granted: number
  returned: number
  settled: number
}

/**
 * A balance as its worker sees it. `open` is what running exchanges hold. All zero if the worker does not know the
 * balance.
 */
export interface BalanceReport extends BalanceTotals {
  open: number
}

export interface GrantRequest {
  /** The account's plain name, without a window. */
  account: string
  /** The sum that waiting requests need, or what is fetched ahead of need. */
  want: number
  /** The smallest amount that serves any waiting request; 0 if none waits. */
  min: number
  /** How long the oldest waiting request has waited, in milliseconds. */
  waited: number
  /** How long a request may wait in all for amounts held by others, in milliseconds. */
  wait: number
  /**
   * The worker keeps only open amounts of this account. The grant requests near a limit of one message are granted
   * together or not at all.
   */
  near_limit: boolean
}

export interface Registration {
  /**
   * Events of the worker's chain up to this number must be in the ledger before balances that are not reported are
   * freed.
   */
  through: number
  /**
   * The last event whose settlement the balances include. Events are shipped during a registration, so a later
   * settlement in the ledger does not show that the worker's memory is old.
   */
  counted: number
  /** The host went down or records were lost: the former process may have spent what it held. */
  crashed: boolean
}

export interface LeaseRequest {
  /** Identifies the worker's process. A new process does not own the balances of an earlier one. */
  process: string
  /** Grows with each message of a process. A repeated message counts once, and an overtaken registration not at all. */
  number: number
  registration: Registration | null
  grant_requests: readonly GrantRequest[]
  balances: readonly BalanceReport[]
}

/** The answer to a grant request. The reply has the balance too. */
export interface Grant {
  account: string
  booked: string
  /** Little is left: the worker asks for nothing ahead and returns at once what is not open. */
  near_limit: boolean
  /** Less than was asked for, but all there is. */
  partial: boolean
  /** The end of the window, in milliseconds since the epoch; null if there is none. */
  until: number | null
}

export interface LeaseRefusal {
  account: string
  /** `too_many_values`: a limit for each value of a dimension, and there are too many values. */
  reason: 'exhausted' | 'short' | 'held' | 'unknown' | 'too_many_values'
  /** Seconds; null if waiting does not help. */
  retry_after: number | null
  /** What is left, including what running requests hold; null if unknown. */
  left: number | null
  /** The end of the refused window, in milliseconds since the epoch; null if there is none. */
  until: number | null
}

export interface LeaseReply {
  /** `behind`: events up to `through` are missing. `needed`: this process must register first. */
  registration: 'done' | 'behind' | 'needed' | null
  balances: readonly BalanceTotals[]
  grants: readonly Grant[]
  refusals: readonly LeaseRefusal[]
  /**
   * Accounts with too little left for an immediate answer. The worker asks again with `near_limit` and keeps nothing
   * back.
   */
  deferred: readonly string[]
}

/**
 * The longest that a request may wait for amounts held by others; the upper bound of the setting `usage_wait_seconds`.
 */
export const maxUsageWaitMs = 10_000
/** How long a grant request waits for answers to a recall. */
export const recallWaitMs = 1000

/** How long a worker waits for the reply to a message: longer if it asks near a limit. */
export const answerWithinMs = ({ grant_requests }: LeaseRequest): number =>
  Math.max(
    1000,
    ...grant_requests.map(({ near_limit, wait }) => (near_limit ? Math.max(wait, recallWaitMs) + 1500 : 0)),
  )

export const roundSize = 2 ** 40
/** The largest balance, and the largest grant request. Together with a round they are still exact integers. */
export const maxAmount = 9e15
export const maxRequestedAmount = 2 ** 50

/** The same counters relative to another round. Relative to a later round an older message may be negative. */
export function inRound<Balance extends BalanceTotals>(balance: Balance, rounds: number): Balance {
  if (balance.rounds === rounds) return balance
  const off = (rounds - balance.rounds) * roundSize
  return { ...balance, rounds, granted: balance.granted - off, returned: balance.returned - off }
}

/** How much higher `granted` is in one than in the other, compared in the later round. */
export function grantedBeyond(one: BalanceTotals, other: BalanceTotals): number {
  const rounds = Math.max(one.rounds, other.rounds)
  return inRound(one, rounds).granted - inRound(other, rounds).granted
}

/** The part of a grant that is neither returned nor settled. */
export const outstanding = ({ granted, returned, settled }: BalanceTotals): number => granted - returned - settled

/** The account's name without the window. */
export function plainName(booked: string): string {
  const at = booked.indexOf('@')
  return at < 0 ? booked : booked.slice(0, at)
}

/** Whether amounts of running requests may come back: money may, but an opened request counts. */
export const mayComeBack = (account: string): boolean => account.endsWith('/money') || account.startsWith('budget/')
