/**
 * Puts a backup in the place of an installation that is stopped. Everything is checked and prepared beside the data
 * directory's files first; then files are renamed. What was there is kept in a folder of its own.
 */
import { Database } from 'bun:sqlite'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Failure } from '../failure.ts'
import { formerKeyOf, keysLookedAt, requireMasterKey } from '../store/keys/load-master-key.ts'
import { ledgerMigrations, requireReadable, stateMigrations } from '../store/schema/migrate.ts'
import { databaseFiles } from './copy-pair.ts'
import { keysName, type Manifest } from './manifest.ts'
import { markRestored } from './mark-restored.ts'
import { readBackup } from './read-backup.ts'
import { readerOf } from './reader.ts'
import { type Keys, keyFiles, openKeys } from './sealed-keys.ts'

export interface RestoreOptions {
  /** The data directory, which the caller has locked. */
  data: string
  file: string
  /** Opens the keys of the backup; null leaves the keys of the data directory. */
  passphrase: string | null
  /** Where the master key is, unless the backup brings it. */
  settings: { master_key?: string | undefined; master_key_next?: string | undefined }
  now(): number
}

export interface Restored {
  manifest: Manifest
  /** Tokens that had ended since the backup and stay ended. */
  endedAgain: number
  /** Where the former files are; null where there were none. */
  kept: string | null
  keys: readonly string[]
}

/** What is moved away: databases with their logs, and what the control plane has last seen signed. */
const replaced = [
  ...databaseFiles.flatMap((name) => [name, `${name}-wal`, `${name}-shm`]),
  'checkpoint.json',
  'databases-in-use',
]

export async function restoreBackup(options: RestoreOptions): Promise<Restored> {
  const { data, file, now } = options
  mkdirSync(data, { recursive: true, mode: 0o700 })
  const prepared = mkdtempSync(join(data, '.restore-'))
  try {
    const manifest = await readBackup(file, prepared)
    const brought = keysOf(prepared, manifest, options)
    await requireSound(prepared)
    const keys = Object.keys(brought).length > 0 ? brought : await keysHere(prepared, manifest, options)
    const { endedAgain } = markRestored(join(prepared, 'ledger.db'), join(data, 'ledger.db'), now())
    const keyNames = Object.keys(keys)
    for (const [name, content] of Object.entries(keys)) writeFileSync(join(prepared, name), content, { mode: 0o600 })
    const kept = replace(prepared, data, { names: [...databaseFiles, ...keyNames], now: now() })
    return { manifest, endedAgain, kept, keys: keyNames }
  } finally {
    rmSync(prepared, { recursive: true, force: true })
  }
}

function keysOf(prepared: string, { files }: Manifest, { data, passphrase, settings }: RestoreOptions): Keys {
  const has = files.some(({ name }) => name === keysName)
  if (passphrase !== null && !has) {
    throw new Failure('invalid_parameter', {
      param: 'passphrase',
      message: 'This backup holds no keys: leave the passphrase out',
    })
  }
  if (passphrase !== null) return openKeys(readFileSync(join(prepared, keysName), 'utf8'), passphrase)
  if (settings.master_key !== undefined || existsSync(join(data, keyFiles[0]))) return {}
  throw new Failure('invalid_parameter', {
    param: 'passphrase',
    message: has
      ? 'There is no master key here: give the passphrase of the backup, or SERVICE_MASTER_KEY'
      : `There is no master key here, and this backup holds none: put the file ${keyFiles[0]} into ${data}, or set SERVICE_MASTER_KEY`,
  })
}

/** Throws `data_incompatible` for what a later version made, and `data_damaged` for what is not sound. */
async function requireSound(prepared: string): Promise<void> {
  for (const name of databaseFiles) {
    using database = new Database(join(prepared, name), { readonly: true })
    const [found] = database.query<{ quick_check: string }, []>('pragma quick_check').all()
    if (found?.quick_check !== 'ok') {
      throw new Failure('data_damaged', { message: `${name} of this backup is damaged: ${found?.quick_check}` })
    }
    await requireReadable(readerOf(database), name === 'state.db' ? stateMigrations : ledgerMigrations)
  }
}

/**
 * The key files to write so that the keys of this host open what the backup holds: none where the present key does.
 * Throws `invalid_parameter` where no former key does either.
 */
async function keysHere(
  prepared: string,
  manifest: Manifest,
  options: RestoreOptions,
): Promise<Record<string, string>> {
  using database = new Database(join(prepared, 'ledger.db'), { readonly: true })
  const where = { settings: options.settings, dataDirectory: options.data, ledger: readerOf(database) }
  try {
    await requireMasterKey(where)
    return {}
  } catch (cause) {
    const former = await formerKeyOf(where)
    if (former !== null) return { ...former }
    const needed = manifest.master_key === undefined ? '' : ` It needs the key ${manifest.master_key}.`
    throw new Failure('invalid_parameter', {
      param: 'master_key',
      message: `No master key here opens this backup.${needed} Looked at: ${keysLookedAt(where)}. Put the key that it was made with into ${join(options.data, keyFiles[0])}, or into SERVICE_MASTER_KEY`,
      cause,
    })
  }
}

/**
 * Moves what is there into a folder of its own, whose path it gives, and the named files into its place. What fails is
 * moved back.
 */
function replace(prepared: string, data: string, { names, now }: { names: readonly string[]; now: number }) {
  const present = [...new Set([...replaced, ...names])].filter((name) => existsSync(join(data, name)))
  const kept = join(data, `before-restore-${new Date(now).toISOString().replaceAll(/[:.]/g, '-')}`)
  const moved: [from: string, to: string][] = []
  const move = (from: string, to: string) => {
    renameSync(from, to)
    moved.push([from, to])
  }
  try {
    if (present.length > 0) mkdirSync(kept, { mode: 0o700 })
    for (const name of present) move(join(data, name), join(kept, name))
    for (const name of names) move(join(prepared, name), join(data, name))
  } catch (error) {
    for (const [from, to] of moved.toReversed()) renameSync(to, from)
    rmSync(kept, { recursive: true, force: true })
    throw error
  }
  return present.length === 0 ? null : kept
}
