/**
 * The key that seals every value in the ledger's `secrets` (fleet/README.md, Trust). It comes from
 * SERVICE_MASTER_KEY, otherwise from the file `master-key` of the data directory, which is created on first start. A
 * key that does not open the sealed values is an error at start: otherwise new secrets could not be read together
 * with the old ones.
 */
import { join } from 'node:path'
import { and, eq } from 'drizzle-orm'
import { Failure } from '../../failure.ts'
import { readIfThere, readOrMake } from '../../lib/made-once.ts'
import { seal, unseal } from '../../lib/seal.ts'
import type { Database, Reader } from '../open.ts'
import { insert, query, remove, statement, update } from '../query.ts'
import { secrets } from '../schema/ledger/changes.ts'
import type { Statement } from '../statement.ts'

const keyLength = 32
const checkName = 'master-key-check'

export interface MasterKeyOptions {
  /** The value of the setting `master_key`: 32 bytes in base64. */
  setting: string | undefined
  dataDirectory: string
  ledger: Database
  randomBytes(size: number): Uint8Array
}

/** Finds or makes the master key, 32 bytes. Throws `invalid_parameter`, naming where the key was looked for. */
export async function loadMasterKey({ setting, dataDirectory, ledger, randomBytes }: MasterKeyOptions) {
  const sealed = await sealedSecrets(ledger)
  const path = join(dataDirectory, 'master-key')
  const [key, origin] =
    setting === undefined
      ? [keyFromFile(path, sealed.length === 0 ? randomBytes : null), path]
      : [decodeKey(setting, 'SERVICE_MASTER_KEY'), 'SERVICE_MASTER_KEY']
  for (const secret of sealed) assertOpens(key, secret, origin)
  await keepCheck(ledger, key, origin)
  return key
}

/** Whether `loadMasterKey` would find the key, without making anything; throws as that does. */
export async function requireMasterKey({
  setting,
  dataDirectory,
  ledger,
}: Pick<MasterKeyOptions, 'setting' | 'dataDirectory'> & { ledger: Reader }): Promise<void> {
  const table = await ledger.read("select 1 from sqlite_master where name = 'secrets'")
  const sealed = table.length === 0 ? [] : await sealedSecrets(ledger)
  const path = join(dataDirectory, 'master-key')
  if (setting === undefined && sealed.length === 0 && readIfThere(path) === null) return
  const origin = setting === undefined ? path : 'SERVICE_MASTER_KEY'
  const key = setting === undefined ? keyFromFile(path, null) : decodeKey(setting, origin)
  for (const secret of sealed) assertOpens(key, secret, origin)
}

const sealedSecrets = (ledger: Reader): Promise<{ name: string; sealed: string }[]> =>
  ledger.read<{ name: string; sealed: string }>('select name, sealed from secrets')

/** Of several that start at once with different keys on a ledger without secrets, the first keeps the others away. */
async function keepCheck(ledger: Database, key: Uint8Array, origin: string): Promise<void> {
  await ledger.write([keepSecret(key, checkName, 'of this installation', 0)])
  const kept = await ledger.read<{ name: string; sealed: string }>('select name, sealed from secrets where name = ?', [
    checkName,
  ])
  for (const secret of kept) assertOpens(key, secret, origin)
}

function assertOpens(key: Uint8Array, secret: { name: string; sealed: string }, origin: string): void {
  try {
    unseal(key, secret.sealed, secret.name)
  } catch (cause) {
    const message = `The key of ${origin} does not open the secrets of this ledger: start with the key they were made with`
    throw new Failure('invalid_parameter', { message, param: 'master_key', cause })
  }
}

/** The statement that keeps a secret in the ledger; one of the same name stays as it is. */
export const keepSecret = (masterKey: Uint8Array, name: string, secret: string, now: number): Statement =>
  statement(
    insert(secrets)
      .values({ name, sealed: seal(masterKey, secret, name), createdAt: now })
      .onConflictDoNothing(),
  )

/** The statement that replaces a secret if it has not changed meanwhile. */
export const replaceSecret = (
  masterKey: Uint8Array,
  name: string,
  { from, to }: { from: SealedSecret; to: string },
): Statement =>
  statement(
    update(secrets)
      .set({ sealed: seal(masterKey, to, name) })
      .where(and(eq(secrets.name, name), eq(secrets.sealed, from.sealed))),
  )

export const forgetSecret = (name: string): Statement => statement(remove(secrets).where(eq(secrets.name, name)))

export interface SealedSecret {
  secret: string
  /** As it stands in the ledger. */
  sealed: string
}

/** Opens a secret of the ledger; null if there is none of that name. */
export async function readSecret(ledger: Database, masterKey: Uint8Array, name: string): Promise<SealedSecret | null> {
  const row = await query(ledger).select().from(secrets).where(eq(secrets.name, name)).get()
  return row === undefined ? null : { secret: unseal(masterKey, row.sealed, name), sealed: row.sealed }
}

/** Opens a secret of the ledger; null if there is none of that name. */
export async function openSecret(ledger: Database, masterKey: Uint8Array, name: string): Promise<string | null> {
  return (await readSecret(ledger, masterKey, name))?.secret ?? null
}

function keyFromFile(path: string, randomBytes: MasterKeyOptions['randomBytes'] | null): Uint8Array {
  const text =
    randomBytes === null
      ? readIfThere(path)
      : readOrMake(path, () => `${Buffer.from(randomBytes(keyLength)).toString('base64')}\n`)
  if (text !== null) return decodeKey(text, path)
  const message = `The ledger has sealed secrets but ${path} is missing: restore it, or set SERVICE_MASTER_KEY`
  throw new Failure('invalid_parameter', { message, param: 'master_key' })
}

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
