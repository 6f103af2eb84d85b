/**
 * Signs in by e-mail and password: throttle, verify, start a session. Every refusal is the same and takes as long,
 * whether the account is unknown, disabled, has no password, or the password is wrong.
 */
import { and, eq, isNull, sql } from 'drizzle-orm'
import { Failure } from '../../failure.ts'
import { anonymous } from '../../identity/principal.ts'
import { guard, hasRow, statement, update } from '../../store/query.ts'
import { users } from '../../store/schema/ledger/people.ts'
import type { Statement } from '../../store/statement.ts'
import type { MemberDependencies } from '../dependencies.ts'
import { memberEvent, recordChange } from '../member-event.ts'
import { hashPassword, passwordFault, verifyPassword } from '../people/password.ts'
import { findUserByEmail } from '../people/stored-user.ts'
import {
  accountKey,
  accountRule,
  addressKey,
  addressRule,
  countAttempt,
  forgiveAttempt,
  sweepAttempts,
} from '../people/throttle.ts'
import type { UserRow } from '../people/user.ts'
import { normaliseEmail } from '../people/user-resource.ts'
import { sessionPrincipal } from './authenticate-session.ts'
import { secondFactorOf } from './second-factor.ts'
import { endSessionsOf, type NewSession, startSession, sweepSessions } from './session.ts'
import { endSetupLinks } from './setup-link.ts'

export interface SignedIn {
  user: UserRow
  session: NewSession
}

/**
 * Starts a browser session. Throws `sign_in_throttled`, `invalid_credentials`,
 * `second_factor_required` or `invalid_second_factor`. The caller ends a former session of
 * the browser; its secret is never reused.
 */
export async function signIn(
  dependencies: MemberDependencies,
  attempt: { email: string; password: string; code?: string | undefined; address: string; requestId: string },
): Promise<SignedIn> {
  const { ledger, clock } = dependencies
  const keys = { account: accountKey(attempt.email), address: addressKey(attempt.address) }
  // The address first: a blocked address must not use up an account's attempts.
  await countAttempt(ledger, keys.address, addressRule, clock.now())
  await countAttempt(ledger, keys.account, accountRule, clock.now())
  const user = await findUserByEmail(ledger, attempt.email)
  const matches = await verifyPassword(attempt.password, user?.passwordHash ?? null)
  if (user === null || !matches || user.status !== 'active' || !mayUsePassword(dependencies, user)) {
    await recordRefusal(dependencies, user, attempt)
    throw new Failure('invalid_credentials')
  }
  const secondFactor = secondFactorOf(dependencies, user, attempt.code)
  await forgiveAttempt(ledger, keys)
  return { user, session: await startBrowserSession(dependencies, user, attempt, { secondFactor }) }
}

/** Whether passwords are for this person: for everybody, or for the one owner who comes in when no provider works. */
export const mayUsePassword = (
  { settings }: MemberDependencies,
  { email, role }: Pick<UserRow, 'email' | 'role'>,
): boolean =>
  settings.break_glass_owner === undefined || (role === 'owner' && email === normaliseEmail(settings.break_glass_owner))

/** Counts an attempt to prove a password within a session, by the same rules. Throws `invalid_credentials`. */
export async function provePassword(
  dependencies: MemberDependencies,
  user: UserRow,
  { password, address }: { password: string; address: string },
): Promise<void> {
  const { ledger, clock } = dependencies
  const keys = { account: accountKey(user.email), address: addressKey(address) }
  await countAttempt(ledger, keys.address, addressRule, clock.now())
  await countAttempt(ledger, keys.account, accountRule, clock.now())
  if (!(await verifyPassword(password, user.passwordHash))) throw new Failure('invalid_credentials')
  await forgiveAttempt(ledger, keys)
}

/** How a person has proved who they are, beside a password. */
interface Proof {
  identity?: { id: string; providerId: string } | null
  /** The use of a code. */
  secondFactor?: readonly Statement[]
}

/**
 * Starts a browser session for a person who has proved their identity. Throws `conflict` if they were disabled or
 * their password was replaced since `user` was read: what ended their sessions must end this one too.
 */
export async function startBrowserSession(
  dependencies: MemberDependencies,
  user: UserRow,
  { address, requestId }: { address: string; requestId: string },
  { identity = null, secondFactor = [] }: Proof = {},
): Promise<NewSession> {
  const identityId = identity?.id ?? null
  const session = startSession({ ...dependencies, userId: user.id, kind: 'browser', program: null, identityId })
  const event = await memberEvent(dependencies, {
    type: 'auth.signed_in',
    principal: sessionPrincipal({ userId: user.id, role: user.role }),
    requestId,
    sessionId: session.id,
    details: { address, ...(identity === null ? {} : { identity_provider_id: identity.providerId }) },
  })
  const samePassword =
    user.passwordHash === null ? isNull(users.passwordHash) : eq(users.passwordHash, user.passwordHash)
  const unchanged = guard(hasRow(users, and(eq(users.id, user.id), eq(users.status, 'active'), samePassword)))
  const sweep = sweepSessions(dependencies.settings, dependencies.clock.now())
  await recordChange(dependencies.recorder, { event, ledger: [unchanged, ...secondFactor, sweep, session.statement] })
  return session
}

async function recordRefusal(
  dependencies: MemberDependencies,
  user: UserRow | null,
  { address, requestId }: { address: string; requestId: string },
): Promise<void> {
  const event = await memberEvent(dependencies, {
    type: 'auth.refused',
    refused: 'invalid_credentials',
    principal: anonymous,
    requestId,
    // The typed address is not recorded: people type passwords into the wrong field.
    details: { address, user_id: user?.id ?? null },
  })
  await dependencies.recorder.append([event])
  await sweepAttempts(dependencies.ledger, dependencies.clock.now())
}

/** Throws `invalid_parameter` where a password breaks the rule; otherwise gives the hash to keep. */
export async function newPasswordHash(password: string, email: string, param: string): Promise<string> {
  const fault = passwordFault(password, email)
  if (fault !== null) throw new Failure('invalid_parameter', { message: fault, param })
  return await hashPassword(password)
}

/** Replaces a person's password and ends their sessions, but the one it is done in. */
export const passwordStatements = (userId: string, passwordHash: string, exceptSessionId: string | null) => [
  setPassword(userId, passwordHash),
  endSetupLinks(userId),
  ...endSessionsOf(userId, exceptSessionId),
]

const setPassword = (userId: string, passwordHash: string): Statement =>
  statement(
    update(users)
      .set({ passwordHash, version: sql`${users.version} + 1` })
      .where(eq(users.id, userId)),
  )
