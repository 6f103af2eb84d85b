/**
 * Finds the master key, or makes it at a first start. Keys that do not open what is sealed are an error at start:
 * otherwise new secrets could not be read together with the old ones.
 */
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Failure } from '../../failure.ts'
import { readIfThere, readOrMake } from '../../lib/made-once.ts'
import type { Database, Reader } from '../open.ts'
import { insert, statement } from '../query.ts'
import { secrets } from '../schema/ledger/changes.ts'
import { fingerprintOf, installationKeyName, type Keys, MasterKey } from './master-key.ts'

export const masterKeyFile = 'master-key'
export const nextMasterKeyFile = 'master-key-next'
/** Every former key of a file, one in a line, the newest first. */
export const formerMasterKeyFile = 'master-key-former'
const keyLength = 32

export interface MasterKeyOptions {
  /** The settings `master_key` and `master_key_next`: 32 bytes in base64 each. */
  settings: { master_key?: string | undefined; master_key_next?: string | undefined }
  dataDirectory: string
  ledger: Database
  randomBytes(size: number): Uint8Array
}

/** Throws `invalid_parameter`, naming where the key was looked for. */
export async function loadMasterKey(options: MasterKeyOptions): Promise<MasterKey> {
  const { ledger, randomBytes } = options
  const sealed = await sealedSecrets(ledger)
  const keys = ofLedger(readKeys(options, sealed.length === 0 ? randomBytes : null), sealed)
  assertOpen(keys, sealed, options)
  await ledger.write([
    statement(
      insert(secrets)
        .values({
          name: installationKeyName,
          sealed: new MasterKey(keys, '').seal('secret', installationKeyName, encode(randomBytes(keyLength))),
          createdAt: 0,
        })
        .onConflictDoNothing(),
    ),
  ])
  // Of several that start at once with different keys on a ledger without secrets, the first keeps the others away.
  const kept = await sealedSecrets(ledger)
  assertOpen(keys, kept, options)
  const row = kept.find(({ name }) => name === installationKeyName)
  if (row === undefined) throw new Error('The installation key is missing')
  const masterKey = new MasterKey(keys, new MasterKey(keys, '').open('secret', row.name, row.sealed))
  if (keys.next !== null && masterKey.sealedAnew('secret', row.name, row.sealed) === null) masterKey.beginRotation()
  return masterKey
}

/** Whether `loadMasterKey` would find the key, without making anything; throws as that does. */
export async function requireMasterKey(
  options: Pick<MasterKeyOptions, 'settings' | 'dataDirectory'> & { ledger: Reader },
): Promise<void> {
  const sealed = await secretsIfThere(options.ledger)
  const path = join(options.dataDirectory, masterKeyFile)
  if (options.settings.master_key === undefined && sealed.length === 0 && readIfThere(path) === null) return
  assertOpen(ofLedger(readKeys(options, null), sealed), sealed, options)
}

/**
 * Which of the former keys opens a ledger that the present key does not open, as the texts of the key files that open it:
 * the present key is then a former one. Null where none does. Throws what `requireMasterKey` does where keys are not read.
 */
export async function formerKeyOf({
  settings,
  dataDirectory,
  ledger,
}: Pick<MasterKeyOptions, 'settings' | 'dataDirectory'> & { ledger: Reader }): Promise<{
  [masterKeyFile]: string
  [formerMasterKeyFile]: string
} | null> {
  if (settings.master_key !== undefined) return null
  const sealed = await secretsIfThere(ledger)
  const { current, former } = readKeys({ settings, dataDirectory }, null)
  const found = former.find((key) => {
    const others = former.filter((each) => each !== key)
    return opensAll(ofLedger({ current: key, next: null, former: others }, sealed), sealed)
  })
  if (found === undefined) return null
  const others = [current, ...former.filter((each) => each !== found)]
  return { [masterKeyFile]: linesOf([found]), [formerMasterKeyFile]: linesOf(others) }
}

