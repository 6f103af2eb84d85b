/**
 * The statements of a change and of its event in both databases (change.ts, together.ts). SQL text: guards within
 * inserts, and the database's own time, are not what the builder says.
 */
import { type Database, databaseTime } from '../store/open.ts'
import type { Head } from '../store/propagation.ts'
import type { Statement } from '../store/statement.ts'
import type { Event } from './event.ts'
import { type Change, type NameClaim, versionArgument } from './recorder.ts'

const endedRequestsKeptMilliseconds = 3_600_000

/** What a pending row keeps besides its event, as JSON. */
export interface Pending {
  ledger: readonly Statement[]
  revoked: readonly string[]
  endRequests: readonly string[]
  /** The name that it reserves while it is pending. */
  claim?: string | undefined
  /** Its statements hold a guard, which another change could break. */
  guarded: boolean
  /** It is one of a list (together.ts), whose guards nobody may break while it is pending. */
  together: boolean
}

/** Whether one of the statements undoes its transaction where a condition does not hold (store/query.ts, `guard`). */
export const isGuarded = (statements: readonly Statement[]): boolean =>
  statements.some(({ sql }) => /^insert into "?guards"?/i.test(sql))

/** A list that is older than this cannot be made: nothing waits for it any more. */
const oldestListMilliseconds = 300_000
const listPending = `select 1 from pending_changes where statements ->> 'together' = 1
  and created_at > ${databaseTime} - ${oldestListMilliseconds}`

/** Undoes a guarded change while a list of changes is being made: it might break a guard of the list. */
export const noListPending: Statement = {
  sql: `insert into guards (holds) select 0 where exists (${listPending})`,
  args: [],
}

export const isListPending = async (ledger: Database): Promise<boolean> => (await ledger.read(listPending)).length > 0

/** A guarded change that is older than this cannot be finished: it waits for an operator, and a list for it no more. */
const oldestWaitedForMilliseconds = 15_000

/** Whether a guarded change is pending that is no part of a list. */
export const isGuardedPending = async (ledger: Database): Promise<boolean> =>
  (
    await ledger.read(
      `select 1 from pending_changes where statements ->> 'guarded' = 1 and statements ->> 'together' = 0
        and created_at > ${databaseTime} - ?`,
      [oldestWaitedForMilliseconds],
    )
  ).length > 0

const unclaimed = ({ key, taken }: NameClaim): Statement => ({
  sql: `insert into guards (holds) select 0 where exists (${taken.sql})
    or exists (select 1 from pending_changes where statements ->> 'claim' = ?)`,
  args: [...taken.args, key],
})

/** For control planes that miss the announcement (fleet/coordinator/change-feed.ts). */
const recordEndedRequests = (eventId: string, endRequests: readonly string[]): Statement[] => [
  {
    sql: `insert into ended_requests (event_id, hashes, at) values (?, ?, ${databaseTime})`,
    args: [eventId, JSON.stringify(endRequests)],
  },
  { sql: `delete from ended_requests where at < ${databaseTime} - ?`, args: [endedRequestsKeptMilliseconds] },
]

export const raiseVersion = (nonce: string): Statement => ({
  sql: 'update state_head set version = version + 1, nonce = ? where id = 1',
  args: [nonce],
})

export const logChange = (eventId: string, at: number, guard: Statement | undefined): Statement => ({
  sql: `insert into change_log (event_id, version, applied, at, guard)
    values (?, (select version from state_head), 1, ?, ${guard === undefined ? '1' : `coalesce((${guard.sql}), 0)`})`,
  args: [eventId, at, ...(guard?.args ?? [])],
})

export const dropPending = (eventId: string): Statement => ({
  sql: 'delete from pending_changes where event_id = ?',
  args: [eventId],
})

/** Notes a change as pending. Its claim breaks a guard where another record has the name. */
export function pendingStatements(
  { event, ledger, revoked = [], endRequests = [], claim }: Change,
  together = false,
): Statement[] {
  const guarded = isGuarded(ledger)
  const pending: Pending = { ledger, revoked, endRequests, claim: claim?.key, guarded, together }
  return [
    ...(guarded && !together ? [noListPending] : []),
    ...(claim === undefined ? [] : [unclaimed(claim)]),
    {
      sql: `insert into pending_changes (event_id, statements, event, created_at) values (?, ?, ?, ${databaseTime})`,
      args: [event.event_id, JSON.stringify(pending), JSON.stringify(event)],
    },
    ...(endRequests.length === 0 ? [] : recordEndedRequests(event.event_id, endRequests)),
  ]
}

/** Whether a change concerns the ledger alone, and needs no pending row. */
export const isOfLedger = ({ state, guard, revoked = [] }: Change): boolean =>
  state.length === 0 && guard === undefined && revoked.length === 0

/** The ledger keeps the newest head, by which a restored state is found (fleet/agent/restore-detector.ts). */
export const rememberStateHead = ({ version, nonce, history }: Head): Statement => ({
  sql: `insert into known_state_head (id, version, nonce, history) values (1, ?, ?, ?)
    on conflict (id) do update set version = excluded.version, nonce = excluded.nonce
    where known_state_head.history = excluded.history and known_state_head.version < excluded.version`,
  args: [version, nonce, history],
})

export async function readHead(state: Database): Promise<Head> {
  const [head] = await state.read<Head>('select version, nonce, history from state_head')
  if (head === undefined) throw new Error('The state database has no state_head row: it was not migrated')
  return head
}

export async function loggedChange(
  state: Database,
  eventId: string,
): Promise<{ version: number; applied: number } | null> {
  const [row] = await state.read<{ version: number; applied: number }>(
    'select version, applied from change_log where event_id = ?',
    [eventId],
  )
  return row ?? null
}

export const withConfiguration = (event: Event, { version, nonce }: Pick<Head, 'version' | 'nonce'>): Event => ({
  ...{ ...event, config_version: version, config_id: nonce },
})

export const atVersion = (statements: readonly Statement[], version: number): Statement[] =>
  statements.map(({ sql, args }) => ({ sql, args: args.map((value) => (value === versionArgument ? version : value)) }))
