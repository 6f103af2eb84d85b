/** `/v1/auth/login|logout|setup|password`: how a person comes in, goes, and changes their password. */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { Failure } from '../../failure.ts'
import { timestamp } from '../../lib/clock.ts'
import type { MemberDependencies } from '../dependencies.ts'
import { ProviderRefusal } from '../identity-providers/provider-refusal.ts'
import { signOutProvider } from '../identity-providers/stored-identity-provider.ts'
import { memberEvent, recordChange } from '../member-event.ts'
import { nameUser } from '../people/stored-user.ts'
import type { UserRow } from '../people/user.ts'
import { displayName, emailSchema, userSchema } from '../people/user-resource.ts'
import { readUser, requireUser } from '../people/user-routes.ts'
import { sessionOf, sessionPrincipal } from './authenticate-session.ts'
import { hasSecondFactor, proveSecondFactor, secondFactorOf } from './second-factor.ts'
import { csrfToken, endSession, findSession, type LiveSession, type NewSession, sessionKinds } from './session.ts'
import { forgetSession, isFromOurPage, keepSession, ownOrigins, readSessionCookie } from './session-cookie.ts'
import { type LinkKind, requireSetupLink, setupLinkUser } from './setup-link.ts'
import {
  mayUsePassword,
  newPasswordHash,
  passwordStatements,
  provePassword,
  signIn,
  startBrowserSession,
} from './sign-in.ts'

export const sessionSchema = z.object({
  id: z.uuid(),
  kind: z.enum(sessionKinds),
  program: z.string().nullable().describe('The program a session was handed to'),
  created_at: z.iso.datetime(),
  last_used_at: z.iso.datetime().describe('To the minute'),
  expires_at: z.iso.datetime(),
  current: z.boolean().describe('Whether this call was made in it'),
})

export const signedInSchema = z.object({
  user: userSchema,
  session: z.object({ id: z.uuid(), expires_at: z.iso.datetime() }),
  csrf_token: z.string().describe('Send it as x-csrf-token with every write that the cookie authenticates'),
})

export const setupSchema = z.strictObject({
  secret: z.string().max(200),
  email: emailSchema,
  name: displayName,
  password: z.string(),
})

export const authRoutes = (dependencies: MemberDependencies) =>
  new Elysia({ name: 'auth' })
    .use(conventions)
    .post(
      '/v1/auth/login',
      async ({ body: { email, password, code }, requestId, request, set }) => {
        refuseForeignPage(request, dependencies)
        const address = dependencies.addressOf(request)
        const { user, session } = await signIn(dependencies, { email, password, code, address, requestId })
        await endReplacedSession(request, dependencies)
        const answer = await signedIn(dependencies, user.id, session)
        set.headers['set-cookie'] = cookieOf(dependencies, session)
        return answer
      },
      {
        access: 'public',
        failures: [401, 403, 429, 503],
        body: z.strictObject({
          email: z.string().max(254),
          password: z.string().max(1024),
          code: z.string().max(20).describe('Of the authenticator app, for an account that has one').optional(),
        }),
        response: signedInSchema,
        detail: {
          tags: ['Sessions'],
          summary: 'Signs a person in; returns a session cookie and its CSRF token',
        },
      },
    )
    .post(
      '/v1/auth/logout',
      async ({ principal, requestId, request, set }) => {
        const session = await requireSession(request, dependencies)
        const event = await memberEvent(dependencies, {
          type: 'auth.signed_out',
          principal,
          requestId,
          sessionId: session.id,
          details: {},
        })
        await recordChange(dependencies.recorder, { event, ledger: [endSession(session.id, session.userId)] })
        set.headers['set-cookie'] = forgetSession(dependencies.baseUrl())
        return { signed_out: true as const, redirect_to: await providerSignOut(dependencies, session) }
      },
      {
        access: 'signed-in',
        response: z.object({
          signed_out: z.literal(true),
          redirect_to: z
            .string()
            .nullable()
            .describe("Where a browser goes to sign out at the person's identity provider; null where it stays"),
        }),
        detail: { tags: ['Sessions'], summary: 'Ends the session that makes this call' },
      },
    )
    .post(
      '/v1/auth/setup',
      async ({ body, requestId, request, set }) => {
        refuseForeignPage(request, dependencies)
        const { secret, password, ...names } = body
        const use = { kind: 'setup' as const, secret, password, code: undefined, names }
        const address = dependencies.addressOf(request)
        const { userId, session } = await useLink(dependencies, use, { address, requestId })
        await endReplacedSession(request, dependencies)
        const answer = await signedIn(dependencies, userId, session)
        set.headers['set-cookie'] = cookieOf(dependencies, session)
        return answer
      },
      {
        access: 'public',
        failures: [403, 409, 503],
        body: setupSchema,
        response: signedInSchema,
        detail: {
          tags: ['Sessions'],
          summary: 'Uses a one-time setup link: sets name, e-mail address and password, and signs in',
        },
      },
    )
    .post(
      '/v1/auth/password',
      async ({ principal, body: { current_password, new_password }, requestId, request }) => {
        const session = await requireSession(request, dependencies)
        const user = await requireUser(dependencies, session.userId)
        const address = dependencies.addressOf(request)
        await provePassword(dependencies, user, { password: current_password, address })
        const passwordHash = await newPasswordHash(new_password, user.email, 'new_password')
        const event = await memberEvent(dependencies, {
          type: 'member.updated',
          principal,
          requestId,
          sessionId: session.id,
          details: { user_id: user.id, changes: { password: 'replaced' } },
        })
        const statements = passwordStatements(user.id, passwordHash, session.id)
        await recordChange(dependencies.recorder, { event, ledger: statements })
        return await readUser(dependencies, user.id)
      },
      {
        access: 'signed-in',
        failures: [429],
        body: z.strictObject({ current_password: z.string().max(1024), new_password: z.string() }),
        response: userSchema,
        detail: {
          tags: ['Sessions'],
          summary: "Changes the caller's own password; ends all other sessions of this person",
        },
      },
    )

