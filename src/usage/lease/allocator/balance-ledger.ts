/** What the allocator needs from the ledger and from the state. */
import type { BalanceReport, BalanceTotals, Registration } from '../lease.ts'

export interface LedgerBalance extends BalanceTotals {
  worker: string
}

/** A worker and the stream that currently owns it. */
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

/** A worker's answer to a recall of another control plane. `answer_number` grows with each answer. */
export interface WorkerAnswer extends BalanceReport {
  worker: string
  answer_number: number
}

export interface LedgerChange {
  /** These streams must still own their workers. */
  workers: readonly WorkerConnection[]
  /** Counters are raised to these totals, never lowered. Totals of different rounds are compared in the later round. */
  increases: readonly CounterIncrease[]
  /** The limits that the granted sums of these accounts must not exceed afterwards. */
  limits: readonly { account: string; limit: number }[]
  /** Whether the change grants something. Refused during reconciliation. */
  grants: boolean
  /** Answers for other control planes. A later answer of a worker replaces an earlier one. */
  answers?: readonly WorkerAnswer[]
}

/**
 * `behind`: not all events up to `through` have arrived. `overtaken`: a later registration has arrived. `rolled_back`:
 * the worker has returned or settled less than before, so its memory is an older copy. `released`: an operator gave it
 * up.
 */
export type RegistrationResult = 'done' | 'behind' | 'overtaken' | 'rolled_back' | 'released'

/**
 * `whole`: nothing is missing. `awaiting`: workers must register again first (reconciliation). `behind`: the ledger
 * lacks transactions that are known, and reconciliation has not begun.
 */
export type LedgerStatus = 'whole' | 'awaiting' | 'behind'

/** Grants that a registration reports and the ledger lacks. */
export interface MissingGrants {
  /**
   * Counters are raised to these totals, up to the limit. For a worker pending reconciliation other workers' balances
   * do not count.
   */
  increases: readonly (CounterIncrease & { limit: number | null })[]
  /** Workers that last registered before this instant must register again; milliseconds since the epoch. */
  since: number
}

export interface BalanceLedger {
  balances(accounts: readonly string[]): Promise<LedgerBalance[]>
  /** The same, with the status of the ledger at that moment. */
  book(accounts: readonly string[]): Promise<{ balances: LedgerBalance[]; status: LedgerStatus }>
  answers(accounts: readonly string[]): Promise<WorkerAnswer[]>
  /**
   * Workers with a heartbeat within this time, on any control plane. Uses the ledger's clock, since clocks of control
   * planes may differ.
   */
  workersWithin(milliseconds: number): Promise<string[]>
  /**
   * Starts reconciliation after the ledger was found behind: nothing is granted until all workers have registered
   * (restored-ledger.ts). Returns false if the ledger is not behind after all.
   */
  startFullReconciliation(): Promise<boolean>
  /** Applies a change in one transaction. Returns false, and changes nothing, if one of its conditions fails. */
  apply(change: LedgerChange): Promise<boolean>
  /**
   * Registers a worker's process with its balances. Every other balance of the worker has nothing open: what is
   * outstanding is freed, or settled if the worker crashed.
   */
  register(
    worker: WorkerConnection & { process: string; number: number },
    registration: Registration,
    balances: readonly BalanceReport[],
    forgotten?: MissingGrants,
  ): Promise<RegistrationResult>
}

export interface AccountLimit {
  /** The account's booked name now. */
  booked: string
  /** Null if the limit no longer exists. */
  limit: number | null
  /** The end of the window, milliseconds since the epoch. */
  until: number | null
  /** The gateway that the account's token is bound to. */
  gatewayId: string | null
  /** The account is of one more value than its dimension allows. */
  tooManyValues?: true
}

export interface AccountLimits {
  /** By plain name. Unknown names, and accounts that cannot be read at the moment, are left out. */
  limits(accounts: readonly string[]): Promise<ReadonlyMap<string, AccountLimit>>
}
