/** Databases for tests: real files, migrated, in a directory of their own that `remove` takes away. */
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Database, openDatabase } from '../open.ts'
import { migrateLedger, migrateState } from '../schema/migrate.ts'

export interface TemporaryStore {
  directory: string
  state: Database
  ledger: Database
  remove(): void
}

export const temporaryDirectory = (): string => mkdtempSync(join(tmpdir(), 'gatehouse-test-'))

let migrated: Promise<string> | null = null
const newHistory = {
  sql: 'update state_head set nonce = lower(hex(randomblob(16))), history = lower(hex(randomblob(16)))',
  args: [],
}

/** Puts a migrated database in the directory and opens it. The migrations run once in a process: a copy costs a tenth. */
export async function openMigrated(name: 'state' | 'ledger', directory: string): Promise<Database> {
  migrated ??= makeMigrated()
  const file = `${name}.db`
  copyFileSync(join(await migrated, file), join(directory, file))
  const database = await openDatabase(join(directory, file), directory)
  // Each has a history of its own, as the migration makes it.
  if (name === 'state') await database.write([newHistory], {})
  return database
}

/** The directory of both databases as they are after their migrations. */
async function makeMigrated(): Promise<string> {
  const directory = temporaryDirectory()
  process.on('exit', () => rmSync(directory, { recursive: true, force: true }))
  const make = async (name: string, migrate: (database: Database) => Promise<void>) => {
    const database = await openDatabase(join(directory, name), directory)
    await migrate(database)
    // Takes the write-ahead log into the file, which is copied without it.
    await database.read('pragma wal_checkpoint(truncate)')
    database.close()
  }
  await make('state.db', migrateState)
  await make('ledger.db', migrateLedger)
  return directory
}

export async function temporaryStore(): Promise<TemporaryStore> {
  const directory = temporaryDirectory()
  const state = await openMigrated('state', directory)
  const ledger = await openMigrated('ledger', directory)
  return {
    directory,
    state,
    ledger,
    remove() {
      state.close()
      ledger.close()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
