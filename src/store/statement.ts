/** What goes into a database and what comes out, as plain data. */

/** One statement with its values, as `batch` takes it and a pending change stores it. */
export interface Statement {
  sql: string
  args: (string | number | null | Uint8Array)[]
}

/** A row as it comes from the database. */
export type Row = Record<string, unknown>

/** Rows as lists of values, in the order of the columns. */
export interface Values {
  readonly columns: readonly string[]
  readonly rows: unknown[][]
}