/** The fingerprint of the key that a ledger is under; null where that key is not here, or nothing is sealed. */
export async function fingerprintOfLedger({
  settings,
  dataDirectory,
  ledger,
}: Pick<MasterKeyOptions, 'settings' | 'dataDirectory'> & { ledger: Reader }): Promise<string | null> {
  const kept = (await secretsIfThere(ledger)).filter(({ name }) => name === installationKeyName)
  if (kept.length === 0) return null
  try {
    const { current, next } = readKeys({ settings, dataDirectory }, null)
    const keys = next === null ? [current] : [current, next]
    const found = keys.find((key) => opensAll({ current: key, next: null, former: [] }, kept))
    return found === undefined ? null : fingerprintOf(found)
  } catch (error) {
    if (error instanceof Failure) return null
    throw error
  }
}

/** Where keys were looked for, with the fingerprints of those that are there. */
export function keysLookedAt({
  settings,
  dataDirectory,
}: Pick<MasterKeyOptions, 'settings' | 'dataDirectory'>): string {
  const said = (origin: string, keys: readonly Uint8Array[]) =>
    `${origin} (${keys.length === 0 ? 'no key' : keys.map(fingerprintOf).join(', ')})`
  const { current, next, former } = readKeys({ settings, dataDirectory }, null)
  if (settings.master_key !== undefined) {
    const set = said('SERVICE_MASTER_KEY', [current])
    return next === null ? set : `${set} and ${said('SERVICE_MASTER_KEY_NEXT', [next])}`
  }
  const path = (name: string) => join(dataDirectory, name)
  return [
    said(path(masterKeyFile), [current]),
    ...(next === null ? [] : [said(path(nextMasterKeyFile), [next])]),
    said(path(formerMasterKeyFile), former),
  ].join(' and ')
}

/** Adds the key of the file to the former ones, unless it is there already. */
export function keepFormerKey(dataDirectory: string): void {
  const present = readIfThere(join(dataDirectory, masterKeyFile))
  if (present === null) return
  const key = decodeKey(present, join(dataDirectory, masterKeyFile))
  const others = formerKeys(dataDirectory).filter((each) => fingerprintOf(each) !== fingerprintOf(key))
  // Written whole beside it first, so that no end of the process loses a key.
  const draft = join(dataDirectory, `${formerMasterKeyFile}.${process.pid}`)
  writeFileSync(draft, linesOf([key, ...others]), { mode: 0o600, flush: true })
  renameSync(draft, join(dataDirectory, formerMasterKeyFile))
}

/** Makes the next key of a key that is in a file, or finds the one that was made. */
export function makeNextKey({ dataDirectory, randomBytes }: Pick<MasterKeyOptions, 'dataDirectory' | 'randomBytes'>) {
  const path = join(dataDirectory, nextMasterKeyFile)
  return decodeKey(
    readOrMake(path, () => `${encode(randomBytes(keyLength))}\n`),
    path,
  )
}

async function secretsIfThere(ledger: Reader): Promise<{ name: string; sealed: string }[]> {
  const table = await ledger.read("select 1 from sqlite_master where name = 'secrets'")
  return table.length === 0 ? [] : await sealedSecrets(ledger)
}

const sealedSecrets = (ledger: Reader): Promise<{ name: string; sealed: string }[]> =>
  ledger.read<{ name: string; sealed: string }>('select name, sealed from secrets')

