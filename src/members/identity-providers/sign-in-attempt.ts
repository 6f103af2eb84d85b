/**
 * What a browser carries while its person is at the provider: the secrets of the request, sealed under the master key
 * in a cookie of its own. An answer counts only together with it, in the browser that asked (login CSRF, RFC 9700
 * section 4.7), and only for ten minutes. Nothing is stored, so nobody can fill the ledger by beginning sign-ins, and
 * any control plane can take the answer.
 */
import { z } from 'zod'
import { sameText } from '../../lib/text/same-text.ts'
import type { MasterKey } from '../../store/keys/master-key.ts'
import { forgetCookie, keepCookie, readCookie } from '../sessions/session-cookie.ts'
import { ProviderRefusal } from './provider-refusal.ts'

const cookieName = 'gatehouse_sign_in'
const context = 'sign-in attempt'
const lifetimeSeconds = 600

/** A browser keeps cookies of 4096 bytes, and sealing makes of 3 bytes 4. */
const longestReturn = 2000

/**
 * Neither `//host` nor a backslash, which browsers take for a slash; and printable ASCII, as addresses are, so that the
 * length in characters is the length in bytes.
 */
const isPath = (text: string): boolean =>
  /^\/[\x21-\x7e]*$/.test(text) && !text.startsWith('//') && !text.includes('\\')

/** Where the console goes on after a sign-in: an address below its own, with its query. */
export const returnPath = z.string().max(longestReturn).refine(isPath, 'Write a path of the console: /tokens')

const attemptSchema = z.object({
  providerId: z.string(),
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  returnTo: z.string(),
  /** The person to whom the identity is to be linked; null: whoever it belongs to signs in. */
  linkTo: z.string().nullable(),
  expiresAt: z.number(),
})
export type Attempt = z.infer<typeof attemptSchema>

interface Keys {
  masterKey: MasterKey
  clock: { now(): number }
  randomBytes(size: number): Uint8Array
  baseUrl(): string
}

/** Begins an attempt: its secrets, and the cookie that keeps them. */
export function beginAttempt(keys: Keys, asked: Pick<Attempt, 'providerId' | 'returnTo' | 'linkTo'>) {
  const random = () => Buffer.from(keys.randomBytes(32)).toString('base64url')
  const expiresAt = keys.clock.now() + lifetimeSeconds * 1000
  const attempt: Attempt = { ...asked, state: random(), nonce: random(), verifier: random(), expiresAt }
  const sealed = keys.masterKey.sealPassing(JSON.stringify(attempt), context)
  return { attempt, cookie: keepCookie(cookieName, sealed, lifetimeSeconds, keys.baseUrl()) }
}

/** The attempt that an answer belongs to. Throws `ProviderRefusal` unless this browser made it, for this provider. */
export function attemptOf(keys: Keys, request: Request, answer: { providerId: string; state: string | null }): Attempt {
  const kept = openAttempt(keys, request)
  const fits =
    kept !== null &&
    kept.providerId === answer.providerId &&
    answer.state !== null &&
    sameText(answer.state, kept.state) &&
    keys.clock.now() < kept.expiresAt
  if (fits) return kept
  throw new ProviderRefusal('attempt_missing', 'This browser did not begin this sign-in, or did so too long ago')
}

function openAttempt({ masterKey, baseUrl }: Keys, request: Request): Attempt | null {
  const sealed = readCookie(request, cookieName, baseUrl())
  if (sealed === null) return null
  try {
    return attemptSchema.parse(JSON.parse(masterKey.openPassing(sealed, context)))
  } catch {
    // Not sealed by this installation: as good as none.
    return null
  }
}

export const forgetAttempt = ({ baseUrl }: Pick<Keys, 'baseUrl'>): string => forgetCookie(cookieName, baseUrl())
