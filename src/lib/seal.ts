/**
 * Sealing of small secrets: AES-256-GCM (NIST SP 800-38D) with a random 96-bit nonce, written `v1.<nonce>.<sealed>` in
 * base64url. `context` is authenticated with it, so that a sealed value moved to another place does not open.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

/** Seals `plain` under a 32-byte key. */
export function seal(key: Uint8Array, plain: string, context: string): string {
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(context))
  const sealed = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()])
  return `v1.${nonce.toString('base64url')}.${sealed.toString('base64url')}`
}

/** Opens what `seal` made. Throws where key, context or content is not the same. */
export function unseal(key: Uint8Array, sealed: string, context: string): string {
  const [form, nonce, content] = sealed.split('.')
  if (form !== 'v1' || nonce === undefined || content === undefined) throw new TypeError('Not a sealed value')
  const bytes = Buffer.from(content, 'base64url')
  const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(nonce, 'base64url'))
    .setAAD(Buffer.from(context))
    .setAuthTag(bytes.subarray(-16))
  return decipher.update(bytes.subarray(0, -16), undefined, 'utf8') + decipher.final('utf8')
}

/** Derives a 32-byte key from a secret (HKDF-SHA-256, RFC 5869); `purpose` keeps keys of different uses apart. */
export const deriveKey = (secret: string, purpose: string): Uint8Array =>
  new Uint8Array(hkdfSync('sha256', secret, '', purpose, 32))
