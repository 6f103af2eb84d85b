/**
 * What a start of the control plane in a data directory would refuse, found by the same checks in the same order:
 *
 *  1. the two databases: settings that fit together, valid files, neither emptied beside the other, no newer
 *     version's, and no text that would crash libSQL after a process ended without closing them,
 *  2. the master key, against what is encrypted in the ledger,
 *  3. the signing key of checkpoints.
 *
 * It also reports what a start would not mention: files that others may read, missing keys and marks. Nothing is
 * written. Databases on servers are not examined; their control plane is asked whether it is ready.
 */
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Settings } from '../config.ts'
import type { DirectoryFault } from '../doctor/host-facts.ts'
import { readKeyRing, readSigningKey } from '../events/proof/checkpoint-key.ts'
import { readKnownCheckpoint } from '../events/proof/known-checkpoint.ts'
import { Failure } from '../failure.ts'
import { filesHaveModes } from '../lib/host/platform.ts'
import { requireSoundText } from '../store/damage/damaged-text.ts'
import { requireMasterKey } from '../store/keys/load-master-key.ts'
import type { Reader } from '../store/open.ts'
import { openBeside } from '../store/open-beside.ts'
import { ledgerMigrations, requireReadable, stateMigrations } from '../store/schema/migrate.ts'
import { requireBoth } from './lost-database.ts'
import { isRemote } from './store.ts'

/** `isHeld`: whether a control plane has the databases open. It examined their text when it started. */
export async function findStartFaults(settings: Settings, isHeld: boolean): Promise<DirectoryFault[]> {
  const beside = [...exposed(settings.data), ...lostMarks(settings.data)]
  try {
    return isRemote(settings) ? beside : [...(await lookAtFiles(settings, isHeld)), ...beside]
  } catch (error) {
    const todo = 'Run doctor with the environment of the control plane, and start that with what it asks for'
    return [refusal(error, todo), ...beside]
  }
}

const restoreBoth = 'Restore state.db and ledger.db together from a backup, while nothing runs'
const restoreKey =
  'Put the key back from a backup, as the file or as SERVICE_MASTER_KEY: nothing that is sealed can be read without it'
const restoreSigningKey =
  'Put the key back from a backup; where there is none, remove the file, and note the id of the key that a start makes'

async function lookAtFiles(settings: Settings, isHeld: boolean): Promise<DirectoryFault[]> {
  const { data } = settings
  const state = lazily(join(data, 'state.db'))
  const ledger = lazily(join(data, 'ledger.db'))
  try {
    const wrong = await faultOf(async () => {
      await requireReadable(state, stateMigrations)
      await requireReadable(ledger, ledgerMigrations)
      if (!isHeld && existsSync(join(data, 'databases-in-use'))) {
        await requireSoundText(state, 'state')
        await requireSoundText(ledger, 'ledger')
      }
      await requireBoth({ state, ledger })
      return null
    }, restoreBoth)
    // Without the ledger nothing can be said about its keys.
    if (wrong.length > 0) return wrong
    return [
      ...(await faultOf(
        () => requireMasterKey({ settings, dataDirectory: data, ledger }).then(() => null),
        restoreKey,
      )),
      ...(await faultOf(() => otherKey(settings, ledger), restoreSigningKey)),
    ]
  } finally {
    state.close()
    ledger.close()
  }
}

/** The fault that a check throws, which would end a start. */
async function faultOf(check: () => Promise<DirectoryFault | null>, todo: string): Promise<DirectoryFault[]> {
  try {
    const found = await check()
    return found === null ? [] : [found]
  } catch (error) {
    return [refusal(error, todo)]
  }
}

/** Opened at the first read. A missing file counts as one without tables, as a start would make it. */
function lazily(file: string): Reader & { close(): void } {
  let opened: ReturnType<typeof openBeside> | null = null
  const open = () => {
    opened ??= openBeside(file)
    return opened
  }
  return {
    read: async (sql, args) => (isEmpty(file) ? [] : await open().read(sql, args)),
    readValues: async (sql, args) => (isEmpty(file) ? [] : await open().readValues(sql, args)),
    close: () => opened?.close(),
  }
}

const isEmpty = (file: string): boolean =>
  !existsSync(file) || (statSync(file).size === 0 && !existsSync(`${file}-wal`))

/** Throws if the file contains no key. Null if it is the key that signed here, or none has yet. */
async function otherKey({ data, checkpoint_key_file }: Settings, ledger: Reader): Promise<DirectoryFault | null> {
  const path = checkpoint_key_file ?? join(data, 'checkpoint-key')
  const key = readSigningKey(path)
  const table = await ledger.read("select 1 from sqlite_master where name = 'checkpoint_keys'")
  const known = table.length === 0 ? [] : (await readKeyRing(ledger)).ids
  if (known.length === 0 || (key !== null && known.includes(key.id))) return null
  return {
    level: 'warn',
    what:
      key === null ? `${path} is missing: the next start makes another key` : `${path} holds a key that is new here`,
    todo: 'Put the former key back from a backup; otherwise note the new id, which events verify prints: both are needed from then on',
  }
}

const ownFiles = [
  'state.db',
  'ledger.db',
  'master-key',
  'master-key-next',
  'master-key-former',
  'checkpoint-key',
  'checkpoint.json',
  'admin-token',
]
const ends = ['', '-wal', '-shm']

/** Files of this directory that other users may read or write. */
function exposed(data: string): DirectoryFault[] {
  if (!filesHaveModes) return []
  return ownFiles
    .flatMap((name) => ends.map((end) => `${name}${end}`))
    .flatMap((name) => {
      const path = join(data, name)
      const mode = modeOf(path)
      if ((mode & 0o077) === 0) return []
      return [
        {
          level: 'warn' as const,
          what: `${name} is open to other users, mode 0${mode.toString(8)}`,
          todo: `chmod 600 ${path}; where others could reach it, take what it holds for known`,
        },
      ]
    })
}

function modeOf(path: string): number {
  try {
    return statSync(path).mode & 0o777
  } catch {
    // Missing, or not readable by this user, which is reported for the directory.
    return 0
  }
}

function lostMarks(data: string): DirectoryFault[] {
  const path = join(data, 'checkpoint.json')
  try {
    if (!existsSync(path) || readKnownCheckpoint(path) !== null) return []
  } catch {
    // Not readable: counts as lost, as below.
  }
  return [
    {
      level: 'warn',
      what: 'checkpoint.json is damaged: what this control plane had last seen signed is lost, and the next one takes its place',
      todo: 'Run events verify with --key and the --witness of a gateway: those were not on this host',
    },
  ]
}

function refusal(error: unknown, todo: string): DirectoryFault {
  if (error instanceof Failure) return { level: 'fail', what: `A start would be refused: ${error.message}`, todo }
  const reason = error instanceof Error ? error.message : String(error)
  return { level: 'fail', what: `What a start needs cannot be read: ${reason}`, todo: 'Give this user the right to' }
}
