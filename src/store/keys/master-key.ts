/**
 * The key that seals secrets of the ledger (fleet/README.md, Trust). It comes from SERVICE_MASTER_KEY, otherwise from
 * the file `master-key` of the data directory, which is created on first start. While it is rotated there is a next one
 * beside it, from SERVICE_MASTER_KEY_NEXT or the file `master-key-next`: each opens what the other does not. Former keys
 * of a file open what was sealed before a rotation and written after it.
 *
 * The secret `installation-key` is drawn once. Keys of other uses derive from it, so that they outlive a rotation.
 * Which of the two keys seals it says whether the rotation has begun, to every control plane of the ledger.
 */
import { deriveKey, seal, unseal } from '../../lib/seal.ts'
import { type SealedPlace, sealedColumns } from './sealed-columns.ts'

export const installationKeyName = 'installation-key'

/** Keys of 32 bytes. */
export interface Keys {
  current: Uint8Array
  next: Uint8Array | null
  /** The newest first. */
  former: readonly Uint8Array[]
}

export class MasterKey {
  #current: Uint8Array
  #next: Uint8Array | null
  #former: readonly Uint8Array[]
  /** When the next key began to seal, by the process's own clock; null before. */
  #begunAt: number | null = null
  readonly #installationKey: string

  /** `installationKey` is the plain value of the secret `installation-key`. */
  constructor(keys: Keys, installationKey: string) {
    this.#current = keys.current
    this.#next = keys.next
    this.#former = keys.former
    this.#installationKey = installationKey
  }

  /** Seals a value for a row of the ledger. */
  seal(place: SealedPlace, id: string, plain: string): string {
    return seal(this.#sealing(), plain, sealedColumns[place].context(id))
  }

  /** Opens a value of a row of the ledger. Throws where no key opens it. */
  open(place: SealedPlace, id: string, sealed: string): string {
    return this.#open(sealed, sealedColumns[place].context(id))
  }

  /** Seals what is stored nowhere here, such as a cookie. */
  sealPassing(plain: string, context: string): string {
    return seal(this.#sealing(), plain, context)
  }

  openPassing(sealed: string, context: string): string {
    return this.#open(sealed, context)
  }

  /** A key of 32 bytes for another use, the same for the life of the installation. */
  derive(purpose: string): Uint8Array {
    return deriveKey(this.#installationKey, purpose)
  }

  /** Says that two hold the same next key, and nothing else of it; null where there is none. */
  get nextFingerprint(): string | null {
    return this.#next === null ? null : fingerprintOf(this.#next)
  }

  /** Whether this process has sealed under the key of a fingerprint for so long, or under no other since its start. */
  hasSealedUnder(fingerprint: string, milliseconds: number): boolean {
    if (fingerprintOf(this.#current) === fingerprint) return true
    const sealsNextFor = this.#begunAt === null ? 0 : performance.now() - this.#begunAt
    return this.nextFingerprint === fingerprint && sealsNextFor >= milliseconds
  }

  /** Whether new values are sealed under the next key. */
  get rotationBegun(): boolean {
    return this.#begunAt !== null
  }

  /** Whether something may still be under a former key. */
  get hasFormer(): boolean {
    return this.#former.length > 0
  }

  /** From now on there is a next key, which seals nothing yet. */
  accept(next: Uint8Array): void {
    this.#next = next
  }

  /** From now on the next key seals. */
  beginRotation(): void {
    if (this.#next !== null) this.#begunAt ??= performance.now()
  }

  /** The next key becomes the only one. */
  endRotation(): void {
    this.#former = [this.#current, ...this.#former]
    this.#current = this.#sealing()
    this.#next = null
    this.#begunAt = null
  }

  /**
   * The value sealed under the next key, or under the only one; null where it is already. Throws where no key opens it.
   */
  sealedAnew(place: SealedPlace, id: string, sealed: string): string | null {
    const context = sealedColumns[place].context(id)
    const key = this.#next ?? this.#current
    return opens(key, sealed, context) ? null : seal(key, this.#open(sealed, context), context)
  }

  #sealing(): Uint8Array {
    return this.rotationBegun && this.#next !== null ? this.#next : this.#current
  }

  #open(sealed: string, context: string): string {
    const keys = [...(this.#next === null ? [] : [this.#next]), this.#current, ...this.#former]
    return unseal(keys.find((key) => opens(key, sealed, context)) ?? this.#current, sealed, context)
  }
}

/** Says which key is meant, and nothing else of it. */
export function fingerprintOf(key: Uint8Array): string {
  const derived = deriveKey(Buffer.from(key).toString('base64'), 'gatehouse fingerprint of a master key')
  return Buffer.from(derived).toString('hex')
}

function opens(key: Uint8Array, sealed: string, context: string): boolean {
  try {
    unseal(key, sealed, context)
    return true
  } catch {
    return false
  }
}
