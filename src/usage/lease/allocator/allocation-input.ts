/** The input of one allocation (allocation.ts), and the replies that it builds. */

import type {
  BalanceReport,
  BalanceTotals,
  Grant,
  GrantRequest,
  LeaseRefusal,
  LeaseReply,
  LeaseRequest,
} from '../lease.ts'
import type { AccountBook } from './account-book.ts'
import type { AccountLimit, WorkerConnection } from './balance-ledger.ts'
import type { Need } from './contention.ts'
import type { OtherWorkersState } from './other-workers.ts'

export interface LeaseCaller extends WorkerConnection {
  gatewayId: string
  /** Aborted when the caller has disconnected. Then nothing is granted to it. */
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
export interface WaitingGrantRequests {
  call: LeaseCall
  grantRequests: readonly GrantRequest[]
}

/** The contention for one account: workers ask for more than is free. */
export interface Contention {
  account: string
  reports: Map<string, BalanceReport>
  /** When the contention began, and when each worker last reported its balance; monotonic. */
  since: number
  heard: Map<string, number>
  recalledAt: number
  /** By worker, the number of its last answer in the ledger. Answers from before the contention began do not count. */
  answerNumbers: Map<string, number>
}

/** What one allocation decides on. */
export interface AllocationInput {
  contentions: Map<string, Contention>
  waiting: readonly WaitingGrantRequests[]
  book: AccountBook
  limits: ReadonlyMap<string, AccountLimit>
  otherWorkers: OtherWorkersState
  /** The ledger was restored: nothing is granted yet, and no worker is sent the ledger's balances. */
  suspended: boolean
}

/** A reply while it is being built. */
export interface ReplyDraft {
  registration: LeaseReply['registration']
  balances: Map<string, BalanceTotals>
  grants: Grant[]
  refusals: LeaseRefusal[]
  deferred: string[]
}

export const needOf = (
  { call: { caller, arrivedAt } }: WaitingGrantRequests,
  { want, min, waited, wait }: GrantRequest,
): Need => ({
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
  deferred: [],
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
