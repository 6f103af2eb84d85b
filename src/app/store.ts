/** The control plane's two databases: files of its data directory, or databases on libSQL servers (fleet/README.md). */
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Settings } from '../config.ts'
import { type ConnectedArchive, connectArchive } from '../events/clickhouse/connect.ts'
import { Failure } from '../failure.ts'
import { requireSoundText } from '../store/damage/damaged-text.ts'
import { createReadCredentials, type ReadCredential } from '../store/keys/read-credential.ts'
import { type Database, openDatabase } from '../store/open.ts'
import { openRemoteDatabase } from '../store/remote.ts'
import { migrateLedger, migrateState } from '../store/schema/migrate.ts'
import { requireBoth } from './lost-database.ts'

export interface Store {
  state: Database
  ledger: Database
  /** Where gateways read the state: a file of this host, or a server with credentials that only read it. */
  source: { file: string } | { url: string; credential(): ReadCredential }
  /** Where older events are; null where the ledger keeps them all. */
  archive: ConnectedArchive | null
  close(): void
}

type OpenedStore = Omit<Store, 'archive'>

type StoreSettings = Pick<
  Settings,
  | 'state_url'
  | 'state_token'
  | 'ledger_url'
  | 'ledger_token'
  | 'events_url'
  | 'events_user'
  | 'events_password'
  | 'state_signing_key_file'
  | 'state_read_token'
  | 'master_key'
>

/** Whether the databases are on servers. Throws `invalid_parameter` if only half of the settings are given. */
export function isRemote({ state_url, ledger_url, master_key }: StoreSettings): boolean {
  if (state_url === undefined && ledger_url === undefined) return false
  const missing = Object.entries({ state_url, ledger_url, master_key }).find(([, value]) => value === undefined)?.[0]
  if (missing === undefined) return true
  const message =
    missing === 'master_key'
      ? 'With databases on a server every control plane needs the same SERVICE_MASTER_KEY: openssl rand -base64 32 makes one'
      : 'SERVICE_STATE_URL and SERVICE_LEDGER_URL go together'
  throw new Failure('invalid_parameter', { message, param: missing })
}

/** Opens both and migrates them to this version. */
export async function openStore(settings: StoreSettings, directory: string, now: () => number): Promise<Store> {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const store = isRemote(settings) ? await openServers(settings, now) : await openFiles(directory)
  try {
    await requireBoth(store)
    await migrateState(store.state)
    await migrateLedger(store.ledger)
    const archive = await connectArchive(settings)
    return {
      ...store,
      archive,
      close() {
        store.close()
        void archive?.close()
      },
    }
  } catch (error) {
    store.close()
    throw error
  }
}

async function openFiles(directory: string): Promise<OpenedStore> {
  const file = join(directory, 'state.db')
  const state = await openDatabase(file, directory)
  const ledger = await openDatabase(join(directory, 'ledger.db'), directory)
  const inUse = join(directory, 'databases-in-use')
  try {
    // A process that ended without closing them may have crashed on what it read there.
    if (existsSync(inUse)) {
      await requireSoundText(state, 'state')
      await requireSoundText(ledger, 'ledger')
    }
    writeFileSync(inUse, '', { mode: 0o600 })
  } catch (error) {
    closeAll(state, ledger)
    throw error
  }
  const close = () => {
    closeAll(state, ledger)
    rmSync(inUse, { force: true })
  }
  return { state, ledger, source: { file }, close }
}

async function openServers(settings: StoreSettings, now: () => number): Promise<OpenedStore> {
  const { state_url: stateUrl = '', ledger_url: ledgerUrl = '' } = settings
  const state = await openRemoteDatabase({ url: stateUrl, token: settings.state_token, name: 'state' })
  const ledger = await openRemoteDatabase({ url: ledgerUrl, token: settings.ledger_token, name: 'ledger' })
  const credential = await createReadCredentials({
    stateUrl,
    ledgerUrl,
    signingKeyFile: settings.state_signing_key_file,
    staticToken: settings.state_read_token,
    now,
  })
  return { state, ledger, source: { url: stateUrl, credential }, close: () => closeAll(state, ledger) }
}

function closeAll(...databases: readonly Database[]): void {
  for (const database of databases) database.close()
}
