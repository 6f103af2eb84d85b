/**
 * How the control plane makes any change: a change and its event belong together although they are in two databases
 * (events/README.md, A change and its event). Ledger: the change is pending. State: the change, with its event id in
 * `change_log`. Ledger: applied, with the event appended to the control plane's chain. A change that is pending for
 * more than 5 s is looked up in `change_log`. If its id is missing, a row with applied = 0 makes its late writer fail,
 * and the pending row is dropped.
 */
import { sql } from 'drizzle-orm'
import type { Failure } from '../failure.ts'
import type { Head } from '../store/propagation.ts'
import type { Statement } from '../store/statement.ts'
import type { Event } from './event.ts'

/** A name that is stored in the ledger while the named record is in the state. */
export interface NameClaim {
  /** One key for each name: of concurrent changes that claim it one succeeds. */
  key: string
  /** Finds rows of the ledger in which another record has it. */
  taken: Statement
  refusal: Failure
}

export interface Change {
  event: Event
  /** More events that follow from it, in the same transaction: of a change of the ledger alone. */
  further?: readonly Event[]
  /** A name that the change takes. Throws the refusal if another record has the name or is about to take it. */
  claim?: NameClaim | undefined
  /**
   * Statements on the state database. They run in one transaction after `state_head.version` was raised, so the new
   * version is `(select version from state_head)` in them. Empty for a change of the ledger alone.
   */
  state: readonly Statement[]
  /** An SQL expression that must be 1 inside the state transaction, before the statements; otherwise `conflict`. */
  guard?: Statement
  /**
   * Statements on the ledger, in the same transaction as the event. The argument `:version` is replaced by the state
   * version.
   */
  ledger: readonly Statement[]
  /** Hashes of tokens that gateways must refuse until their state is at this change's version. */
  revoked?: readonly string[]
  /** Whether revoking these is all that the change does. Gateways then defer reading the state. */
  onlyRevocations?: boolean
  /** Called with the new head when gateways are, before the ledger is written; must not wait or throw. */
  announced?(head: Head): void
  /** Those of `revoked` whose running requests gateways must end. */
  endRequests?: readonly string[]
}

/** The argument of a ledger statement that is replaced by the state version of the change. */
export const versionArgument = ':version'
/** The same as a value of a column. */
export const changeVersion = sql<number>`${versionArgument}`

export interface Recorder {
  /** Applies a change. Throws `conflict`, with nothing changed, if its guard fails. */
  change(change: Change): Promise<{ head: Head }>
  /** Appends events without a change, in the ledger alone. */
  append(events: readonly Event[]): Promise<void>
  /** Finishes or drops pending changes older than 5 s. Run at start and every few seconds. */
  applyPending(): Promise<void>
}