/** Where the session came from a provider that wants it: its page for signing out. It must not keep anybody signed in. */
async function providerSignOut(dependencies: MemberDependencies, session: LiveSession): Promise<string | null> {
  if (session.kind !== 'browser' || session.identityId === null) return null
  const provider = await signOutProvider(dependencies, session.identityId)
  if (provider === null) return null
  try {
    return await dependencies.relyingParty.endSessionUrl(provider, dependencies.consoleUrl())
  } catch (error) {
    if (error instanceof ProviderRefusal) return null
    throw error
  }
}

interface LinkUse {
  kind: LinkKind
  secret: string
  password: string
  code: string | undefined
  /** What the first owner says of themselves; null: the account has it already. */
  names: { email: string; name: string } | null
}

/**
 * Sets a person's password by their link and starts a session. Throws `invalid_setup_link`, `invalid_parameter`,
 * `conflict`.
 */
export async function useLink(
  dependencies: MemberDependencies,
  { kind, secret, password, code, names }: LinkUse,
  from: { address: string; requestId: string },
): Promise<{ userId: string; session: NewSession }> {
  const { ledger, clock, recorder } = dependencies
  const userId = await setupLinkUser(ledger, kind, secret, clock.now())
  const user = { ...(await requireUser(dependencies, userId)), ...names }
  if (user.status !== 'active') throw new Failure('invalid_setup_link', { param: 'secret' })
  requirePasswordsFor(dependencies, user)
  const passwordHash = await newPasswordHash(password, user.email, 'password')
  // Whoever has only the link must not come past the second factor.
  const secondFactor =
    hasSecondFactor(user) && code
      ? await proveSecondFactor(dependencies, user, code)
      : secondFactorOf(dependencies, user, code)
  const event = await memberEvent(dependencies, {
    type: 'member.updated',
    principal: sessionPrincipal({ userId, role: user.role }),
    requestId: from.requestId,
    details: { user_id: userId, [kind]: true, changes: { password: 'replaced' } },
  })
  const statements = [
    requireSetupLink(secret, clock.now()),
    ...secondFactor,
    ...(names === null ? [] : [nameUser(userId, names)]),
    ...passwordStatements(userId, passwordHash, null),
  ]
  const taken = { message: 'The link was used meanwhile, or somebody has this e-mail address already' }
  await recordChange(recorder, { event, ledger: statements }, taken)
  return { userId, session: await startBrowserSession(dependencies, { ...user, passwordHash }, from) }
}

/** Throws `conflict` where this person could not sign in by the password. */
export function requirePasswordsFor(dependencies: MemberDependencies, user: Pick<UserRow, 'email' | 'role'>): void {
  if (mayUsePassword(dependencies, user)) return
  throw new Failure('conflict', {
    message: 'Passwords are for the break-glass owner only: sign in at an identity provider',
  })
}

/** What a person who has signed in gets, beside the cookie. */
export async function signedIn(dependencies: MemberDependencies, userId: string, session: NewSession) {
  return {
    user: await readUser(dependencies, userId),
    session: { id: session.id, expires_at: timestamp(session.expiresAt) },
    csrf_token: csrfToken(session.secret),
  }
}

export const cookieOf = ({ settings, baseUrl }: MemberDependencies, { secret }: NewSession): string =>
  keepSession(secret, settings.session_lifetime_seconds, baseUrl())

/** The session that makes this call. Throws `permission_denied` where an API token makes it. */
export async function requireSession(request: Request, dependencies: MemberDependencies): Promise<LiveSession> {
  const { session } = await sessionOf(request, dependencies)
  if (session === null) throw new Failure('permission_denied', { message: 'Only a signed-in person can do this' })
  return session
}

/** A page of somebody else must not sign its visitors in as somebody of its choice (login CSRF). */
export function refuseForeignPage(request: Request, { baseUrl, consoleUrl }: MemberDependencies): void {
  const fromAPage = request.headers.has('origin') || request.headers.has('sec-fetch-site')
  if (fromAPage && !isFromOurPage(request, ownOrigins(baseUrl(), consoleUrl()))) throw new Failure('csrf_refused')
}

/** Ends the session a browser had: a new sign-in never goes on with an old secret (session fixation). */
export async function endReplacedSession(request: Request, dependencies: MemberDependencies): Promise<void> {
  const secret = readSessionCookie(request, dependencies.baseUrl())
  if (secret === null) return
  const { session } = await findSession({ ...dependencies, secret, kind: 'browser' })
  if (session !== null) await dependencies.ledger.write([endSession(session.id, session.userId)])
}
