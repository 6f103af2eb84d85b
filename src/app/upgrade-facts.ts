/** Reads what a start of this executable would do to the databases of a control plane. Nothing is written. */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { lastBackup } from '../backup/last-backup.ts'
import type { Settings } from '../config.ts'
import type { DirectoryFault } from '../doctor/host-facts.ts'
import type { DataFacts } from '../doctor/upgrade-checks.ts'
import { Failure } from '../failure.ts'
import type { Reader } from '../store/open.ts'
import { openBeside } from '../store/open-beside.ts'
import { openRemoteDatabase } from '../store/remote.ts'
import { ledgerMigrations, type Migration, pendingMigrations, stateMigrations } from '../store/schema/migrate.ts'
import { findStartFaults } from './start-faults.ts'
import { isRemote } from './store.ts'

/** Null where neither the directory nor the settings lead to databases. */
export async function readDataFacts(settings: Settings): Promise<DataFacts | null> {
  const data = resolve(settings.data)
  const remote = isRemote(settings)
  if (!remote && !existsSync(join(data, 'state.db'))) return null
  const faults = await findStartFaults({ ...settings, data }, true)
  const found = await pendingIn(settings, data, remote)
  const others =
    found instanceof Failure && !faults.some(({ what }) => what.includes(found.message)) ? [refusal(found)] : []
  return {
    ...(found instanceof Failure
      ? { pending: null, readsFrom: null }
      : { pending: found.map(({ place, name }) => `${place} ${name}`), readsFrom: raisedTo(found) }),
    faults: [...faults, ...others],
    lastBackup: remote ? 'elsewhere' : (lastBackup(data) ?? 'none'),
  }
}

interface Pending extends Migration {
  place: 'state' | 'ledger'
}

async function pendingIn(settings: Settings, data: string, remote: boolean): Promise<Pending[] | Failure> {
  const { state_url = '', state_token, ledger_url = '', ledger_token } = settings
  const open = async (place: Pending['place']): Promise<Reader & { close(): void }> => {
    if (!remote) return openBeside(join(data, `${place}.db`))
    const [url, token] = place === 'state' ? [state_url, state_token] : [ledger_url, ledger_token]
    return await openRemoteDatabase({ url, token, name: place })
  }
  const pendingOf = async (place: Pending['place'], migrations: readonly Migration[]): Promise<Pending[]> => {
    const database = await open(place)
    try {
      return (await pendingMigrations(database, migrations)).map((migration) => ({ ...migration, place }))
    } finally {
      database.close()
    }
  }
  try {
    return [...(await pendingOf('state', stateMigrations)), ...(await pendingOf('ledger', ledgerMigrations))]
  } catch (error) {
    if (error instanceof Failure) return error
    const message = error instanceof Error ? error.message : String(error)
    return new Failure('data_incompatible', { message, cause: error })
  }
}

/** The version to which custom migrations raise `state_head.reads_from` (store/README.md, Rule 5). */
const raisedTo = (pending: readonly Migration[]): string | null =>
  pending
    .flatMap(({ sql }) => [...sql.matchAll(/reads_from\s*=\s*'([^']+)'/g)].flatMap(([, version]) => version ?? []))
    .toSorted(Bun.semver.order)
    .at(-1) ?? null

const refusal = ({ message }: Failure): DirectoryFault => ({
  level: 'fail',
  what: `A start would be refused: ${message}`,
  todo: 'Start the version that made the data, or restore a backup that this version made',
})
