/**
 * What a worker and the control plane say to each other about usage, and the arithmetic both go by
 * (usage/lease/README.md).
 *
 * An account is one limit. balance(account, worker) holds three counters that only grow: granted (the control plane raises
 * it), returned and settled (the worker does). Every message carries totals and its receiver takes the maximum, so loss,
 * repetition and reordering need no care of their own. Two rules make the claim:
 *
 *   control plane   sum over workers of (granted − returned) ≤ limit, checked and raised in one ledger transaction
 *   worker            settled + open ≤ granted − returned
 *
 * so the sum of what is settled never passes the limit, whatever the clocks say.
 *
 * From escrow transactions (O'Neil, "The Escrow Transactional Method", TODS 1986): an amount is set aside before the work
 * begins, without locking the rest of the quantity; at the end what was used is taken and what was not goes back; a test
 * of the worst case admits concurrent work. Not from there: the quantity is split among holders that may be out of reach
 * (as in later site escrows), so there are leases to call back; amounts are settled by what the work turned out to cost;
 * nothing is ever rolled back, since a provider cannot be; and no holder's word is taken for more than it was granted.
 *
 * A message has no history behind it: of a worker's former process nothing is remembered but its journal. What a process
 * held when it died is known to the ledger, and becomes free when the worker's next process says hello, once every event
 * up to `through` is in the ledger: the outcome of each exchange that was opened is among them, settled at its full
 * reserved amount where none was known. So grants and returns need no records of their own on the worker.
 */

export interface BalanceTotals {
  /** The account as it is booked: of a budget with windows, the start of the window stands behind an `@`. */
  account: string
  /**
   * `granted` and `returned` grow without end, and what matters is their difference. So for every `roundSize` that came
   * back the control plane takes as much off both and counts a round: the true counters are more by `rounds` of them.
   */
  rounds: number
  granted: number
  returned: number
  settled: number
}

/** A balance as its worker sees it: `open` is what running exchanges hold. All zero where the worker knows no such balance. */
export interface BalanceReport extends BalanceTotals {
  open: number
}

export interface Ask {
  /** The account by its plain name, without a window. */
  account: string
  /** All that waits, or what is good to have before it is needed. */
  want: number
  /** The least that serves any request that waits; 0 where none does. */
  min: number
  /** For how long the oldest of those that wait has waited already, in milliseconds. */
  waited: number
  /** How long a request may wait in all for what others hold, in milliseconds. */
  wait: number
  /**
   * The worker keeps nothing of this account that is not open. Tight asks of one message belong together: all of them are
   * granted, or none.
   */
  tight: boolean
}

export interface Registration {
  /** Events of the worker's chain that must be in the ledger before what is not among `balances` is free. */
  through: number
  /**
   * The last event whose settlement the balances count. Events are shipped while a hello is on its way: what a later one has
   * settled says nothing of this worker's memory.
   */
  counted: number
  /** The host went down, or records were lost: what the former process held may have been spent. */
  crashed: boolean
}

export interface LeaseRequest {
  /** Names the worker's process: what another one held is not this one's. */
  process: string
  /** Grows with each message of a process: one that comes twice counts once, a hello that was overtaken not at all. */
  number: number
  registration: Registration | null
  asks: readonly Ask[]
  balances: readonly BalanceReport[]
}

/** An answer to an ask; its balance stands among the reply's. */
export interface Grant {
  account: string
  booked: string
  /** Little is left: nothing is asked for ahead, and what is not open goes back at once. */
  tight: boolean
  /** Less than was asked for, and all there is. */
  partial: boolean
  /** The end of the window, milliseconds since the epoch; null where there is none. */
  until: number | null
}

export interface LeaseRefusal {
  account: string
  reason: 'exhausted' | 'short' | 'held' | 'unknown'
  /** Seconds; null where waiting does not help. */
  retry_after: number | null
  /** What is left with what running requests hold; null where that is not known. */
  left: number | null
  /** The end of the window that this is about, milliseconds since the epoch; null where there is none. */
  until: number | null
}

export interface LeaseReply {
  /** `behind`: events up to `through` are still missing. `needed`: this process has to say hello first. */
  registration: 'done' | 'behind' | 'needed' | null
  balances: readonly BalanceTotals[]
  grants: readonly Grant[]
  refusals: readonly LeaseRefusal[]
  /** Accounts of which too little is left to answer at once: to be asked again as tight, with nothing kept back. */
  later: readonly string[]
}

/** How long a request may wait for what others hold, in all, at most; the setting `usage_wait_seconds` goes up to it. */
export const maxUsageWaitMs = 10_000
/** How long an ask waits for the answers to a recall. */
export const recallWaitMs = 1000

/** When a worker gives a message up that is not answered: one that may be waited with takes longer. */
export const answerWithinMs = ({ asks }: LeaseRequest): number =>
  Math.max(1000, ...asks.map(({ tight, wait }) => (tight ? Math.max(wait, recallWaitMs) + 1500 : 0)))

export const roundSize = 2 ** 40
/** The most of an account that is granted at a time, and of one ask: with a round beside it, still exact integers. */
export const maxAmount = 9e15
export const maxAskAmount = 2 ** 50

/** The same counters told from another round. From a later one, those of an older message may be negative. */
export function inRound<Balance extends BalanceTotals>(balance: Balance, rounds: number): Balance {
  if (balance.rounds === rounds) return balance
  const off = (rounds - balance.rounds) * roundSize
  return { ...balance, rounds, granted: balance.granted - off, returned: balance.returned - off }
}

/** How much more was granted as one tells than as the other does, both told from the later round. */
export function grantedBeyond(one: BalanceTotals, other: BalanceTotals): number {
  const rounds = Math.max(one.rounds, other.rounds)
  return inRound(one, rounds).granted - inRound(other, rounds).granted
}

/** What of a grant is neither returned nor settled. */
export const outstanding = ({ granted, returned, settled }: BalanceTotals): number => granted - returned - settled

/** The plain name of an account as it is booked. */
export function plainName(booked: string): string {
  const at = booked.indexOf('@')
  return at < 0 ? booked : booked.slice(0, at)
}

/** Whether what an account's running requests hold may come back: money does, a request that was opened counts. */
export const mayComeBack = (account: string): boolean => account.endsWith('/money') || account.startsWith('budget/')
