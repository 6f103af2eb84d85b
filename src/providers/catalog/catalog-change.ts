/** What the routes of the catalog share: their dependencies, their pages, and how a change and its event are made. */
import { cutPage, startOf } from '../../api/page.ts'
import { controlPlaneEvent } from '../../events/control-plane-event.ts'
import type { EventType } from '../../events/event-types.ts'
import type { Recorder } from '../../events/recorder.ts'
import { Failure } from '../../failure.ts'
import type { Principal } from '../../identity/principal.ts'
import { type Clock, timestamp } from '../../lib/clock.ts'
import type { NewId } from '../../lib/ids.ts'
import type { Database } from '../../store/open.ts'
import type { Row, Statement } from '../../store/statement.ts'

export interface CatalogDependencies {
  state: Database
  ledger: Database
  recorder: Recorder
  masterKey: Uint8Array
  clock: Clock
  newId: NewId
  randomBytes(size: number): Uint8Array
  /** Whether providers away from this host may be reached without TLS. */
  plainHttp: 'loopback' | 'anywhere'
}

export interface CatalogCall {
  principal: Principal
  requestId: string
}

interface CatalogChange {
  type: Extract<EventType, `catalog.${string}`>
  /** Ids and what is set; never a credential. */
  details: Record<string, unknown>
  /** SQL that must be 1 for the change to hold. */
  guard: Statement
  state: readonly Statement[]
  ledger?: readonly Statement[]
}

/** Makes a change and its event. Throws `conflict` where its guard does not hold any more. */
export async function changeCatalog(
  { recorder, clock, newId }: CatalogDependencies,
  { principal, requestId }: CatalogCall,
  { type, details, guard, state, ledger = [] }: CatalogChange,
): Promise<void> {
  const event = controlPlaneEvent({
    type,
    principal,
    requestId,
    // The catalog is the installation's, whoever changes it.
    teamId: null,
    details,
    configVersion: 0,
    clock,
    newId,
  })
  await recorder.change({ event, guard, state, ledger })
}

/** One page of a table's records, in the order they were made: `read` from their rows, and as `show` shows them. */
export async function recordPage<Kept extends { id: string }, PublicEvent>(
  { state }: Pick<CatalogDependencies, 'state'>,
  { limit, cursor }: { limit: number; cursor?: string | undefined },
  { table, read, show }: { table: string; read(row: Row): Kept; show(kept: Kept): Promise<PublicEvent> },
): Promise<{ records: PublicEvent[]; next_cursor: string | null }> {
  const query = { list: table }
  const found = await state.read(`select * from ${table} where deleted = 0 and id > ? order by id limit ?`, [
    startOf(cursor, query) ?? '',
    limit + 1,
  ])
  const page = cutPage(found.map(read), limit, query)
  return { records: await Promise.all(page.rows.map(show)), next_cursor: page.next_cursor }
}

/** A guard of several conditions that must all hold. */
export const all = (...conditions: readonly Statement[]): Statement => ({
  sql: `select ${conditions.map(({ sql }) => `(${sql})`).join(' and ')}`,
  args: conditions.flatMap(({ args }) => [...args]),
})

export const none = (sql: string, args: Statement['args']): Statement => ({ sql: `not exists (${sql})`, args })

export const some = (sql: string, args: Statement['args']): Statement => ({ sql: `exists (${sql})`, args })

/** The condition that a record is still at the version that was read. */
export const atVersion = (table: 'providers' | 'models' | 'gateways', row: { id: string; version: number }) =>
  some(`select 1 from ${table} where id = ? and version = ? and deleted = 0`, [row.id, row.version])

/** The statement that makes a tombstone of a record. */
export const tombstone = (table: 'providers' | 'models' | 'gateways', id: string, also = ''): Statement => ({
  sql: `update ${table} set deleted = 1${also}, version = (select version from state_head) where id = ?`,
  args: [id],
})

export const missing = (what: string): Failure => new Failure('not_found', { message: `There is no such ${what}` })

export const wrong = (param: string, message: string): Failure => new Failure('invalid_parameter', { param, message })

/** A UUIDv7 begins with the millisecond in which it was made (RFC 9562 section 5.7). */
export const madeAt = (id: string): string => timestamp(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16))
