/**
 * Finds the master key, or makes it at a first start. Keys that do not open what is sealed are an error at start:
 * otherwise new secrets could not be read together with the old ones.
 */
import { join } from 'node:path'
import { Failure } from '../../failure.ts'
import { readIfThere, readOrMake } from '../../lib/made-once.ts'
import type { Database, Reader } from '../open.ts'
import { insert, statement } from '../query.ts'
import { secrets } from '../schema/ledger/changes.ts'
import { installationKeyName, type Keys, MasterKey } from './master-key.ts'

export const masterKeyFile = 'master-key'
export const nextMasterKeyFile = 'master-key-next'
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
  const table = await options.ledger.read("select 1 from sqlite_master where name = 'secrets'")
  const sealed = table.length === 0 ? [] : await sealedSecrets(options.ledger)
  const path = join(options.dataDirectory, masterKeyFile)
  if (options.settings.master_key === undefined && sealed.length === 0 && readIfThere(path) === null) return
  assertOpen(ofLedger(readKeys(options, null), sealed), sealed, options)
}

/** Makes the next key of a key that is in a file, or finds the one that was made. */
export function makeNextKey({ dataDirectory, randomBytes }: Pick<MasterKeyOptions, 'dataDirectory' | 'randomBytes'>) {
  const path = join(dataDirectory, nextMasterKeyFile)
  return decodeKey(
    readOrMake(path, () => `${encode(randomBytes(keyLength))}\n`),
    path,
  )
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
      former: null,
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
    former: keyOf(formerMasterKeyFile),
  }
}

/**
 * Without the former key for a ledger from before the rotation: that is an older copy, which an operator must mean. In
 * a later one a value may be under it that was sealed before the rotation and written after it.
 */
function ofLedger(keys: Keys, sealed: readonly { name: string; sealed: string }[]): Keys {
  const kept = sealed.find(({ name }) => name === installationKeyName)
  if (kept === undefined) return { ...keys, former: null }
  try {
    new MasterKey({ ...keys, former: null }, '').open('secret', kept.name, kept.sealed)
    return keys
  } catch {
    // The key itself is asserted after this.
    return { ...keys, former: null }
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
      const former = isSet ? 'that before the last rotation' : `${origin}-former`
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
