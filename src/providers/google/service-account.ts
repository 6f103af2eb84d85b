/**
 * A key of a Google service account, and what it is exchanged for an access token with: a JWT that it signs (RFC 7523
 * section 2.1, RS256; Google's "Using OAuth 2.0 for server to server applications").
 */
import { createPrivateKey, type KeyObject, sign } from 'node:crypto'
import { z } from 'zod'

export interface ServiceAccount {
  email: string
  keyId: string | null
  privateKey: KeyObject
  tokenUrl: string
  /** The project that the account belongs to. */
  project: string | null
}

const scope = 'https://www.googleapis.com/auth/cloud-platform'
/** The longest that Google takes. */
const assertionSeconds = 3600
const defaultTokenUrl = 'https://oauth2.googleapis.com/token'
const loopback = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/

const keySchema = z.looseObject({
  type: z.literal('service_account'),
  client_email: z.string().min(3).max(512),
  private_key: z.string().min(1),
  private_key_id: z.string().max(512).optional(),
  token_uri: z.string().default(defaultTokenUrl),
  project_id: z.string().optional(),
})

/** Reads the JSON file that Google gives for a key. Throws a TypeError that says what is wrong and repeats nothing. */
export function readServiceAccount(text: string): ServiceAccount {
  const parsed = keySchema.safeParse(parsedJson(text))
  if (!parsed.success) {
    const field = parsed.error.issues[0]?.path.join('.') ?? ''
    throw new TypeError(
      `The key is no JSON key of a service account${field === '' ? '' : `: ${field} is missing or wrong`}`,
    )
  }
  const { client_email: email, private_key, private_key_id, token_uri, project_id } = parsed.data
  return {
    email,
    keyId: private_key_id ?? null,
    privateKey: rsaKey(private_key),
    tokenUrl: checkedTokenUrl(token_uri),
    project: project_id ?? null,
  }
}

/**
 * What of a key's text is secret: the private key from its third line on. What comes before is alike in all keys, so
 * text that only resembles a key does not count as this one.
 */
export function secretsOfKey(text: string): string[] {
  const parsed = keySchema.safeParse(parsedJson(text))
  if (!parsed.success) return [text]
  return [parsed.data.private_key.trim().split('\n').slice(3, -1).join('\n')]
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

function rsaKey(pem: string): KeyObject {
  let key: KeyObject | null = null
  try {
    key = createPrivateKey(pem)
  } catch {
    // The error is the same as for a key of another sort.
  }
  if (key?.asymmetricKeyType !== 'rsa') throw new TypeError("The key's private_key is no RSA key")
  return key
}

/** What the key signs is sent there, so it is encrypted in transit, except on this host. */
function checkedTokenUrl(text: string): string {
  const url = URL.parse(text)
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && loopback.test(url.hostname))
  if (!isSafe) throw new TypeError("The key's token_uri must begin with https://")
  return text
}

/** The JWT for the token endpoint. `now`: milliseconds since the epoch. */
export function assertionOf({ email, keyId, privateKey, tokenUrl }: ServiceAccount, now: number): string {
  const issued = Math.floor(now / 1000)
  const header = { alg: 'RS256', typ: 'JWT', ...(keyId !== null && { kid: keyId }) }
  const claims = { iss: email, scope, aud: tokenUrl, iat: issued, exp: issued + assertionSeconds }
  const content = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
  return `${content}.${sign('RSA-SHA256', Buffer.from(content), privateKey).toString('base64url')}`
}
