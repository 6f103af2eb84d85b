/**
 * Every column that holds values sealed under the master key. `MasterKey` seals for these columns and for nothing else
 * that is stored, so what `master-key rotate` re-seals is all there is.
 */
import type { SQL } from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { statement, update } from '../query.ts'
import { secrets } from '../schema/ledger/changes.ts'
import { userIdentities, users } from '../schema/ledger/people.ts'
import type { Statement } from '../statement.ts'

interface SealedColumn {
  table: SQLiteTable
  /** The primary key. */
  id: SQLiteColumn
  sealed: SQLiteColumn
  /** What is authenticated with a value, so that it does not open in another row or column. */
  context(id: string): string
  /** Puts another value into the rows for which the condition holds. */
  put(sealed: string, where: SQL | undefined): Statement
}

const columns = {
  secret: {
    table: secrets,
    id: secrets.name,
    sealed: secrets.sealed,
    context: (name) => name,
    put: (sealed, where) => statement(update(secrets).set({ sealed }).where(where)),
  },
  second_factor: {
    table: users,
    id: users.id,
    sealed: users.totpSecret,
    context: (id) => `totp:${id}`,
    put: (sealed, where) => statement(update(users).set({ totpSecret: sealed }).where(where)),
  },
  refresh_token: {
    table: userIdentities,
    id: userIdentities.id,
    sealed: userIdentities.refreshToken,
    context: (id) => `refresh-token:${id}`,
    put: (sealed, where) => statement(update(userIdentities).set({ refreshToken: sealed }).where(where)),
  },
} as const satisfies Record<string, SealedColumn>

export type SealedPlace = keyof typeof columns
export const sealedColumns: Readonly<Record<SealedPlace, SealedColumn>> = columns
