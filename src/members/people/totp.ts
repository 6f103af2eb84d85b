/**
 * Codes of authenticator apps (TOTP, RFC 6238): HMAC-SHA-1 over the number of the 30-second step, cut to 6 digits, as all
 * apps do. A code of the step before or after is taken too, for clocks that differ (section 5.2), and each step once.
 */
import { createHmac } from 'node:crypto'
import { sameText } from '../../lib/text/same-text.ts'

const stepMilliseconds = 30_000
const digits = 6

/** As long as HMAC-SHA-1's output (RFC 4226 section 4, R6). */
export const totpSecretBytes = 20

export const stepAt = (now: number): number => Math.floor(now / stepMilliseconds)

/** The code of one step (RFC 4226 section 5.3). */
export function codeOfStep(secret: Uint8Array, step: number): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const hash = createHmac('sha1', secret).update(counter).digest()
  const offset = (hash.at(-1) ?? 0) & 0xf
  return String((hash.readUInt32BE(offset) & 0x7fff_ffff) % 10 ** digits).padStart(digits, '0')
}

/** The step whose code this is, after the last one that was used; null where there is none. */
export function stepOfCode(secret: Uint8Array, code: string, { now, after }: { now: number; after: number }) {
  const present = stepAt(now)
  const found = [present - 1, present, present + 1].filter((step) => sameText(code, codeOfStep(secret, step)))
  return found.find((step) => step > after) ?? null
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** Base32 without padding (RFC 4648 section 6), as apps take a secret that is typed. */
export function base32(bytes: Uint8Array): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  return (bits.match(/.{1,5}/g) ?? []).map((five) => alphabet[Number.parseInt(five.padEnd(5, '0'), 2)]).join('')
}

/** What an app reads from a link or a QR code. */
export function otpauthUri(secret: Uint8Array, { issuer, account }: { issuer: string; account: string }): string {
  const query = new URLSearchParams({
    secret: base32(secret),
    issuer,
    algorithm: 'SHA1',
    digits: String(digits),
    period: '30',
  })
  return `otpauth://totp/${encodeURIComponent(issuer)}:${encodeURIComponent(account)}?${query}`
}
