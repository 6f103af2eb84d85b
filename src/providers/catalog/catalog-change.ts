/** What the routes of the catalog share: their dependencies, and how a change and its event are made. */
import type { SQL } from 'drizzle-orm'
import { and, eq, ne, not, sql } from 'drizzle-orm'
import { requireVersion } from '../../api/entity-tag.ts'
import type { RecordCall } from '../../api/resource-routes.ts'
import { controlPlaneEvent } from '../../events/control-plane-event.ts'
import type { EventType } from '../../events/event-types.ts'
import type { Recorder } from '../../events/recorder.ts'
import { Failure } from '../../failure.ts'
import type { Principal } from '../../identity/principal.ts'
import { type Clock, timestamp } from '../../lib/clock.ts'
import type { NewId } from '../../lib/ids.ts'
import type { MasterKey } from '../../store/keys/master-key.ts'
import type { Database } from '../../store/open.ts'
import { condition, hasRow, query } from '../../store/query.ts'
import {
  type gateways,
  type managedSettings,
  type mcpServers,
  models,
  type providers,
} from '../../store/schema/state/catalog.ts'
import { stateHead } from '../../store/schema/state/head.ts'
import type { Statement } from '../../store/statement.ts'

export interface CatalogDependencies {
  state: Database
  ledger: Database
  recorder: Recorder
  masterKey: MasterKey
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
  /** Ids and changed values; never a credential. */
  details: Record<string, unknown>
  /** What must still hold in the state when the change is made. */
  guard: SQL | undefined
  state: readonly Statement[]
  ledger?: readonly Statement[]
}

/** Makes a change and its event. Throws `conflict` if its guard no longer holds. */
export async function changeCatalog(
  { recorder, clock, newId }: Pick<CatalogDependencies, 'recorder' | 'clock' | 'newId'>,
  { principal, requestId }: CatalogCall,
  { type, details, guard, state, ledger = [] }: CatalogChange,
): Promise<void> {
  const event = controlPlaneEvent({
    type,
    principal,
    requestId,
    // The catalog belongs to the installation, not to a team.
    teamId: null,
    details,
    configVersion: 0,
    clock,
    newId,
  })
  await recorder.change({ event, guard: condition(guard), state, ledger })
}

/** The row that a call changes. Throws `version_mismatch` where `If-Match` names another version. */
export function changeable<Kept extends { version: number }>({ headers }: RecordCall, row: Kept): Kept {
  requireVersion(headers, row.version)
  return row
}

type CatalogTable = typeof providers | typeof models | typeof gateways | typeof mcpServers | typeof managedSettings

/** The condition that a record is there. */
export const isThere = (table: CatalogTable, id: string): SQL =>
  hasRow(table, and(eq(table.id, id), eq(table.deleted, 0)))

/** The condition that a provider is a target of a model. */
export const answersAt = (providerId: string): SQL =>
  sql`(${models.providerId} = ${providerId} or exists (select 1 from json_each(${models.targets}) where value ->> 'provider_id' = ${providerId}))`

/** The condition that a record is still at the version that was read. */
export const atVersion = (table: CatalogTable, { id, version }: { id: string; version: number }): SQL =>
  hasRow(table, and(eq(table.id, id), eq(table.version, version), eq(table.deleted, 0)))

/** The condition that no record but the one of this id has the name. */
export const nameIsFree = (table: Exclude<CatalogTable, typeof models>, name: string, id: string): SQL =>
  not(hasRow(table, and(eq(table.name, name), ne(table.id, id), eq(table.deleted, 0))))

/** Whether a condition holds in the state now. */
export const holds = async (state: Database, what: SQL): Promise<boolean> =>
  (await query(state).$count(stateHead, what)) > 0

export const missing = (what: string): Failure => new Failure('not_found', { message: `There is no such ${what}` })

export const wrong = (param: string, message: string): Failure => new Failure('invalid_parameter', { param, message })

/** A UUIDv7 begins with the millisecond of its creation (RFC 9562 section 5.7). */
export const madeAt = (id: string): string => timestamp(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16))
