/**
 * Opens a libSQL database file for writing (for one of a server see remote.ts): the one process that does so for a
 * file, through one connection (store/README.md; local-connection.ts). libSQL's own defaults are
 * journal_mode=delete and busy_timeout=0; hence the pragmas here.
 *
 * The native addon blocks the thread it is called on and can abort the process, so only the control plane may load it:
 * this module loads it on first use, never when imported. The executable carries it as a file and puts it into the data
 * directory, because a temp directory that allows execution cannot be counted on.
 */

import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { embeddedAddon } from './addon.ts'
import { naming } from './damage/damaged-file.ts'
import { LocalConnection } from './local-connection.ts'
import type { Row, Statement, Values } from './statement.ts'
import { pagesAtMost, WriteAheadLog } from './write-ahead-log.ts'

/**
 * A low priority write: it lets others write first and does not wait for the disk. Its data survives a crash of the
 * host after `flush`, or after any other normal write. `{}` if the caller does not need the timing.
 */
export interface LowPriority {
  /** Told how many milliseconds its transaction held the database, without the way there and back. */
  held?(milliseconds: number): void
}

/** What only looks at a database. */
export type Reader = Pick<Database, 'read' | 'readValues'>

export interface Database {
  /**
   * Runs statements in one write transaction, in order; any failure undoes all and rejects with libSQL's error. What is
   * `patient` lets other writes go first where they have to wait for one another.
   */
  write(statements: readonly Statement[], patient?: LowPriority): Promise<void>
  /** The same, and returns the rows of the last statement, which saves a round trip. */
  writeAndRead<Shape = Row>(statements: readonly Statement[]): Promise<Shape[]>
  /** Rows of one read, as plain objects keyed by column name; `Shape` is the caller's own type of the query. */
  read<Shape = Row>(sql: string, args?: Statement['args']): Promise<Shape[]>
  /** The same with each row as a list of its values in the order of the columns, as the query builder takes them. */
  readValues(sql: string, args?: Statement['args']): Promise<unknown[][]>
  /** What a statement finds after others, in one transaction that is undone: nothing of it stays. */
  readAfter(statements: readonly Statement[], read: Statement): Promise<Values>
  /**
   * Resolves when all that was written before is safe from a crash of the host: to be awaited before it is
   * acknowledged.
   */
  flush(): Promise<void>
  close(): void
}

/** The time of the database itself, in milliseconds, as an SQL expression: hosts' clocks may differ, it is one. */
export const databaseTime = "cast(unixepoch('subsec') * 1000 as integer)"

/** Milliseconds since the epoch, by the database: the same for every host. */
export async function readDatabaseTime(database: Reader): Promise<number> {
  const [row] = await database.read<{ now: number }>(`select ${databaseTime} as now`)
  if (row === undefined) throw new Error('The database told no time')
  return row.now
}

const pragmas = [
  // First: the others may have to wait for another process that is opening the file.
  'busy_timeout = 5000',
  'journal_mode = wal',
  'synchronous = full',
  'foreign_keys = on',
  `wal_autocheckpoint = ${pagesAtMost}`,
]

/** Opens the file for writing, creating it. `dataDirectory` is where the native addon is placed. */
export async function openDatabase(file: string, dataDirectory: string): Promise<Database> {
  placeAddon(dataDirectory)
  const [{ LibsqlError }, { default: Libsql }] = await Promise.all([import('@libsql/client/sqlite3'), import('libsql')])
  const log = new WriteAheadLog({
    file,
    connect: async () => new (await import('libsql/promise')).default(file, {}),
    takeIn() {
      const [done] = connection.run('pragma wal_checkpoint(passive)')
      return done?.busy === 0 && done.log === done.checkpointed
    },
  })
  const connection = new LocalConnection({
    native: new Libsql(file, {}),
    NativeError: Libsql.SqliteError,
    LibsqlError,
  })
  try {
    for (const pragma of pragmas) {
      naming(file, () => connection.run(`pragma ${pragma}`))
    }
    chmodSync(file, 0o600)
  } catch (error) {
    connection.close()
    throw error
  }
  const transact = (statements: readonly Statement[], flushed: boolean): Row[] => {
    const rows = naming(file, () => connection.transact(statements, flushed ? 'full' : 'normal'))
    log.wrote(connection.characters, flushed)
    return rows
  }
  return {
    async write(statements, patient) {
      if (patient !== undefined && log.checkpoint !== null) await log.checkpoint
      const began = performance.now()
      transact(statements, patient === undefined)
      patient?.held?.(performance.now() - began)
    },
    async writeAndRead<Shape>(statements: readonly Statement[]) {
      return transact(statements, true) as Shape[]
    },
    async read<Shape>(sql: string, args: Statement['args'] = []) {
      return naming(file, () => connection.run(sql, args)) as Shape[]
    },
    async readValues(sql, args = []) {
      return naming(file, () => connection.runForValues(sql, args))
    },
    async readAfter(statements, read) {
      return naming(file, () => connection.attempt(statements, read))
    },
    flush: () => log.flush(),
    close() {
      log.close()
      connection.close()
    },
  }
}

let addonPlaced = false

export function placeAddon(dataDirectory: string): void {
  if (addonPlaced || embeddedAddon === null) return
  const directory = join(dataDirectory, 'native')
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const path = join(directory, embeddedAddon.name)
  if (!existsSync(path)) {
    writeFileSync(`${path}.new`, readFileSync(embeddedAddon.path), { mode: 0o700 })
    renameSync(`${path}.new`, path)
  }
  const addon = { exports: {} }
  process.dlopen(addon as NodeJS.Module, path)
  // The build makes libsql take its addon from here instead of looking for a package.
  Object.assign(globalThis, { [Symbol.for('gatehouse.libsql')]: addon.exports })
  addonPlaced = true
}
