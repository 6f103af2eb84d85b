/** What a turn of the control plane's side of usage (allocation.ts) decides on, and the answers it makes. */

import type { Ask, CellReport, CellTotals, Denial, Grant, LeaseReply, LeaseRequest } from '../lease.ts'
import type { AccountBook } from './account-book.ts'
import type { AccountLimit, HeldWorker } from './balance-ledger.ts'
import type { Need } from './contention.ts'
import type { Elsewhere } from './other-workers.ts'

export interface Caller extends HeldWorker {
  gatewayId: string
  /** Aborted when the caller has gone: it gets nothing that it would not hear of. */
  signal: AbortSignal
}

export interface Call {
  caller: Caller
  request: LeaseRequest
  arrivedAt: number
  resolve(reply: LeaseReply): void
  reject(error: unknown): void
}

/** Asks of one message that are granted together or not at all. */
export interface Waiting {
  call: Call
  asks: readonly Ask[]
}

/** The end game of one account. */
export interface Game {
  account: string
  reports: Map<string, CellReport>
  /** When it began, and when each worker last told of its cell; monotonic. */
  since: number
  heard: Map<string, number>
  recalledAt: number
  /** By worker, the last answer in the ledger that is known: what was told before the end game began is no answer. */
  told: Map<string, number>
}

/** What a turn decides on. */
export interface TurnMatter {
  games: Map<string, Game>
  waiting: readonly Waiting[]
  book: AccountBook
  limits: ReadonlyMap<string, AccountLimit>
  elsewhere: Elsewhere
  /** The ledger was restored: nothing is granted yet, and what it has of cells is told to nobody. */
  suspended: boolean
}

/** An answer while it is made. */
export interface Reply {
  hello: LeaseReply['hello']
  cells: Map<string, CellTotals>
  grants: Grant[]
  denials: Denial[]
  later: string[]
}

export const needOf = ({ call: { caller, arrivedAt } }: Waiting, { want, min, waited, wait }: Ask): Need => ({
  worker: caller.worker,
  arrivedAt,
  want,
  min,
  waited,
  wait,
})

export const newReply = ({ request }: Call): Reply => ({
  hello: request.hello === null ? null : 'done',
  cells: new Map(),
  grants: [],
  denials: [],
  later: [],
})

export const toReply = ({ cells, ...rest }: Reply): LeaseReply => ({
  ...rest,
  cells: [...cells.values()].map(({ account, rounds, granted, returned, settled }) => ({
    account,
    rounds,
    granted,
    returned,
    settled,
  })),
})
