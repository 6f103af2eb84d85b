/** Reads a database of a backup, which nothing else has open. */
import type { Database } from 'bun:sqlite'
import type { Reader } from '../store/open.ts'

export const readerOf = (database: Database): Reader => ({
  read: async <Shape>(sql: string) => database.query(sql).all() as Shape[],
  readValues: async (sql: string) => database.query(sql).values(),
})
