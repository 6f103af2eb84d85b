/**
 * The end of an account: less is free than is asked for, so what other workers hold is called back before anybody gets
 * less or is refused (usage/lease/README.md rules 10 and 11). Pure: what is known goes in, what each need gets comes
 * out.
 */

import { type CellReport, inRound, outstanding, recallWaitMs } from '../lease.ts'
import type { LedgerCell } from './balance-ledger.ts'

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

export interface Standings {
  limit: number
  /** The ledger's cells of the account, with what has been granted to earlier needs. */
  cells: readonly LedgerCell[]
  /** What each worker last said of its cell since the end game began. */
  reports: ReadonlyMap<string, CellReport>
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
export const silentHolders = (worker: string | null, { cells, reports }: Standings): LedgerCell[] =>
  cells.filter(
    (cell) => cell.worker !== worker && outstanding(cell) > 0 && !hasAnswered(cell, reports.get(cell.worker)),
  )

/** An answer that is older than a grant does not count, and neither does one that keeps what is not open. */
function hasAnswered(cell: LedgerCell, report: CellReport | undefined): boolean {
  if (report === undefined) return false
  const told = inRound(report, cell.rounds)
  if (told.granted !== cell.granted) return false
  const returned = Math.max(cell.returned, told.returned)
  return cell.granted - returned - Math.max(cell.settled, told.settled) - told.open <= 0
}

/** In this order: all; what there is, if that is enough; wait for what may come back; refuse, saying why. */
export function decide(need: Need, standings: Standings): Decision {
  const { limit, cells, reports, now } = standings
  const least = Math.max(1, need.min)
  const room = roomOf(need, limit, standings)
  if (room < least) return { kind: 'wait' }
  const free = Math.min(room, limit - cells.reduce((sum, { granted, returned }) => sum + granted - returned, 0))
  if (free >= need.want) return { kind: 'grant', amount: need.want, partial: false }
  const spent = settledOf(standings)
  if (limit - spent < least) return { kind: 'refuse', reason: 'exhausted' }
  const silent = silentHolders(need.worker, standings)
  const waited = now - need.arrivedAt
  if (waited < recallWaitMs && silent.some(({ worker }) => standings.connected(worker))) return { kind: 'wait' }
  if (free >= least) return { kind: 'grant', amount: free, partial: true }
  // What the asking worker's own requests have just given back is on its way, as is what others have not accounted for.
  const comesBack =
    silentHolders(null, standings).length > 0 ||
    (standings.mayComeBack && [...reports.values()].some(({ open }) => open > 0))
  if (comesBack && waited + need.waited < need.wait) return { kind: 'wait' }
  if (silent.some(({ worker }) => !standings.inReach(worker))) return { kind: 'refuse', reason: 'unknown' }
  return { kind: 'refuse', reason: comesBack || standings.mayComeBack ? 'held' : 'exhausted' }
}

/** What is settled of an account: as the ledger has it, or as a worker says that it will have it. */
export const settledOf = ({ cells, reports }: Pick<Standings, 'cells' | 'reports'>): number =>
  cells.reduce((sum, { worker, settled }) => sum + Math.max(settled, reports.get(worker)?.settled ?? 0), 0)

/**
 * While others ask no worker gets above half of an account; one that has as much waits for them, as long as anybody waits.
 * A worker that holds nothing gets what a single request needs, be it more.
 */
function roomOf(
  { worker, min, want, arrivedAt, waited, wait }: Need,
  limit: number,
  { cells, othersAsk, now }: Standings,
) {
  if (!othersAsk || now - arrivedAt + waited >= wait) return want
  const own = cells.find((cell) => cell.worker === worker)
  const held = own === undefined ? 0 : outstanding(own)
  const room = Math.floor(limit / 2) - held
  return held <= 0 && room < min ? want : room
}

/** Whether what is asked for would take a worker above half of an account. */
export const aboveHalf = ({ worker, want }: Need, { limit, cells }: Standings): boolean =>
  cells.reduce((sum, cell) => sum + (cell.worker === worker ? outstanding(cell) : 0), want) > limit / 2
