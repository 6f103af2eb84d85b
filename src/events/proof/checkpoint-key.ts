/**
 * The key with which a control plane signs checkpoints and floors (events/proof/README.md; Ed25519, RFC 8032). The
 * private key is a file outside the databases: whoever can write to these can alter events, but not sign them. The
 * public key is in the ledger under its id, the SHA-256 of its 32 bytes. An auditor notes that id elsewhere: a ledger
 * rewritten with another key has another id.
 */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto'
import { Failure } from '../../failure.ts'
import { readIfThere, readOrMake } from '../../lib/made-once.ts'
import { cellsOf, named, readCells, textCell } from '../../store/damage/stored-cells.ts'
import type { Reader } from '../../store/open.ts'
import type { Statement } from '../../store/statement.ts'

/** What is signed, so that a signature of one kind never passes for another. */
export type SignedKind = 'checkpoint' | 'floor'

/** The exact text, and the key that signed it. */
export interface Signed {
  body: string
  key_id: string
  signature: string
}

export interface SigningKey {
  /** SHA-256 of the public key, lower-case hex. */
  id: string
  /** 32 bytes in base64. */
  publicKey: string
  sign(kind: SignedKind, body: string): Signed
}

/** Reads the key file, or makes it (mode 0600). Throws `invalid_parameter` if it contains no key. */
export const loadSigningKey = (path: string): SigningKey => signingKey(readOrMake(path, newKey), path)

/** The same without making one: null where there is none. */
export function readSigningKey(path: string): SigningKey | null {
  const text = readIfThere(path)
  return text === null ? null : signingKey(text, path)
}

function signingKey(text: string, path: string): SigningKey {
  const key = parseKey(text, path)
  const publicKey = rawPublicKey(createPublicKey(key))
  const id = keyId(publicKey)
  return {
    id,
    publicKey: publicKey.toString('base64'),
    sign: (kind, body) => ({
      body,
      key_id: id,
      signature: sign(null, signedBytes(kind, body), key).toString('base64'),
    }),
  }
}

const newKey = (): string =>
  generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()

/** The statement that publishes a key in the ledger. */
export const publishKey = ({ id, publicKey }: SigningKey, now: number): Statement => ({
  sql: `insert into checkpoint_keys (id, public_key, created_at) values (?, ?, ?)
    on conflict (id) do update set public_key = excluded.public_key`,
  args: [id, publicKey, now],
})

/** The result of a signature check: valid, invalid, or by an unknown or untrusted key. */
type SignatureState = 'good' | 'wrong' | 'unknown_key'

/** Public keys by id. */
export class KeyRing {
  readonly #keys = new Map<string, KeyObject>()

  /** Keeps the keys whose bytes match their id and, if ids are `pinned`, are among these. */
  constructor(rows: readonly { id: string; public_key: string }[], pinned: readonly string[] = []) {
    for (const { id, public_key: text } of rows) {
      const bytes = fromBase64(text)
      if (bytes?.length !== 32 || keyId(bytes) !== id || (pinned.length > 0 && !pinned.includes(id))) continue
      const jwk = { kty: 'OKP', crv: 'Ed25519', x: bytes.toString('base64url') }
      this.#keys.set(id, createPublicKey({ key: jwk, format: 'jwk' }))
    }
  }

  get ids(): string[] {
    return [...this.#keys.keys()]
  }

  check(kind: SignedKind, { body, key_id: id, signature }: Signed): SignatureState {
    const key = this.#keys.get(id)
    if (key === undefined) return 'unknown_key'
    const bytes = fromBase64(signature)
    return bytes !== null && verify(null, signedBytes(kind, body), key, bytes) ? 'good' : 'wrong'
  }
}

const columns = named(['id', 'public_key'])

export async function readKeyRing(ledger: Reader, pinned: readonly string[] = []): Promise<KeyRing> {
  const rows = await ledger.read(`select ${cellsOf(columns)} from checkpoint_keys`)
  return new KeyRing(
    rows.map((row) => {
      const { id, public_key: publicKey } = readCells(columns, row.cells)
      return { id: textCell(id), public_key: textCell(publicKey) }
    }),
    pinned,
  )
}

const signedBytes = (kind: SignedKind, body: string): Buffer => Buffer.from(`gatehouse.${kind}.v1\0${body}`)

/** Null for what decodes only because decoding passes over what does not belong there: it is not what was written. */
function fromBase64(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64')
  return bytes.toString('base64') === text ? bytes : null
}

const keyId = (publicKey: Uint8Array): string => Bun.SHA256.hash(publicKey, 'hex')

/** The last 32 bytes of the DER form are the key itself (RFC 8410 section 4). */
const rawPublicKey = (key: KeyObject): Buffer => key.export({ type: 'spki', format: 'der' }).subarray(-32)

function parseKey(text: string, path: string): KeyObject {
  try {
    const key = createPrivateKey(text)
    if (key.asymmetricKeyType === 'ed25519') return key
  } catch {
    // Reported below, without the file's content.
  }
  throw new Failure('invalid_parameter', {
    message: `${path} must hold an Ed25519 private key in PEM: openssl genpkey -algorithm ed25519 makes one`,
    param: 'checkpoint_key_file',
  })
}
