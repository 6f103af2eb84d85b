/** Databases for tests: real files, migrated, in a directory of their own that `remove` takes away. */
import { mkdtempSync, rmSync } from 'node:fs'
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

export async function temporaryStore(): Promise<TemporaryStore> {
  const directory = temporaryDirectory()
  const state = await openDatabase(join(directory, 'state.db'), directory)
  const ledger = await openDatabase(join(directory, 'ledger.db'), directory)
  await migrateState(state)
  await migrateLedger(ledger)
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
