/**
 * Approvals in the ledger: one row for each, with its code, and the refresh tokens that followed. Secrets are stored
 * as SHA-256. A look-up by the hash of 178 random bits needs no comparison in constant time.
 */

import { hashSecret, makeSecret } from '../../identity/secret.ts'
import type { Database } from '../../store/open.ts'
import type { Statement } from '../../store/statement.ts'
import type { Authorization } from '../authorize/authorize.ts'
import type { OAuthDependencies } from '../dependencies.ts'

export interface Grant {
  id: string
  clientId: string
  userId: string
  scope: readonly string[]
  resources: readonly string[]
  redirectUri: string
  codeChallenge: string
  codeExpiresAt: number
  codeUsedAt: number | null
  expiresAt: number
  revokedAt: number | null
}

/** How long an ended grant is kept, to notice the replay of what it gave. */
export const grantMemoryMilliseconds = 7 * 24 * 3600_000

/** An approval and its code; both exist once the statements have run. */
export function newGrant(
  { newId, clock, randomBytes, settings }: OAuthDependencies,
  { client, scope, resources, redirectUri, codeChallenge }: Authorization,
  userId: string,
): { id: string; code: string; statements: Statement[] } {
  const [id, code, now] = [newId(), makeSecret('oauthCode', randomBytes), clock.now()]
  return {
    id,
    code,
    statements: [
      { sql: 'delete from oauth_grants where expires_at < ?', args: [now - grantMemoryMilliseconds] },
      {
        sql: `insert into oauth_grants (id, client_id, user_id, scope, resources, code_hash, redirect_uri,
          code_challenge, code_expires_at, created_at, expires_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        args: [
          ...[id, client.id, userId, JSON.stringify(scope), JSON.stringify(resources), hashSecret(code)],
          ...[redirectUri, codeChallenge, now + settings.oauth_code_seconds * 1000, now],
          now + settings.oauth_refresh_lifetime_seconds * 1000,
        ],
      },
    ],
  }
}

interface GrantRow {
  id: string
  client_id: string
  user_id: string
  scope: string
  resources: string
  redirect_uri: string
  code_challenge: string
  code_expires_at: number
  code_used_at: number | null
  expires_at: number
  revoked_at: number | null
}

/** Opens a row, which was written from checked values. */
const openGrant = (row: GrantRow): Grant => ({
  id: row.id,
  clientId: row.client_id,
  userId: row.user_id,
  scope: JSON.parse(row.scope) as string[],
  resources: JSON.parse(row.resources) as string[],
  redirectUri: row.redirect_uri,
  codeChallenge: row.code_challenge,
  codeExpiresAt: row.code_expires_at,
  codeUsedAt: row.code_used_at,
  expiresAt: row.expires_at,
  revokedAt: row.revoked_at,
})

export async function grantOfCode(ledger: Database, code: string): Promise<Grant | null> {
  const [row] = await ledger.read<GrantRow>('select * from oauth_grants where code_hash = ?', [hashSecret(code)])
  return row === undefined ? null : openGrant(row)
}

/** A refresh token with the grant it belongs to, or null. */
export async function findRefreshToken(
  ledger: Database,
  secret: string,
): Promise<{ grant: Grant; refresh: { expiresAt: number; usedAt: number | null } } | null> {
  const [row] = await ledger.read<GrantRow & { idle_at: number; used_at: number | null }>(
    `select g.*, r.expires_at as idle_at, r.used_at from oauth_refresh_tokens r join oauth_grants g on g.id = r.grant_id
     where r.hash = ?`,
    [hashSecret(secret)],
  )
  if (row === undefined) return null
  return { grant: openGrant(row), refresh: { expiresAt: row.idle_at, usedAt: row.used_at } }
}

/** Whether tokens may still be given for the grant. */
export async function isRevoked(ledger: Database, id: string): Promise<boolean> {
  const [row] = await ledger.read('select 1 from oauth_grants where id = ? and revoked_at is null', [id])
  return row === undefined
}

export interface Use {
  /** What is used up: a code or a refresh token. */
  secret: string
  grantId: string
  now: number
  /** What comes in its place. */
  next: { secret: string; expiresAt: number }
}

/** Uses a code up for its first refresh token, in one transaction that fails where it has been used or revoked. */
export const useCode = ({ secret, grantId, now, next }: Use): Statement[] => [
  {
    sql: `insert into guards (holds) select 0 where not exists
      (select 1 from oauth_grants where id = ? and code_hash = ? and code_used_at is null and revoked_at is null)`,
    args: [grantId, hashSecret(secret)],
  },
  { sql: 'update oauth_grants set code_used_at = ? where id = ?', args: [now, grantId] },
  insertRefresh(next, grantId),
]

/** Uses a refresh token up for the next one, likewise (RFC 9700 section 4.14.2). */
export const rotateRefreshToken = ({ secret, grantId, now, next }: Use): Statement[] => [
  {
    sql: `insert into guards (holds) select 0 where not exists
      (select 1 from oauth_refresh_tokens r join oauth_grants g on g.id = r.grant_id
       where r.hash = ? and r.used_at is null and g.revoked_at is null)`,
    args: [hashSecret(secret)],
  },
  { sql: 'update oauth_refresh_tokens set used_at = ? where hash = ?', args: [now, hashSecret(secret)] },
  insertRefresh(next, grantId),
]

/** Undoes a use that gave nothing: the code, or the refresh token, works again. */
export const unuseCode = ({ grantId, next }: Use): Statement[] => [
  { sql: 'update oauth_grants set code_used_at = null where id = ?', args: [grantId] },
  deleteRefresh(next),
]

export const unuseRefreshToken = ({ secret, next }: Use): Statement[] => [
  { sql: 'update oauth_refresh_tokens set used_at = null where hash = ?', args: [hashSecret(secret)] },
  deleteRefresh(next),
]

const deleteRefresh = ({ secret }: Use['next']): Statement => ({
  sql: 'delete from oauth_refresh_tokens where hash = ?',
  args: [hashSecret(secret)],
})

const insertRefresh = ({ secret, expiresAt }: Use['next'], grantId: string): Statement => ({
  sql: 'insert into oauth_refresh_tokens (hash, grant_id, expires_at) values (?, ?, ?)',
  args: [hashSecret(secret), grantId, expiresAt],
})
