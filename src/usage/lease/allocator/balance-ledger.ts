/** What the control plane's side of the usage protocol needs of the ledger and of the state. */
import type { BalanceReport, BalanceTotals, Registration } from '../lease.ts'

export interface LedgerBalance extends BalanceTotals {
  worker: string
}

/** A worker and the stream by which it is held. */
export interface WorkerConnection {
  worker: string
  streamId: string
}

export interface CounterIncrease {
  account: string
  worker: string
  rounds: number
  granted: number
  returned: number
}

/** What a worker answered to a call of another control plane than its own; `told` grows with each answer. */
export interface WorkerAnswer extends BalanceReport {
  worker: string
  told: number
}

export interface LedgerChange {
  /** They must still be held by these streams. */
  workers: readonly WorkerConnection[]
  /** Counters are raised to these totals, never lowered, and told from the later round. */
  increases: readonly CounterIncrease[]
  /** Of these accounts, the sum of what is granted and not returned must not be more than the limit afterwards. */
  limits: readonly { account: string; limit: number }[]
  /** Whether more is granted: not while the ledger waits for workers. */
  grants: boolean
  /** For the other control planes; of a worker's earlier answer the later one stands. */
  answers?: readonly WorkerAnswer[]
}

/**
 * `behind`: not all events up to `through` are there. `overtaken`: a later hello has been heard. `rolled_back`: the worker
 * has returned or settled less than it once had: its memory is an older copy. `released`: an operator gave it up.
 */
export type RegistrationResult = 'done' | 'behind' | 'overtaken' | 'rolled_back' | 'released'

/**
 * Whether the ledger is what it was: `awaiting` is one that waits for the hellos of workers, `behind` one that has lost what
 * is remembered of it, and that nobody waits yet.
 */
export type LedgerStatus = 'whole' | 'awaiting' | 'behind'

/** What a hello tells of grants that the ledger does not have. */
export interface MissingGrants {
  /** Raised to these totals: up to the limit, or for a worker that is waited for whatever others hold. */
  increases: readonly (CounterIncrease & { limit: number | null })[]
  /** Hellos are waited for of other workers that have said none since then; milliseconds since the epoch. */
  since: number
}

export interface BalanceLedger {
  balances(accounts: readonly string[]): Promise<LedgerBalance[]>
  /** The same, with how the ledger stood in that moment. */
  book(accounts: readonly string[]): Promise<{ balances: LedgerBalance[]; status: LedgerStatus }>
  answers(accounts: readonly string[]): Promise<WorkerAnswer[]>
  /**
   * Workers that heartbeat within so many milliseconds, whichever control plane they are connected to, by the ledger's own time
   * like the heartbeats, for clocks of control planes need not agree.
   */
  workersWithin(milliseconds: number): Promise<string[]>
  /**
   * It was found behind: hellos of all workers are waited for before anything is granted (restored-ledger.ts). False where
   * it is not behind after all.
   */
  startFullReconciliation(): Promise<boolean>
  /** Applies a change in one transaction. False where something it rests on no longer holds: then nothing is changed. */
  apply(change: LedgerChange): Promise<boolean>
  /**
   * Takes in what a worker's process holds. Every other balance of the worker has nothing open: what is outstanding of it
   * becomes free, or, where the worker crashed, settled.
   */
  register(
    worker: WorkerConnection & { process: string; number: number },
    registration: Registration,
    balances: readonly BalanceReport[],
    forgotten?: MissingGrants,
  ): Promise<RegistrationResult>
}

export interface AccountLimit {
  /** The account as it is booked now. */
  booked: string
  /** Null where there is no such limit any more. */
  limit: number | null
  /** The end of the window, milliseconds since the epoch. */
  until: number | null
  /** The gateway that the account's token is bound to. */
  gatewayId: string | null
}

export interface AccountLimits {
  /** By plain name. What is no name of an account, or cannot be known at the moment, is not among the answers. */
  limits(accounts: readonly string[]): Promise<ReadonlyMap<string, AccountLimit>>
}
