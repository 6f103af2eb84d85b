/**
 * Sessions of people: a `gths_` secret, kept by a browser as a cookie or by a program as a Bearer credential, and here
 * as a SHA-256. One lives until it is ended, unused for `session_idle_seconds`, or `session_lifetime_seconds` old;
 * expiry is computed when read. Sessions do not depend on how a person signed in: another method (OpenID Connect)
 * would call `startSession` as the password does.
 */
import { createHmac } from 'node:crypto'
import type { Settings } from '../../config.ts'
import { hashSecret, makeSecret, secretKind } from '../../identity/secret.ts'
import type { Clock } from '../../lib/clock.ts'
import type { NewId } from '../../lib/ids.ts'
import type { Database } from '../../store/open.ts'
import type { Statement } from '../../store/statement.ts'
import type { UserRole, UserStatus } from '../people/user-resource.ts'

export type SessionSettings = Pick<Settings, 'session_idle_seconds' | 'session_lifetime_seconds'>

export const sessionKinds = ['browser', 'program'] as const
export type SessionKind = (typeof sessionKinds)[number]

export interface SessionRow {
  id: string
  user_id: string
  kind: SessionKind
  program: string | null
  created_at: number
  last_used_at: number
  expires_at: number
}

/** A session with what is needed of the person it belongs to. */
export interface LiveSession extends SessionRow {
  role: UserRole
  status: UserStatus
}

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
  settings: SessionSettings
  clock: Clock
  newId: NewId
  randomBytes(size: number): Uint8Array
}): NewSession {
  const { userId, kind, program, settings, clock, newId, randomBytes } = options
  const [id, secret, now] = [newId(), makeSecret('session', randomBytes), clock.now()]
  const expiresAt = now + settings.session_lifetime_seconds * 1000
  return {
    id,
    secret,
    expiresAt,
    statement: {
      sql: `insert into user_sessions (id, hash, user_id, kind, program, created_at, last_used_at, expires_at)
        values (?, ?, ?, ?, ?, ?, ?, ?)`,
      args: [id, hashSecret(secret), userId, kind, program, now, now, expiresAt],
    },
  }
}

const sessionColumns = 's.id, s.user_id, s.kind, s.program, s.created_at, s.last_used_at, s.expires_at'

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
  const [row] = await ledger.read<LiveSession>(
    `select ${sessionColumns}, u.role, u.status from user_sessions s join users u on u.id = s.user_id
     where s.hash = ? and s.kind = ?`,
    [hashSecret(secret), kind],
  )
  if (row === undefined) return { session: null, known: false }
  if (!isLive(row, settings, clock.now()) || row.status !== 'active') return { session: null, known: true }
  await touch(ledger, row, clock.now())
  return { session: row, known: true }
}

const isLive = (row: SessionRow, settings: SessionSettings, now: number): boolean =>
  now < row.expires_at && now < row.last_used_at + settings.session_idle_seconds * 1000

/** How old the recorded last use may be: a write for every call would cost more than it is worth. */
const lastUseResolutionMilliseconds = 60_000

async function touch(ledger: Database, row: SessionRow, now: number): Promise<void> {
  const resolution = Math.min(lastUseResolutionMilliseconds, (row.expires_at - row.created_at) / 10)
  if (now - row.last_used_at < resolution) return
  await ledger.write([
    {
      sql: 'update user_sessions set last_used_at = ? where id = ? and last_used_at < ?',
      args: [now, row.id, now],
    },
  ])
}

/** The live sessions of a person, newest first. */
export async function listSessions(
  ledger: Database,
  userId: string,
  settings: SessionSettings,
  now: number,
): Promise<SessionRow[]> {
  const rows = await ledger.read<SessionRow>(
    `select ${sessionColumns} from user_sessions s where s.user_id = ? order by s.id desc`,
    [userId],
  )
  return rows.filter((row) => isLive(row, settings, now))
}

export const endSession = (id: string, userId: string): Statement => ({
  sql: 'delete from user_sessions where id = ? and user_id = ?',
  args: [id, userId],
})

/** Ends all sessions of a person except the named one, and the codes that would still give a program a new one. */
export const endSessionsOf = (userId: string, exceptId: string | null = null): Statement[] => [
  { sql: 'delete from user_sessions where user_id = ? and id is not ?', args: [userId, exceptId] },
  { sql: 'update program_codes set expires_at = 0 where user_id = ? and used_at is null', args: [userId] },
]

export const sweepSessions = (settings: SessionSettings, now: number): Statement => ({
  sql: 'delete from user_sessions where expires_at <= ? or last_used_at <= ?',
  args: [now, now - settings.session_idle_seconds * 1000],
})

/**
 * The CSRF token of a browser session: an HMAC keyed by the session's own secret, so that it needs no storage, belongs
 * to that session only and tells nothing of the secret (OWASP CSRF Prevention Cheat Sheet, HMAC-based token pattern).
 */
export const csrfToken = (sessionSecret: string): string =>
  createHmac('sha256', sessionSecret).update('gatehouse csrf token v1').digest('base64url')
