/**
 * Sessions of people: a `gths_` secret, kept by a browser as a cookie or by a program as a Bearer credential, and here
 * as a SHA-256. One lives until it is ended, unused for `session_idle_seconds`, or `session_lifetime_seconds` old;
 * expiry is computed when read. A session that began at an identity provider lives no longer than the provider vouches
 * for its identity.
 */
import { createHmac } from 'node:crypto'
import { and, desc, eq, getTableColumns, gt, isNull, lt, lte, ne, or, sql } from 'drizzle-orm'
import type { Settings } from '../../config.ts'
import { hashSecret, makeSecret, secretKind } from '../../identity/secret.ts'
import type { Clock } from '../../lib/clock.ts'
import type { NewId } from '../../lib/ids.ts'
import type { Database } from '../../store/open.ts'
import { insert, prepared, query, remove, statement, update } from '../../store/query.ts'
import { programCodes, userIdentities, userSessions, users } from '../../store/schema/ledger/people.ts'
import type { Statement } from '../../store/statement.ts'
import type { UserRow } from '../people/user.ts'

export type SessionSettings = Pick<Settings, 'session_idle_seconds' | 'session_lifetime_seconds'>

export const sessionKinds = userSessions.kind.enumValues
export type SessionKind = (typeof sessionKinds)[number]

export type SessionRow = typeof userSessions.$inferSelect

/** A session with what is needed of the person it belongs to. `vouchedUntil` is null where no provider has a say. */
export type LiveSession = SessionRow & Pick<UserRow, 'role' | 'status'> & { vouchedUntil: number | null }

export interface NewSession {
  id: string
  secret: string
  statement: Statement
  expiresAt: number
}

/** Makes a session; it exists once its statement has run. */
export function startSession(options: {
  userId: string
  kind: SessionKind
  program: string | null
  /** The identity by which the person signed in at a provider; null: by password. */
  identityId: string | null
  settings: SessionSettings
  clock: Clock
  newId: NewId
  randomBytes(size: number): Uint8Array
}): NewSession {
  const { userId, kind, program, identityId, settings, clock, newId, randomBytes } = options
  const [id, secret, now] = [newId(), makeSecret('session', randomBytes), clock.now()]
  const expiresAt = now + settings.session_lifetime_seconds * 1000
  return {
    id,
    secret,
    expiresAt,
    statement: statement(
      insert(userSessions).values({
        id,
        hash: hashSecret(secret),
        userId,
        kind,
        program,
        identityId,
        createdAt: now,
        lastUsedAt: now,
        expiresAt,
      }),
    ),
  }
}

/** Prepared: every call of a signed-in person begins with it. */
const sessionBySecret = prepared((query) =>
  query
    .select({
      ...getTableColumns(userSessions),
      role: users.role,
      status: users.status,
      vouchedUntil: userIdentities.vouchedUntil,
    })
    .from(userSessions)
    .innerJoin(users, eq(users.id, userSessions.userId))
    .leftJoin(userIdentities, eq(userIdentities.id, userSessions.identityId))
    .where(and(eq(userSessions.hash, sql.placeholder('hash')), eq(userSessions.kind, sql.placeholder('kind'))))
    .prepare(),
)

/** The live session of this secret and kind of an active person, or null. `known` says whether it ever was one. */
export async function findSession(options: {
  ledger: Database
  secret: string
  kind: SessionKind
  settings: SessionSettings
  clock: Clock
}): Promise<{ session: LiveSession | null; known: boolean }> {
  const { ledger, secret, kind, settings, clock } = options
  if (secretKind(secret) !== 'session') return { session: null, known: false }
  const row = await sessionBySecret(ledger).get({ hash: hashSecret(secret), kind })
  if (row === undefined) return { session: null, known: false }
  const vouched = row.vouchedUntil === null || clock.now() < row.vouchedUntil
  if (!vouched || !isLive(row, settings, clock.now()) || row.status !== 'active') return { session: null, known: true }
  await touch(ledger, row, clock.now())
  return { session: row, known: true }
}

const isLive = (row: SessionRow, settings: SessionSettings, now: number): boolean =>
  now < row.expiresAt && now < row.lastUsedAt + settings.session_idle_seconds * 1000

/** How old the recorded last use may be: a write for every call would cost more than it is worth. */
const lastUseResolutionMilliseconds = 60_000

async function touch(ledger: Database, row: SessionRow, now: number): Promise<void> {
  const resolution = Math.min(lastUseResolutionMilliseconds, (row.expiresAt - row.createdAt) / 10)
  if (now - row.lastUsedAt < resolution) return
  const isOlder = and(eq(userSessions.id, row.id), lt(userSessions.lastUsedAt, now))
  await ledger.write([statement(update(userSessions).set({ lastUsedAt: now }).where(isOlder))])
}

/** The live sessions of a person, newest first. */
export async function listSessions(
  ledger: Database,
  userId: string,
  settings: SessionSettings,
  now: number,
): Promise<SessionRow[]> {
  const own = eq(userSessions.userId, userId)
  const vouched = or(isNull(userIdentities.id), gt(userIdentities.vouchedUntil, now))
  const rows = await query(ledger)
    .select(getTableColumns(userSessions))
    .from(userSessions)
    .leftJoin(userIdentities, eq(userIdentities.id, userSessions.identityId))
    .where(and(own, vouched))
    .orderBy(desc(userSessions.id))
  return rows.filter((row) => isLive(row, settings, now))
}

export const endSession = (id: string, userId: string): Statement =>
  statement(remove(userSessions).where(and(eq(userSessions.id, id), eq(userSessions.userId, userId))))

/** Ends all sessions of a person except the named one, and the codes that would still give a program a new one. */
export function endSessionsOf(userId: string, exceptId: string | null = null): Statement[] {
  const others = exceptId === null ? undefined : ne(userSessions.id, exceptId)
  const unusedCodes = and(eq(programCodes.userId, userId), isNull(programCodes.usedAt))
  return [
    statement(remove(userSessions).where(and(eq(userSessions.userId, userId), others))),
    statement(update(programCodes).set({ expiresAt: 0 }).where(unusedCodes)),
  ]
}

export function sweepSessions(settings: SessionSettings, now: number): Statement {
  const idle = lte(userSessions.lastUsedAt, now - settings.session_idle_seconds * 1000)
  return statement(remove(userSessions).where(or(lte(userSessions.expiresAt, now), idle)))
}

/**
 * The CSRF token of a browser session: an HMAC keyed by the session's own secret, so that it needs no storage, belongs
 * to that session only and tells nothing of the secret (OWASP CSRF Prevention Cheat Sheet, HMAC-based token pattern).
 */
export const csrfToken = (sessionSecret: string): string =>
  createHmac('sha256', sessionSecret).update('gatehouse csrf token v1').digest('base64url')
