/**
 * Opens a libSQL database file for writing (for one of a server see remote.ts): the one process that does so for a
 * file, through one connection (protocols section 7). libSQL's own defaults are journal_mode=delete, busy_timeout=0 and
 * a pool of 20, and a pragma reaches one connection only; hence `concurrency: 1` and the pragmas here.
 *
 * The native addon blocks the thread it is called on and can abort the process, so only the control plane may load it:
 * this module loads it on first use, never when imported. The executable carries it as a file and puts it into the data
 * directory, because a temp directory that allows execution cannot be counted on.
 */
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Client, InArgs, ResultSet } from '@libsql/client'
import { embeddedAddon } from './addon.ts'

/** One statement with its values, as `batch` takes it and a pending change stores it. */
export interface Statement {
  sql: string
  args: (string | number | null)[]
}

/** A row as it comes from the database. */
export type Row = Record<string, unknown>

export interface Database {
  client: Pick<Client, 'execute' | 'executeMultiple' | 'batch'>
  /**
   * Runs statements in one write transaction, in order; any failure undoes all and rejects with libSQL's error. What is
   * `patient` lets other writes go first where they have to wait for one another.
   */
  write(statements: readonly Statement[], urgency?: 'patient'): Promise<void>
  /** The same, and gives the rows of the last statement: what a write has made costs no round trip of its own. */
  writeAndRead<Shape = Row>(statements: readonly Statement[]): Promise<Shape[]>
  /** Rows of one read, as plain objects keyed by column name; `Shape` is what the caller knows of its own query. */
  read<Shape = Row>(sql: string, args?: Statement['args']): Promise<Shape[]>
  close(): void
}

/** The time of the database itself, in milliseconds, as an SQL expression: hosts' clocks may differ, it is one. */
export const databaseTime = "cast(unixepoch('subsec') * 1000 as integer)"

/** Opens the file for writing, creating it. `dataDirectory` is where the native addon is placed. */
export async function openDatabase(file: string, dataDirectory: string): Promise<Database> {
  placeAddon(dataDirectory)
  const { createClient } = await import('@libsql/client/sqlite3')
  const client = createClient({ url: pathToFileURL(file).href, concurrency: 1 })
  try {
    // The timeout first: the others may have to wait for another process that is opening the file.
    for (const pragma of ['busy_timeout = 5000', 'journal_mode = wal', 'synchronous = full', 'foreign_keys = on']) {
      await client.execute(`pragma ${pragma}`)
    }
    chmodSync(file, 0o600)
  } catch (error) {
    client.close()
    throw error
  }
  return {
    client,
    async write(statements) {
      await client.batch(statements.map(toLibsql), 'write')
    },
    async writeAndRead<Shape>(statements: readonly Statement[]) {
      return lastRows(await client.batch(statements.map(toLibsql), 'write')) as Shape[]
    },
    async read<Shape>(sql: string, args: Statement['args'] = []) {
      return rowsOf(await client.execute({ sql, args })) as Shape[]
    },
    close: () => client.close(),
  }
}

export const rowsOf = ({ columns, rows }: ResultSet): Row[] =>
  rows.map((row) => Object.fromEntries(columns.map((name, index) => [name, row[index]])))

/** The rows of a batch's last statement. */
export function lastRows(results: readonly ResultSet[]): Row[] {
  const last = results.at(-1)
  return last === undefined ? [] : rowsOf(last)
}

const toLibsql = ({ sql, args }: Statement): { sql: string; args: InArgs } => ({ sql, args })

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
