/**
 * Sealing of small secrets: AES-256-GCM (NIST SP 800-38D) with a random 96-bit nonce, written `v1.<nonce>.<sealed>` in
 * base64url. `context` is authenticated with it, so that a sealed value moved to another place does not open.
 */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto'

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

/**
 * Seals `plain` so that the same text in the same context always gives the same sealed text, in hexadecimal. The
 * nonce is an HMAC of both (as in RFC 5297, a synthetic one), so it repeats only with the text.
 */
export function sealSame(key: Uint8Array, plain: string, context: string): string {
  const nonce = createHmac('sha256', key)
    .update(`${context.length}:${context}${plain}`)
    .digest()
    .subarray(0, nonceBytes)
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(context))
  return Buffer.concat([nonce, cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()]).toString('hex')
}

/** Opens what `sealSame` made; null where key, context or content is not the same, or it is written in another way. */
export function unsealSame(key: Uint8Array, sealed: string, context: string): string | null {
  const bytes = Buffer.from(sealed, 'hex')
  if (bytes.length < nonceBytes + tagBytes || bytes.toString('hex') !== sealed) return null
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, nonceBytes))
    .setAAD(Buffer.from(context))
    .setAuthTag(bytes.subarray(-tagBytes))
  try {
    return decipher.update(bytes.subarray(nonceBytes, -tagBytes), undefined, 'utf8') + decipher.final('utf8')
  } catch {
    // Sealed by nobody who has the key, or for another context.
    return null
  }
}

const nonceBytes = 12
const tagBytes = 16

/** Derives a 32-byte key from a secret (HKDF-SHA-256, RFC 5869); `purpose` keeps keys of different uses apart. */
export const deriveKey = (secret: string, purpose: string): Uint8Array =>
  new Uint8Array(hkdfSync('sha256', secret, '', purpose, 32))
