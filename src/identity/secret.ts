/**
 * The form of every secret this product hands out (identity/README.md): a prefix that says what it is, 30 base62
 * characters of randomness (178 bits), and 6 that are the CRC32 of all before them, so that a mistyped or made-up
 * secret is refused without a look-up. Only the SHA-256 of a secret is stored: with 178 bits of entropy a slow hash
 * would add nothing.
 */
import { encodeBase62, randomBase62 } from '../lib/base62.ts'

export const secretPrefixes = {
  token: 'gth_',
  oauthAccess: 'gtha_',
  oauthRefresh: 'gthr_',
  oauthCode: 'gthc_',
  session: 'gths_',
} as const

export type SecretKind = keyof typeof secretPrefixes

const kinds = new Map<string, SecretKind>(
  (['token', 'oauthAccess', 'oauthRefresh', 'oauthCode', 'session'] as const).map((kind) => [
    secretPrefixes[kind],
    kind,
  ]),
)

const form = /^(gth[archs]?_)[0-9A-Za-z]{36}$/
const checksumLength = 6

/** Wherever it stands in a text; what looks like the beginning of one may hide another. */
const anywhere = /(?=(gth[archs]?_[0-9A-Za-z]{36}))/g

/** Makes a new secret of the given kind. `randomBytes` must be cryptographically strong. */
export function makeSecret(kind: SecretKind, randomBytes: (size: number) => Uint8Array): string {
  const body = secretPrefixes[kind] + randomBase62(30, randomBytes)
  return body + checksum(body)
}

/** Says what kind of secret a text is, or null where its form or checksum is wrong. */
export function secretKind(text: string): SecretKind | null {
  const match = form.exec(text)
  if (!match) return null
  if (checksum(text.slice(0, -checksumLength)) !== text.slice(-checksumLength)) return null
  return kinds.get(match[1] ?? '') ?? null
}

/** Whether a secret of ours stands anywhere in a text: what has the form and its checksum, and so is no accident. */
export const holdsSecret = (text: string): boolean =>
  text.includes('gth') &&
  [...text.matchAll(anywhere)].some(([, found]) => found !== undefined && secretKind(found) !== null)

/** SHA-256 of a secret, lower-case hex: the only form in which it is stored, and the key it is found by. */
export const hashSecret = (secret: string): string => Bun.SHA256.hash(secret, 'hex')

/** The first 12 characters: enough to recognise a secret by, far too few to use it. */
export const secretHint = (secret: string): string => secret.slice(0, hintLength)
const hintLength = 12

/** Of a token of which only the hash is known. */
export const unknownHint = secretPrefixes.token.padEnd(hintLength, '?')

const checksum = (body: string): string => encodeBase62(Bun.hash.crc32(body), checksumLength)

const bearer = /^bearer +(\S+)$/i

/** The credential of an Authorization header's value (RFC 6750 section 2.1); null where it holds none. */
export const bearerSecret = (header: string | null): string | null => bearer.exec(header?.trim() ?? '')?.[1] ?? null
