/** What a turn of the control plane's side of usage (allocation.ts) decides on, and the answers it makes. */

import type { Ask, BalanceReport, BalanceTotals, Grant, LeaseRefusal, LeaseReply, LeaseRequest } from '../lease.ts'
import type { AccountBook } from './account-book.ts'
import type { AccountLimit, WorkerConnection } from './balance-ledger.ts'
import type { Need } from './contention.ts'
import type { OtherWorkersState } from './other-workers.ts'

export interface LeaseCaller extends WorkerConnection {
  gatewayId: string
  /** Aborted when the caller has gone: it gets nothing that it would not hear of. */
  signal: AbortSignal
}

export interface LeaseCall {
  caller: LeaseCaller
  request: LeaseRequest
  arrivedAt: number
  resolve(reply: LeaseReply): void
  reject(error: unknown): void
}

/** Asks of one message that are granted together or not at all. */
export interface WaitingAsks {
  call: LeaseCall
  asks: readonly Ask[]
}

/** The end game of one account. */
export interface Contention {
  account: string
  reports: Map<string, BalanceReport>
  /** When it began, and when each worker last told of its balance; monotonic. */
  since: number
  heard: Map<string, number>
  recalledAt: number
  /** By worker, the last answer in the ledger that is known: what was told before the end game began is no answer. */
  told: Map<string, number>
}

/** What a turn decides on. */
export interface AllocationInput {
  contentions: Map<string, Contention>
  waiting: readonly WaitingAsks[]
  book: AccountBook
  limits: ReadonlyMap<string, AccountLimit>
  otherWorkers: OtherWorkersState
  /** The ledger was restored: nothing is granted yet, and what it has of balances is told to nobody. */
  suspended: boolean
}

/** An answer while it is made. */
export interface ReplyDraft {
  registration: LeaseReply['registration']
  balances: Map<string, BalanceTotals>
  grants: Grant[]
  refusals: LeaseRefusal[]
  later: string[]
}

export const needOf = ({ call: { caller, arrivedAt } }: WaitingAsks, { want, min, waited, wait }: Ask): Need => ({
  worker: caller.worker,
  arrivedAt,
  want,
  min,
  waited,
  wait,
})

export const newReplyDraft = ({ request }: LeaseCall): ReplyDraft => ({
  registration: request.registration === null ? null : 'done',
  balances: new Map(),
  grants: [],
  refusals: [],
  later: [],
})

export const toReply = ({ balances, ...rest }: ReplyDraft): LeaseReply => ({
  ...rest,
  balances: [...balances.values()].map(({ account, rounds, granted, returned, settled }) => ({
    account,
    rounds,
    granted,
    returned,
    settled,
  })),
})
