/** What the control plane's side of the usage protocol needs of the ledger and of the state. */
import type { CellReport, CellTotals, Hello } from './lease.ts'

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
  /** For the other control planes; of a lane's earlier answer the later one stands. */
  answers?: readonly LaneAnswer[]
}

/**
 * `behind`: not all events up to `through` are there. `overtaken`: a later hello has been heard. `rolled_back`: the lane
 * has returned or settled less than it once had: its memory is an older copy. `released`: an operator gave it up.
 */
export type HelloResult = 'done' | 'behind' | 'overtaken' | 'rolled_back' | 'released'

export interface CellLedger {
  cells(accounts: readonly string[]): Promise<LedgerCell[]>
  answers(accounts: readonly string[]): Promise<LaneAnswer[]>
  /**
   * Lanes that beat within so many milliseconds, whichever control plane they are connected to, by the ledger's own time
   * like the beats, for clocks of control planes need not agree; and whether hellos of lanes are waited for before anything is granted (restored-ledger.ts).
   */
  lanesWithin(milliseconds: number): Promise<{ lanes: string[]; awaited: boolean }>
  /** Noticed to be an older copy: hellos are waited for of lanes that have said none since an instant. */
  restored(since: number): Promise<void>
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
  /** By plain name; each that was asked for is in it. */
  limits(accounts: readonly string[]): Promise<ReadonlyMap<string, AccountLimit>>
}
