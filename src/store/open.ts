/**
 * Opens a libSQL database for writing: the one process that does so for a file, through one connection (protocols
 * section 7). libSQL's own defaults are journal_mode=delete, busy_timeout=0 and a pool of 20, and a pragma reaches one
 * connection only; hence `concurrency: 1` and the pragmas here.
 *
 * The native addon blocks the thread it is called on and can abort the process, so only the control plane may load it:
 * this module loads it on first use, never when imported. The executable carries it as a file and puts it into the data
 * directory, because a temp directory that allows execution cannot be counted on.
 */
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Client, InArgs } from '@libsql/client'
import { embeddedAddon } from './addon.ts'

/** One statement with its values, as `batch` takes it and a pending change stores it. */
export interface Statement {
  sql: string
  args: (string | number | null)[]
}

export interface Database {
  client: Client
  /** Runs statements in one write transaction, in order; any failure undoes all. */
  write(statements: readonly Statement[]): Promise<void>
  /** Rows of one read, as plain objects keyed by column name. */
  read<Row>(sql: string, args?: Statement['args']): Promise<Row[]>
  close(): void
}

/** Opens the file for writing, creating it. `dataDirectory` is where the native addon is placed. */
export async function openDatabase(file: string, dataDirectory: string): Promise<Database> {
  placeAddon(dataDirectory)
  const { createClient } = await import('@libsql/client')
  const client = createClient({ url: `file:${file}`, concurrency: 1 })
  for (const pragma of ['journal_mode = wal', 'synchronous = full', 'busy_timeout = 5000', 'foreign_keys = on']) {
    await client.execute(`pragma ${pragma}`)
  }
  chmodSync(file, 0o600)
  return {
    client,
    async write(statements) {
      await client.batch(statements.map(toLibsql), 'write')
    },
    async read<Row>(sql: string, args: Statement['args'] = []) {
      const { columns, rows } = await client.execute({ sql, args })
      return rows.map((row) => Object.fromEntries(columns.map((name, index) => [name, row[index]]))) as Row[]
    },
    close: () => client.close(),
  }
}

const toLibsql = ({ sql, args }: Statement): { sql: string; args: InArgs } => ({ sql, args })

let addonPlaced = false

function placeAddon(dataDirectory: string): void {
  if (addonPlaced || embeddedAddon === null) return
  const directory = join(dataDirectory, 'native')
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const content = readFileSync(embeddedAddon)
  const path = join(directory, `libsql-${Bun.hash(content).toString(36)}.node`)
  if (!existsSync(path)) {
    writeFileSync(`${path}.new`, content, { mode: 0o700 })
    renameSync(`${path}.new`, path)
  }
  const addon = { exports: {} }
  process.dlopen(addon as NodeJS.Module, path)
  // The build makes libsql take its addon from here instead of looking for a package.
  Object.assign(globalThis, { [Symbol.for('gatehouse.libsql')]: addon.exports })
  addonPlaced = true
}
