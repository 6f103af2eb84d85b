/**
 * Every column that holds values sealed under the master key. `MasterKey` seals for these columns and for nothing else
 * that is stored, so what `master-key rotate` re-seals is all there is.
 */
import { type SQL, sql } from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { statement, update } from '../query.ts'
import { secrets } from '../schema/ledger/changes.ts'
import { mcpConnections } from '../schema/ledger/oauth.ts'
import { userIdentities, users } from '../schema/ledger/people.ts'
import type { Statement } from '../statement.ts'

interface SealedColumn {
  table: SQLiteTable
  /** The primary key. */
  id: SQL<string>
  sealed: SQLiteColumn
  /** What is authenticated with a value, so that it does not open in another row or column. */
  context(id: string): string
  /** Puts another value into the rows for which the condition holds. */
  put(sealed: string, where: SQL | undefined): Statement
}

const columns = {
  secret: {
    table: secrets,
    id: sql<string>`${secrets.name}`,
    sealed: secrets.sealed,
    context: (name) => name,
    put: (sealed, where) => statement(update(secrets).set({ sealed }).where(where)),
  },
  second_factor: {
    table: users,
    id: sql<string>`${users.id}`,
    sealed: users.totpSecret,
    context: (id) => `totp:${id}`,
    put: (sealed, where) => statement(update(users).set({ totpSecret: sealed }).where(where)),
  },
  refresh_token: {
    table: userIdentities,
    id: sql<string>`${userIdentities.id}`,
    sealed: userIdentities.refreshToken,
    context: (id) => `refresh-token:${id}`,
    put: (sealed, where) => statement(update(userIdentities).set({ refreshToken: sealed }).where(where)),
  },
  mcp_connection: {
    table: mcpConnections,
    id: sql<string>`${mcpConnections.userId} || ':' || ${mcpConnections.serverId}`,
    sealed: mcpConnections.sealed,
    context: (id) => `mcp-connection:${id}`,
    put: (sealed, where) => statement(update(mcpConnections).set({ sealed }).where(where)),
  },
} as const satisfies Record<string, SealedColumn>

export type SealedPlace = keyof typeof columns
export const sealedColumns: Readonly<Record<SealedPlace, SealedColumn>> = columns
