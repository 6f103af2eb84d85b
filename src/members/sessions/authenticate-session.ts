/**
 * Identifies the person who calls by a session: `Authorization: Bearer gths_…` of a program, or the cookie of a
 * browser. An Authorization header decides alone; the cookie counts only without one.
 *
 * A browser sends a cookie whoever causes the request. So a write with a cookie must also prove that it comes from our
 * page, and carry the session's CSRF token. A Bearer credential is never sent automatically and needs neither.
 */
import { Failure } from '../../failure.ts'
import { permissionsOf } from '../../identity/permissions.ts'
import { anonymous, type Principal } from '../../identity/principal.ts'
import { bearerSecret } from '../../identity/secret.ts'
import type { Clock } from '../../lib/clock.ts'
import { sameText } from '../../lib/text/same-text.ts'
import type { Database } from '../../store/open.ts'
import { csrfToken, findSession, type LiveSession, type SessionSettings } from './session.ts'
import { isFromOurPage, readSessionCookie } from './session-cookie.ts'

export interface SessionAuthenticatorOptions {
  ledger: Database
  clock: Clock
  settings: SessionSettings
  baseUrl(): string
  /** The origins of our pages. */
  origins(): readonly string[]
}

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS'])

/** The Bearer credential of a request, or null. */
export const bearerOf = (request: Request): string | null => bearerSecret(request.headers.get('authorization'))

/** The live session of a request; `known` is true if the request has one that has ended. */
export async function sessionOf(
  request: Request,
  { ledger, clock, settings, baseUrl }: Omit<SessionAuthenticatorOptions, 'origins'>,
): Promise<{ session: LiveSession | null; known: boolean; secret: string | null }> {
  const hasHeader = request.headers.has('authorization')
  const secret = hasHeader ? bearerOf(request) : readSessionCookie(request, baseUrl())
  if (secret === null) return { session: null, known: false, secret: null }
  const kind = hasHeader ? 'program' : 'browser'
  return { ...(await findSession({ ledger, secret, kind, settings, clock })), secret }
}

/**
 * Makes the function that turns a request into its principal. Null if the request has no session of a person; then the
 * caller asks the next authenticator. Throws `invalid_api_token` for an ended Bearer session, and `csrf_refused` for a
 * write that a browser may have been tricked into.
 */
export function createSessionAuthenticator(
  options: SessionAuthenticatorOptions,
): (request: Request) => Promise<Principal | null> {
  return async (request) => {
    const { session, known, secret } = await sessionOf(request, options)
    if (session === null || secret === null) {
      if (known && request.headers.has('authorization')) {
        throw new Failure('invalid_api_token', { message: 'The session has ended: sign in again' })
      }
      return null
    }
    if (session.kind === 'browser') assertNotForged(request, secret, options.origins())
    return sessionPrincipal(session)
  }
}

function assertNotForged(request: Request, secret: string, origins: readonly string[]): void {
  if (safeMethods.has(request.method)) return
  const given = request.headers.get('x-csrf-token') ?? ''
  if (!isFromOurPage(request, origins) || !sameText(given, csrfToken(secret))) throw new Failure('csrf_refused')
}

/** Throws `consent_outdated` (409) if a page was shown to another account than the one that answers it. */
export function requireAccount({ userId }: LiveSession, shown: string): void {
  if (userId === shown) return
  throw new Failure('consent_outdated', { message: 'You are signed in as another account than the page showed' })
}

/** A person as the caller of a route. */
export const sessionPrincipal = ({ userId, role }: Pick<LiveSession, 'userId' | 'role'>): Principal => ({
  ...anonymous,
  kind: 'session',
  name: `user:${userId}`,
  userId,
  roles: [role],
  permissions: permissionsOf([role]),
})
