/**
 * What a browser carries while its person is at an authorization server: the secrets of the request, sealed under the
 * master key in a cookie of its own. An answer counts only in the browser that asked, for the person and the server
 * that it asked for, and only for ten minutes. So nobody connects an account of theirs to another person here, nor
 * another person's account to theirs.
 */
import { z } from 'zod'
import { sameText } from '../lib/text/same-text.ts'
import { ProviderRefusal } from '../members/identity-providers/provider-refusal.ts'
import { forgetCookie, keepCookie, readCookie } from '../members/sessions/session-cookie.ts'
import type { ConnectionDependencies } from './dependencies.ts'

const cookieName = 'gatehouse_connect'
const context = 'connection attempt'
const lifetimeSeconds = 600

const attemptSchema = z.object({
  serverId: z.string(),
  userId: z.string(),
  /** The server's address, which must not have changed when the answer comes. */
  url: z.string(),
  issuer: z.string(),
  resource: z.string(),
  clientId: z.string(),
  scope: z.string().nullable(),
  state: z.string(),
  verifier: z.string(),
  expiresAt: z.number(),
})
export type Attempt = z.infer<typeof attemptSchema>

type Keys = Pick<ConnectionDependencies, 'masterKey' | 'clock' | 'randomBytes' | 'baseUrl'>

/** Begins an attempt: its secrets, and the cookie that keeps them. */
export function beginAttempt(keys: Keys, asked: Omit<Attempt, 'state' | 'verifier' | 'expiresAt'>) {
  const random = () => Buffer.from(keys.randomBytes(32)).toString('base64url')
  const expiresAt = keys.clock.now() + lifetimeSeconds * 1000
  const attempt: Attempt = { ...asked, state: random(), verifier: random(), expiresAt }
  const sealed = keys.masterKey.sealPassing(JSON.stringify(attempt), context)
  return { attempt, cookie: keepCookie(cookieName, sealed, lifetimeSeconds, keys.baseUrl()) }
}

/** The attempt that an answer belongs to. Throws `ProviderRefusal` unless this browser made it, for this server. */
export function attemptOf(keys: Keys, request: Request, answer: { serverId: string; state: string | null }): Attempt {
  const kept = openAttempt(keys, request)
  const fits =
    kept !== null &&
    kept.serverId === answer.serverId &&
    answer.state !== null &&
    sameText(answer.state, kept.state) &&
    keys.clock.now() < kept.expiresAt
  if (fits) return kept
  throw new ProviderRefusal('attempt_missing', 'This browser did not begin this connection, or did so too long ago')
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
