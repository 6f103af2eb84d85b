/**
 * What a person approved, in the ledger: one row for each approval, with its code, and the refresh tokens that followed.
 * Secrets are there as SHA-256; what is found by a hash of 178 random bits needs no comparison in constant time.
 */
import type { Database, Statement } from '../store/open.ts'
import { hashSecret, makeSecret } from '../tokens/secret.ts'
import type { Authorization } from './authorize.ts'
import type { OAuthDependencies } from './dependencies.ts'

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

/** How long a grant that has ended is remembered, to notice the replay of what it gave. */
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

export async function findGrant(ledger: Database, id: string): Promise<Grant | null> {
  const [row] = await ledger.read<GrantRow>('select * from oauth_grants where id = ?', [id])
  return row === undefined ? null : openGrant(row)
}
