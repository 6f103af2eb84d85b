/** What the control plane's side of the usage protocol needs of the ledger and of the state. */
import type { CellReport, CellTotals, Hello } from '../lease.ts'

export interface LedgerCell extends CellTotals {
  lane: string
}

/** A lane and the stream by which it is held. */
export interface HeldLane {
  lane: string
  streamId: string
}

export interface Raise {
  account: string
  lane: string
  rounds: number
  granted: number
  returned: number
}

/** What a lane answered to a call of another control plane than its own; `told` grows with each answer. */
export interface LaneAnswer extends CellReport {
  lane: string
  told: number
}

export interface LedgerChange {
  /** They must still be held by these streams. */
  lanes: readonly HeldLane[]
  /** Counters are raised to these totals, never lowered, and told from the later round. */
  raises: readonly Raise[]
  /** Of these accounts, the sum of what is granted and not returned must not be more than the limit afterwards. */
  limits: readonly { account: string; limit: number }[]
  /** Whether more is granted: not while the ledger waits for lanes. */
  grants: boolean
  /** For the other control planes; of a lane's earlier answer the later one stands. */
  answers?: readonly LaneAnswer[]
}

/**
 * `behind`: not all events up to `through` are there. `overtaken`: a later hello has been heard. `rolled_back`: the lane
 * has returned or settled less than it once had: its memory is an older copy. `released`: an operator gave it up.
 */
export type HelloResult = 'done' | 'behind' | 'overtaken' | 'rolled_back' | 'released'

/**
 * Whether the ledger is what it was: `awaiting` is one that waits for the hellos of lanes, `behind` one that has lost what
 * is remembered of it, and that nobody waits yet.
 */
export type LedgerStanding = 'whole' | 'awaiting' | 'behind'

/** What a hello tells of grants that the ledger does not have. */
export interface ForgottenGrants {
  /** Raised to these totals: up to the limit, or for a lane that is waited for whatever others hold. */
  raises: readonly (Raise & { limit: number | null })[]
  /** Hellos are waited for of other lanes that have said none since then; milliseconds since the epoch. */
  since: number
}

export interface CellLedger {
  cells(accounts: readonly string[]): Promise<LedgerCell[]>
  /** The same, with how the ledger stood in that moment. */
  book(accounts: readonly string[]): Promise<{ cells: LedgerCell[]; standing: LedgerStanding }>
  answers(accounts: readonly string[]): Promise<LaneAnswer[]>
  /**
   * Lanes that beat within so many milliseconds, whichever control plane they are connected to, by the ledger's own time
   * like the beats, for clocks of control planes need not agree.
   */
  lanesWithin(milliseconds: number): Promise<string[]>
  /**
   * It was found behind: hellos of all lanes are waited for before anything is granted (restored-ledger.ts). False where
   * it is not behind after all.
   */
  awaitAll(): Promise<boolean>
  /** Applies a change in one transaction. False where something it rests on no longer holds: then nothing is changed. */
  raise(change: LedgerChange): Promise<boolean>
  /**
   * Takes in what a lane's process holds. Every other cell of the lane has nothing open: what is outstanding of it
   * becomes free, or, where the lane crashed, settled.
   */
  hello(
    lane: HeldLane & { process: string; number: number },
    hello: Hello,
    cells: readonly CellReport[],
    forgotten?: ForgottenGrants,
  ): Promise<HelloResult>
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
