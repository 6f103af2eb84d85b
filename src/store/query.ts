/**
 * Typed queries: drizzle's query builder through its proxy driver, which loads no native addon.
 *
 *   - Rows: `await query(ledger).select().from(users).where(eq(users.id, id))`. The rows have the types and the names of
 *     the table in `schema/`.
 *   - Writes are batches (README.md rule 3): `ledger.write([statement(insert(users).values(user)), guard(condition)])`.
 *
 * To build a query costs 15 to 80 µs of processor time beside the 10 µs of a short read; one that is prepared once and
 * run with `sql.placeholder` costs no more than SQL text (decisions/0009-queries-by-a-builder.md). A module with SQL
 * text says why in its header, after `SQL text:`.
 */
import { or, type SQL, sql } from 'drizzle-orm'
import {
  type AnySQLiteColumn,
  SQLiteAsyncDialect,
  SQLitePreparedQuery,
  type SQLiteTable,
} from 'drizzle-orm/sqlite-core'
import { drizzle, type SqliteRemoteDatabase } from 'drizzle-orm/sqlite-proxy'
import type { Reader } from './open.ts'
import { guards } from './schema/ledger/changes.ts'
import type { Statement } from './statement.ts'

/**
 * drizzle would wrap the error of a failed query in one whose message quotes the values that were sent, and hide from
 * callers what failed. There is no cache, so this method has no other task than that.
 */
Object.defineProperty(SQLitePreparedQuery.prototype, 'queryWithCache', {
  value: (_text: string, _values: unknown, run: () => Promise<unknown>) => run(),
})

/** What reads. Nothing is written through it: a write is a batch of statements. */
export type Query = Pick<SqliteRemoteDatabase, 'select' | 'selectDistinct' | 'with' | '$with' | '$count'>

const queries = new WeakMap<Reader, Query>()

/** Builds a query of this database, which runs when it is awaited. */
export function query(database: Reader): Query {
  const known = queries.get(database)
  if (known !== undefined) return known
  const made = drizzle(async (text, params, method) => {
    const rows = await database.readValues(text, values(params))
    // The driver takes the row itself from `get`; its type does not say that there may be none.
    return { rows: method === 'get' ? (rows[0] as unknown[]) : rows }
  })
  queries.set(database, made)
  return made
}

/**
 * A query that is built once for each database, for what runs often: `const byId = prepared((query) => query.select()
 * .from(users).where(eq(users.id, sql.placeholder('id'))).prepare())`, then `await byId(ledger).get({ id })`.
 */
export function prepared<Made extends object>(make: (query: Query) => Made): (database: Reader) => Made {
  const made = new WeakMap<Reader, Made>()
  return (database) => {
    const known = made.get(database)
    if (known !== undefined) return known
    const fresh = make(query(database))
    made.set(database, fresh)
    return fresh
  }
}

const builder: Pick<SqliteRemoteDatabase, 'select' | 'insert' | 'update' | 'delete'> = drizzle(() =>
  Promise.reject(new Error('A write is a statement of a batch')),
)

/** Builds a query within another one, such as that of `inArray`. */
export const subquery: Pick<Query, 'select'> = builder
export const insert = <Table extends SQLiteTable>(table: Table) => builder.insert(table)
export const update = <Table extends SQLiteTable>(table: Table) => builder.update(table)
export const remove = <Table extends SQLiteTable>(table: Table) => builder.delete(table)

/** A query that was built, as a statement of a batch. */
export function statement(built: { toSQL(): { sql: string; params: readonly unknown[] } }): Statement {
  const { sql: text, params } = built.toSQL()
  return { sql: text, args: values(params) }
}

/** A statement of the ledger that undoes its batch unless the condition holds. It leaves no row. */
export const guard = (holds: SQL): Statement =>
  statement(insert(guards).select(sql`select 0 where (${holds}) is not true`))

/** A condition that is SQL text with `?` for its values, as a part of a built query. */
export function textCondition({ sql: text, args }: Statement): SQL {
  const [first = '', ...rest] = text.split('?')
  const parts = rest.flatMap((part, index) => [sql`${args[index]}`, sql.raw(part)])
  return sql`(${sql.join([sql.raw(first), ...parts])})`
}

const dialect = new SQLiteAsyncDialect()

/** A condition as text with its values: the guard of a change (events/recorder.ts), or a part of SQL text. */
export function condition(holds: SQL | undefined): Statement {
  const { sql: text, params } = dialect.sqlToQuery(holds ?? sql`true`)
  return { sql: text, args: values(params) }
}

/** The version inside a transaction on the state, after it was raised. */
export const newStateVersion = sql<number>`(select version from state_head)`

/** Whether a table has a row for which the condition holds: a condition itself, for guards and other conditions. */
export const hasRow = (table: SQLiteTable, condition: SQL | undefined): SQL =>
  condition === undefined
    ? sql`exists (select 1 from ${table})`
    : sql`exists (select 1 from ${table} where ${condition})`

/**
 * Whether a column's value is one of many: one parameter however many there are, so that the statement stays prepared.
 */
export const isOneOf = (column: AnySQLiteColumn, among: readonly (string | number)[]): SQL =>
  sql`${column} in (select value from json_each(${JSON.stringify(among)}))`

const values = (params: readonly unknown[]): Statement['args'] =>
  params.map((value) => {
    if (typeof value === 'string' || typeof value === 'number' || value === null) return value
    throw new TypeError(`No ${typeof value} can be a value of a statement`)
  })

const partOfId = /^[0-9a-f-]{8,36}$/i

/** The condition that one of the names has the text, in letters of any size, or the id has it, from 8 characters on. */
export function isNamed(
  text: string | undefined,
  { id, names }: { id: AnySQLiteColumn; names: readonly AnySQLiteColumn[] },
): SQL | undefined {
  if (text === undefined) return undefined
  const columns = partOfId.test(text) ? [...names, id] : names
  return or(...columns.map((column) => sql`instr(lower(${column}), lower(${text})) > 0`))
}
