/** The queries of limits: their rows in the state, and their names in the ledger. */
import { and, eq, gt, ne, type SQL } from 'drizzle-orm'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { Reader } from '../../store/open.ts'
import {
  hasRow,
  insert,
  isNamed,
  isOneOf,
  newStateVersion,
  query,
  remove,
  statement,
  subquery,
  update,
} from '../../store/query.ts'
import { limitNames, usageAccounts } from '../../store/schema/ledger/usage.ts'
import type { Row, Statement } from '../../store/statement.ts'
import type { Columns, StoredKind } from './limit-kind.ts'

export type NameRow = typeof limitNames.$inferSelect

/** Rows of the state, by the names that code uses: all of a kind, or those of these ids. */
export const readLimits = (state: Reader, { table }: StoredKind, ids: readonly string[] | null): Promise<Row[]> =>
  query(state)
    .select()
    .from<SQLiteTable>(table)
    .where(and(eq(table.deleted, 0), ids === null ? undefined : isOneOf(table.id, ids)))

/** A page of names after an id, of these ids where they are given. */
export const readNames = (
  ledger: Reader,
  { kind }: StoredKind,
  {
    name,
    after,
    ids,
    count,
  }: { name?: string | undefined; after: string; ids: readonly string[] | null; count: number },
): Promise<NameRow[]> =>
  query(ledger)
    .select()
    .from(limitNames)
    .where(
      and(
        eq(limitNames.kind, kind),
        gt(limitNames.id, after),
        ids === null ? undefined : isOneOf(limitNames.id, ids),
        isNamed(name, { id: limitNames.id, names: [limitNames.name] }),
      ),
    )
    .orderBy(limitNames.id)
    .limit(count)

export const readName = (ledger: Reader, { kind }: StoredKind, id: string): Promise<NameRow | undefined> =>
  query(ledger)
    .select()
    .from(limitNames)
    .where(and(eq(limitNames.id, id), eq(limitNames.kind, kind)))
    .get()

/** Another limit of the kind that has the name. */
export const otherOfName = (kind: string, name: string, own: string): Statement =>
  statement(
    subquery
      .select({ id: limitNames.id })
      .from(limitNames)
      .where(and(eq(limitNames.kind, kind), eq(limitNames.name, name), ne(limitNames.id, own))),
  )

export const isAsRead = ({ table }: StoredKind, id: string, version: number): SQL =>
  hasRow(table, and(eq(table.id, id), eq(table.version, version), eq(table.deleted, 0)))

export const addLimit = ({ table }: StoredKind, id: string, columns: Columns): Statement =>
  statement(insert<SQLiteTable>(table).values({ ...columns, id, version: newStateVersion }))

export const changeLimit = ({ table }: StoredKind, id: string, columns: Columns): Statement =>
  statement(
    update<SQLiteTable>(table)
      .set({ ...columns, version: newStateVersion })
      .where(eq(table.id, id)),
  )

export const addName = (row: typeof limitNames.$inferInsert): Statement => statement(insert(limitNames).values(row))

export const changeName = (id: string, name: string): Statement =>
  statement(update(limitNames).set({ name }).where(eq(limitNames.id, id)))

export const dropName = (id: string): Statement => statement(remove(limitNames).where(eq(limitNames.id, id)))

/** Nano-dollars booked on these accounts. */
export const readSettled = (
  ledger: Reader,
  accounts: readonly string[],
): Promise<{ account: string; settled: number }[]> =>
  query(ledger)
    .select({ account: usageAccounts.account, settled: usageAccounts.settled })
    .from(usageAccounts)
    .where(isOneOf(usageAccounts.account, accounts))
