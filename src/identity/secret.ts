/**
 * The format of every Gatehouse secret (identity/README.md): a prefix for its kind, 30 random base62 characters (178
 * bits), and 6 characters of CRC32, so that a mistyped or invented secret is refused without a lookup. Only its SHA-256
 * is stored: with 178 bits of entropy a slow hash would add nothing.
 */
import { encodeBase62, randomBase62 } from '../lib/base62.ts'

export const secretPrefixes = {
  token: 'gth_',
  oauthAccess: 'gtha_',
  oauthRefresh: 'gthr_',
  oauthCode: 'gthc_',
  session: 'gths_',
  scim: 'gthm_',
} as const

export type SecretKind = keyof typeof secretPrefixes

const kinds = new Map<string, SecretKind>(
  (['token', 'oauthAccess', 'oauthRefresh', 'oauthCode', 'session', 'scim'] as const).map((kind) => [
    secretPrefixes[kind],
    kind,
  ]),
)

const form = /^(gth[archsm]?_)[0-9A-Za-z]{36}$/
const checksumLength = 6

/** Matches anywhere in a text, with lookahead, because a lookalike may overlap a secret. */
const anywhere = /(?=(gth[archsm]?_[0-9A-Za-z]{36}))/g

/** Makes a secret of the given kind. `randomBytes` must be cryptographically strong. */
export function makeSecret(kind: SecretKind, randomBytes: (size: number) => Uint8Array): string {
  const body = secretPrefixes[kind] + randomBase62(30, randomBytes)
  return body + checksum(body)
}

/** The kind of a secret; null when form or checksum is wrong. */
export function secretKind(text: string): SecretKind | null {
  const match = form.exec(text)
  if (!match) return null
  if (checksum(text.slice(0, -checksumLength)) !== text.slice(-checksumLength)) return null
  return kinds.get(match[1] ?? '') ?? null
}

/** Whether a text contains a Gatehouse secret, by form and checksum. */
export const holdsSecret = (text: string): boolean =>
  text.includes('gth') &&
  [...text.matchAll(anywhere)].some(([, found]) => found !== undefined && secretKind(found) !== null)

/** SHA-256 of a secret in lower-case hex: the only stored form, and the lookup key. */
export const hashSecret = (secret: string): string => Bun.SHA256.hash(secret, 'hex')

/** The first 12 characters: enough to recognise a secret, far too few to use it. */
export const secretHint = (secret: string): string => secret.slice(0, hintLength)
const hintLength = 12

/** For a token of which only the hash is known. */
export const placeholderHint = secretPrefixes.token.padEnd(hintLength, '?')

const checksum = (body: string): string => encodeBase62(Bun.hash.crc32(body), checksumLength)

const bearer = /^bearer +(\S+)$/i

/** The credential in an Authorization header (RFC 6750 section 2.1); null without one. */
export const bearerSecret = (header: string | null): string | null => bearer.exec(header?.trim() ?? '')?.[1] ?? null