function readKeys(
  { settings, dataDirectory }: Pick<MasterKeyOptions, 'settings' | 'dataDirectory'>,
  randomBytes: MasterKeyOptions['randomBytes'] | null,
): Keys {
  const { master_key: current, master_key_next: next } = settings
  if (current !== undefined) {
    return {
      current: decodeKey(current, 'SERVICE_MASTER_KEY'),
      next: next === undefined ? null : decodeKey(next, 'SERVICE_MASTER_KEY_NEXT'),
      former: [],
    }
  }
  if (next !== undefined) {
    throw new Failure('invalid_parameter', {
      param: 'master_key_next',
      message: 'SERVICE_MASTER_KEY_NEXT goes with SERVICE_MASTER_KEY: a key in a file has its next one in a file too',
    })
  }
  const keyOf = (name: string) => {
    const path = join(dataDirectory, name)
    const made = readIfThere(path)
    return made === null ? null : decodeKey(made, path)
  }
  return {
    current: keyFromFile(join(dataDirectory, masterKeyFile), randomBytes),
    next: keyOf(nextMasterKeyFile),
    former: formerKeys(dataDirectory),
  }
}

function formerKeys(dataDirectory: string): Uint8Array[] {
  const path = join(dataDirectory, formerMasterKeyFile)
  const lines = (readIfThere(path) ?? '').split('\n').filter((line) => line.trim() !== '')
  return lines.map((line) => decodeKey(line, path))
}

/**
 * Without the former keys for a ledger from before the rotation: that is an older copy, which an operator must mean. In
 * a later one a value may be under one that was sealed before the rotation and written after it.
 */
function ofLedger(keys: Keys, sealed: readonly { name: string; sealed: string }[]): Keys {
  const kept = sealed.find(({ name }) => name === installationKeyName)
  if (kept === undefined) return { ...keys, former: [] }
  // The key itself is asserted after this.
  return opensAll({ ...keys, former: [] }, [kept]) ? keys : { ...keys, former: [] }
}

function opensAll(keys: Keys, sealed: readonly { name: string; sealed: string }[]): boolean {
  const masterKey = new MasterKey(keys, '')
  try {
    for (const secret of sealed) masterKey.open('secret', secret.name, secret.sealed)
    return true
  } catch {
    return false
  }
}

function assertOpen(
  keys: Keys,
  sealed: readonly { name: string; sealed: string }[],
  { settings, dataDirectory }: Pick<MasterKeyOptions, 'settings' | 'dataDirectory'>,
): void {
  const masterKey = new MasterKey(keys, '')
  for (const secret of sealed) {
    try {
      masterKey.open('secret', secret.name, secret.sealed)
    } catch (cause) {
      const isSet = settings.master_key !== undefined
      const origin = isSet ? 'SERVICE_MASTER_KEY' : join(dataDirectory, masterKeyFile)
      const former = isSet ? 'that before a rotation' : `a line of ${origin}-former`
      throw new Failure('invalid_parameter', {
        message: `The key of ${origin} does not open the secrets of this ledger: start with the key they were made with; for a ledger from before a rotation that is ${former}`,
        param: 'master_key',
        cause,
      })
    }
  }
}

function keyFromFile(path: string, randomBytes: MasterKeyOptions['randomBytes'] | null): Uint8Array {
  const text = randomBytes === null ? readIfThere(path) : readOrMake(path, () => `${encode(randomBytes(keyLength))}\n`)
  if (text !== null) return decodeKey(text, path)
  const message = `The ledger has sealed secrets but ${path} is missing: restore it, or set SERVICE_MASTER_KEY`
  throw new Failure('invalid_parameter', { message, param: 'master_key' })
}

const linesOf = (keys: readonly Uint8Array[]): string => keys.map((key) => `${encode(key)}\n`).join('')

const encode = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64')

function decodeKey(text: string, origin: string): Uint8Array {
  const trimmed = text.trim()
  const key = Buffer.from(trimmed, 'base64')
  if (key.length !== keyLength || !/^[A-Za-z0-9+/_-]+=*$/.test(trimmed)) {
    throw new Failure('invalid_parameter', {
      message: `${origin} must hold ${keyLength} bytes in base64: openssl rand -base64 ${keyLength} makes one`,
      param: 'master_key',
    })
  }
  return new Uint8Array(key)
}
