/**
 * Between rows and the tables that `store/schema/state.ts` and `store/schema/ledger.ts` describe. (drizzle's libSQL driver would load the native
 * addon when imported; its table definitions and query builder do not.)
 */
import { getTableColumns, type InferInsertModel, type InferSelectModel } from 'drizzle-orm'
import { getTableConfig, type SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { Row, Statement } from './statement.ts'

/** A row by the names that code uses: `team_id` becomes `teamId`. */
export const fromRow = <Table extends SQLiteTable>(table: Table, row: Row): InferSelectModel<Table> =>
  Object.fromEntries(
    Object.entries(getTableColumns(table)).map(([name, column]) => [name, row[column.name] ?? null]),
  ) as InferSelectModel<Table>

/** The version inside a transaction on the state database, after it was raised. */
export const newStateVersion = '(select version from state_head)'

/** An insert of one row; `expressions` gives columns, by the names code uses, that are computed by SQL. */
export function insertRow<Table extends SQLiteTable>(
  table: Table,
  values: { [Name in keyof InferInsertModel<Table>]?: Statement['args'][number] },
  expressions: { [Name in keyof InferInsertModel<Table>]?: string } = {},
): Statement {
  const columns = getTableColumns(table)
  const given = Object.entries<Statement['args'][number] | undefined>(values)
  const computed = Object.entries<string | undefined>(expressions)
  const names = [...given, ...computed].map(([name]) => columns[name]?.name ?? name)
  const places = [...given.map(() => '?'), ...computed.map(([, expression]) => expression ?? 'null')]
  return {
    sql: `insert into ${getTableConfig(table).name} (${names.join(', ')}) values (${places.join(', ')})`,
    args: given.map(([, value]) => value ?? null),
  }
}

/** An update of the row of this id; `expressions` as for an insert. */
export function updateRow<Table extends SQLiteTable>(
  table: Table,
  id: string,
  values: { [Name in keyof InferInsertModel<Table>]?: Statement['args'][number] },
  expressions: { [Name in keyof InferInsertModel<Table>]?: string } = {},
): Statement {
  const columns = getTableColumns(table)
  const given = Object.entries<Statement['args'][number] | undefined>(values)
  const computed = Object.entries<string | undefined>(expressions)
  const set = [
    ...given.map(([name]) => `${columns[name]?.name ?? name} = ?`),
    ...computed.map(([name, expression]) => `${columns[name]?.name ?? name} = ${expression ?? 'null'}`),
  ]
  return {
    sql: `update ${getTableConfig(table).name} set ${set.join(', ')} where id = ?`,
    args: [...given.map(([, value]) => value ?? null), id],
  }
}
