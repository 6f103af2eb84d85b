/**
 * One-time links that set a password: with one an owner signs in for the first time (15 minutes), with an invitation
 * anybody else does (72 hours). The secret is in the fragment, which browsers do not send, so it reaches no log.
 */
import { and, eq, gt, isNotNull, isNull } from 'drizzle-orm'
import { Failure } from '../../failure.ts'
import { hashSecret, makeSecret, secretKind } from '../../identity/secret.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Database } from '../../store/open.ts'
import { guard, hasRow, insert, query, remove, statement } from '../../store/query.ts'
import { setupLinks, users } from '../../store/schema/ledger/people.ts'
import type { Statement } from '../../store/statement.ts'

export type LinkKind = (typeof setupLinks.$inferSelect)['kind']

const lifetimeMilliseconds: Record<LinkKind, number> = { setup: 15 * 60_000, invitation: 72 * 3600_000 }

export interface SetupLink {
  url: string
  expiresAt: number
}

interface SetupLinkOptions {
  ledger: Database
  kind: LinkKind
  userId: string
  consoleUrl: string
  clock: Clock
  randomBytes(size: number): Uint8Array
}

/**
 * Makes a link for a person, beside earlier ones: a restarted control plane leaves a link that was already shown
 * valid. The first that is used ends them all.
 */
export async function makeSetupLink({ ledger, ...options }: Omit<SetupLinkOptions, 'kind'>): Promise<SetupLink> {
  const { link, insert } = newSetupLink({ ...options, kind: 'setup' })
  await ledger.write([insert])
  return link
}

/** A link, and the statement that makes it. */
export function newSetupLink({ kind, userId, consoleUrl, clock, randomBytes }: Omit<SetupLinkOptions, 'ledger'>) {
  const secret = makeSecret('oauthCode', randomBytes)
  const expiresAt = clock.now() + lifetimeMilliseconds[kind]
  const made = statement(insert(setupLinks).values({ hash: hashSecret(secret), userId, kind, expiresAt }))
  const link: SetupLink = { url: `${consoleUrl}/${kind}#${secret}`, expiresAt }
  return { link, insert: made }
}

/** Ends all links of a person, because another one replaces them or a password was set. */
export const endSetupLinks = (userId: string): Statement =>
  statement(remove(setupLinks).where(eq(setupLinks.userId, userId)))

/**
 * The first owner, while no owner can sign in by password; each start makes a link for this person. Null after that.
 */
export async function ownerAwaitingSetup(ledger: Database): Promise<string | null> {
  const activeOwner = and(eq(users.role, 'owner'), eq(users.status, 'active'))
  if ((await query(ledger).$count(users, and(activeOwner, isNotNull(users.passwordHash)))) > 0) return null
  const row = await query(ledger).select({ id: users.id }).from(users).where(activeOwner).orderBy(users.id).get()
  return row?.id ?? null
}

/** The person of a link of this kind. Throws `invalid_setup_link`. Does not use it up. */
export async function setupLinkUser(ledger: Database, kind: LinkKind, secret: string, now: number): Promise<string> {
  const failure = new Failure('invalid_setup_link', {
    param: 'secret',
    ...(kind === 'invitation' ? { message: 'The invitation is unknown, used or expired: ask for another one' } : {}),
  })
  if (secretKind(secret) !== 'oauthCode') throw failure
  const row = await query(ledger).select().from(setupLinks).where(inForce(secret, now)).get()
  if (row?.kind !== kind) throw failure
  return row.userId
}

/** Makes the transaction fail if the link is no longer valid; setting the password then ends it. */
export const requireSetupLink = (secret: string, now: number): Statement =>
  guard(hasRow(setupLinks, inForce(secret, now)))

const inForce = (secret: string, now: number) =>
  and(eq(setupLinks.hash, hashSecret(secret)), isNull(setupLinks.usedAt), gt(setupLinks.expiresAt, now))
