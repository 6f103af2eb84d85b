/**
 * How the control plane changes anything: a change and its event are one, though they lie in two databases
 * (events/README.md, A change and its event). Ledger: the change is pending. State: the change, with its event id in
 * `change_log`. Ledger: applied, the event appended to the control plane's chain. What is found pending for more than 5
 * s is settled by looking for its id in `change_log`; where it is missing, a row with applied = 0 makes its late writer
 * fail, and the pending is dropped.
 */
import { sql } from 'drizzle-orm'
import type { Failure } from '../failure.ts'
import type { Head } from '../store/propagation.ts'
import type { Statement } from '../store/statement.ts'
import type { Event } from './event.ts'

/** A name that is kept in the ledger while what bears it is in the state. */
export interface NameClaim {
  /** One for each name: of changes that claim it at once, one is made. */
  key: string
  /** Finds rows of the ledger where somebody else bears it. */
  taken: Statement
  refusal: Failure
}

export interface Change {
  event: Event
  /** What the change names anew. It throws the refusal where somebody else has the name, or is about to. */
  claim?: NameClaim | undefined
  /**
   * Statements on the state database. They run in one transaction after `state_head.version` was raised, so the new
   * version is `(select version from state_head)` in them. Empty for a change of the ledger alone.
   */
  state: readonly Statement[]
  /** An SQL expression that must be 1 inside the state transaction, before the statements; otherwise `conflict`. */
  guard?: Statement
  /** Statements on the ledger, in the same transaction as the event. `:version` as an argument is the state version. */
  ledger: readonly Statement[]
  /** Hashes of tokens that gateways must refuse until their state is at this change's version. */
  deny?: readonly string[]
  /** Whether refusing those is all that gateways have to do: then they read the state when nothing else is to be done. */
  unhurried?: boolean
  /** Told of the new head when gateways are, while the ledger still has to be written; must not wait, nor throw. */
  announced?(head: Head): void
  /** Those of `deny` whose running requests gateways must end. */
  cut?: readonly string[]
}

/** The argument of a ledger statement that is replaced by the state version of the change. */
export const versionArgument = ':version'
/** The same as a value of a column. */
export const changeVersion = sql<number>`${versionArgument}`

export interface Recorder {
  /** Applies a change. Throws `conflict` where its guard does not hold; then nothing has changed anywhere. */
  change(change: Change): Promise<{ head: Head }>
  /** Appends events that change nothing, in the ledger alone. */
  append(events: readonly Event[]): Promise<void>
  /** Settles pending changes older than 5 s; run at start and every few seconds. */
  settle(): Promise<void>
}
