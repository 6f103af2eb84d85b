/** What every record of the state has: the version that last changed it, and whether it was deleted. */
import { type AnySQLiteColumn, index, integer } from 'drizzle-orm/sqlite-core'

export const versioned = {
  version: integer('version').notNull(),
  deleted: integer('deleted').notNull().default(0),
}

/** Gateways read what changed after a version by this index. */
export const versionIndex = (table: string, column: AnySQLiteColumn) => index(`${table}_version`).on(column)
