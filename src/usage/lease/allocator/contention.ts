/**
 * The end of an account: less is free than is asked for, so what other workers hold is called back before anybody gets
 * less or is refused (usage/lease/README.md rules 10 and 11). Pure: what is known goes in, what each need gets comes
 * out.
 */

import { type BalanceReport, inRound, outstanding, recallWaitMs } from '../lease.ts'
import type { LedgerBalance } from './balance-ledger.ts'

export interface Need {
  worker: string
  want: number
  min: number
  /** Monotonic. */
  arrivedAt: number
  /** Milliseconds for which somebody had waited when it arrived. */
  waited: number
  /** For how many milliseconds it may wait in all for what others hold. */
  wait: number
}

export interface AccountState {
  limit: number
  /** The ledger's balances of the account, with what has been granted to earlier needs. */
  balances: readonly LedgerBalance[]
  /** What each worker last said of its balance since the end game began. */
  reports: ReadonlyMap<string, BalanceReport>
  connected(worker: string): boolean
  /** Connected, and heard of this account lately: only slow to say what of a new grant is open. */
  inReach(worker: string): boolean
  /** Whether workers beside the one that is decided on wait for some of it too. */
  othersAsk: boolean
  /** What running requests hold of this account may come back. */
  mayComeBack: boolean
  now: number
}

export type Decision =
  | { kind: 'wait' }
  | { kind: 'grant'; amount: number; partial: boolean }
  | { kind: 'refuse'; reason: 'exhausted' | 'held' | 'unknown' }

/** Workers other than this one that hold something which they have not accounted for since they were asked. */
export const unresponsiveHolders = (worker: string | null, { balances, reports }: AccountState): LedgerBalance[] =>
  balances.filter(
    (balance) =>
      balance.worker !== worker && outstanding(balance) > 0 && !hasAnswered(balance, reports.get(balance.worker)),
  )

/** An answer that is older than a grant does not count, and neither does one that keeps what is not open. */
function hasAnswered(balance: LedgerBalance, report: BalanceReport | undefined): boolean {
  if (report === undefined) return false
  const answer = inRound(report, balance.rounds)
  if (answer.granted !== balance.granted) return false
  const returned = Math.max(balance.returned, answer.returned)
  return balance.granted - returned - Math.max(balance.settled, answer.settled) - answer.open <= 0
}

/** In this order: all; what there is, if that is enough; wait for what may come back; refuse, saying why. */
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
  // What the asking worker's own requests have just given back is on its way, as is what others have not accounted for.
  const comesBack =
    unresponsiveHolders(null, state).length > 0 ||
    (state.mayComeBack && [...reports.values()].some(({ open }) => open > 0))
  if (comesBack && waited + need.waited < need.wait) return { kind: 'wait' }
  if (silent.some(({ worker }) => !state.inReach(worker))) return { kind: 'refuse', reason: 'unknown' }
  return { kind: 'refuse', reason: comesBack || state.mayComeBack ? 'held' : 'exhausted' }
}

/** What is settled of an account: as the ledger has it, or as a worker says that it will have it. */
export const totalSettled = ({ balances, reports }: Pick<AccountState, 'balances' | 'reports'>): number =>
  balances.reduce((sum, { worker, settled }) => sum + Math.max(settled, reports.get(worker)?.settled ?? 0), 0)

/**
 * While others ask no worker gets above half of an account; one that has as much waits for them, as long as anybody waits.
 * A worker that holds nothing gets what a single request needs, be it more.
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

/** Whether what is asked for would take a worker above half of an account. */
export const aboveHalf = ({ worker, want }: Need, { limit, balances }: AccountState): boolean =>
  balances.reduce((sum, balance) => sum + (balance.worker === worker ? outstanding(balance) : 0), want) > limit / 2
