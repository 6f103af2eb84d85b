/**
 * The keys of an installation under a passphrase: scrypt (RFC 7914) makes the key of AES-256-GCM from it. Without the
 * master key a restored installation cannot open the credentials of its providers.
 */
import { randomBytes, scryptSync } from 'node:crypto'
import { z } from 'zod'
import { Failure } from '../failure.ts'
import { seal, unseal } from '../lib/seal.ts'

/** The files of a data directory that hold keys. */
export const keyFiles = ['master-key', 'master-key-next', 'checkpoint-key'] as const

const shortestPassphrase = 12
const context = 'gatehouse-backup-keys'
/** 64 MiB of memory and some 200 ms for each guess. */
const cost = { N: 2 ** 16, r: 8, p: 1, maxmem: 128 * 1024 * 1024 }

const sealedSchema = z.object({ salt: z.string(), sealed: z.string() })
const keysSchema = z.partialRecord(z.enum(keyFiles), z.string())
export type Keys = z.infer<typeof keysSchema>

/** The contents of the key files, sealed. Throws `invalid_parameter` for a short passphrase. */
export function sealKeys(keys: Keys, passphrase: string): string {
  if (passphrase.length < shortestPassphrase) {
    throw new Failure('invalid_parameter', {
      param: 'passphrase',
      message: `The passphrase is too short: use at least ${shortestPassphrase} characters`,
    })
  }
  const salt = randomBytes(16)
  const sealed = seal(keyOf(passphrase, salt), JSON.stringify(keys), context)
  return JSON.stringify({ salt: salt.toString('base64'), sealed })
}

/** Throws `invalid_parameter` for another passphrase. */
export function openKeys(text: string, passphrase: string): Keys {
  const { salt, sealed } = sealedSchema.parse(JSON.parse(text))
  try {
    return keysSchema.parse(JSON.parse(unseal(keyOf(passphrase, Buffer.from(salt, 'base64')), sealed, context)))
  } catch (cause) {
    const message = 'The passphrase does not open the keys of this backup'
    throw new Failure('invalid_parameter', { param: 'passphrase', message, cause })
  }
}

const keyOf = (passphrase: string, salt: Uint8Array): Uint8Array =>
  scryptSync(passphrase.normalize('NFKC'), salt, 32, cost)
