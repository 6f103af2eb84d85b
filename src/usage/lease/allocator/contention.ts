/**
 * Contention: less is free than was asked for. What other workers hold is recalled before anybody gets less or is
 * refused (usage/lease/README.md rules 10 and 11). A pure function of its arguments.
 */

import { type BalanceReport, inRound, outstanding, recallWaitMs } from '../lease.ts'
import type { LedgerBalance } from './balance-ledger.ts'

export interface Need {
  worker: string
  want: number
  min: number
  /** Monotonic. */
  arrivedAt: number
  /** How long the oldest request had waited when the grant request arrived, in milliseconds. */
  waited: number
  /** How long a request may wait in all for amounts held by others, in milliseconds. */
  wait: number
}

export interface AccountState {
  limit: number
  /** The ledger's balances of the account, plus grants to earlier needs. */
  balances: readonly LedgerBalance[]
  /** Each worker's last report since the contention began. */
  reports: ReadonlyMap<string, BalanceReport>
  connected(worker: string): boolean
  /** Connected, and has reported this account recently: it is only slow to report a new grant. */
  inReach(worker: string): boolean
  /** Whether other workers ask for this account too. */
  othersAsk: boolean
  /** Whether amounts of running requests may come back (money may, requests may not). */
  mayComeBack: boolean
  now: number
}

export type Decision =
  | { kind: 'wait' }
  | { kind: 'grant'; amount: number; partial: boolean }
  | { kind: 'refuse'; reason: 'exhausted' | 'held' | 'unknown' }

/** Workers, except this one, with an outstanding amount that they have not reported since the recall. */
export const unresponsiveHolders = (worker: string | null, { balances, reports }: AccountState): LedgerBalance[] =>
  balances.filter(
    (balance) =>
      balance.worker !== worker && outstanding(balance) > 0 && !hasAnswered(balance, reports.get(balance.worker)),
  )

/** A report counts only if it includes the last grant and keeps nothing but open amounts. */
function hasAnswered(balance: LedgerBalance, report: BalanceReport | undefined): boolean {
  if (report === undefined) return false
  const answer = inRound(report, balance.rounds)
  if (answer.granted !== balance.granted) return false
  const returned = Math.max(balance.returned, answer.returned)
  return balance.granted - returned - Math.max(balance.settled, answer.settled) - answer.open <= 0
}

/**
 * Tries in this order: grant all; grant what is there if it is enough; wait for what may come back; refuse with a
 * reason.
 */
export function decide(need: Need, state: AccountState): Decision {
  const { limit, balances, reports, now } = state
  const least = Math.max(1, need.min)
  const room = roomOf(need, limit, state)
  if (room < least) return { kind: 'wait' }
  const free = Math.min(room, limit - balances.reduce((sum, { granted, returned }) => sum + granted - returned, 0))
  if (free >= need.want) return { kind: 'grant', amount: need.want, partial: false }
  const spent = totalSettled(state)
  if (limit - spent < least) return { kind: 'refuse', reason: 'exhausted' }
  const silent = unresponsiveHolders(need.worker, state)
  const waited = now - need.arrivedAt
  if (waited < recallWaitMs && silent.some(({ worker }) => state.connected(worker))) return { kind: 'wait' }
  if (free >= least) return { kind: 'grant', amount: free, partial: true }
  // The asking worker's own returns may be on their way, and so may the reports of others.
  const comesBack =
    unresponsiveHolders(null, state).length > 0 ||
    (state.mayComeBack && [...reports.values()].some(({ open }) => open > 0))
  if (comesBack && waited + need.waited < need.wait) return { kind: 'wait' }
  if (silent.some(({ worker }) => !state.inReach(worker))) return { kind: 'refuse', reason: 'unknown' }
  return { kind: 'refuse', reason: comesBack || state.mayComeBack ? 'held' : 'exhausted' }
}

/** The settled sum of an account, from the ledger or from reports that are ahead of it. */
export const totalSettled = ({ balances, reports }: Pick<AccountState, 'balances' | 'reports'>): number =>
  balances.reduce((sum, { worker, settled }) => sum + Math.max(settled, reports.get(worker)?.settled ?? settled), 0)

/**
 * How much a worker may get. While others request too, it gets at most half of the account, and waits for them
 * otherwise. A worker that holds nothing gets what a single request needs, even above half.
 */
function roomOf(
  { worker, min, want, arrivedAt, waited, wait }: Need,
  limit: number,
  { balances, othersAsk, now }: AccountState,
) {
  if (!othersAsk || now - arrivedAt + waited >= wait) return want
  const own = balances.find((balance) => balance.worker === worker)
  const held = own === undefined ? 0 : outstanding(own)
  const room = Math.floor(limit / 2) - held
  return held <= 0 && room < min ? want : room
}

/** Whether the grant request would give the worker more than half of the account. */
export const aboveHalf = ({ worker, want }: Need, { limit, balances }: AccountState): boolean =>
  balances.reduce((sum, balance) => sum + (balance.worker === worker ? outstanding(balance) : 0), want) > limit / 2
