/**
 * Approvals in the ledger: one row for each, with its code, and the refresh tokens that followed. Secrets are stored
 * as SHA-256. A look-up by the hash of 178 random bits needs no comparison in constant time.
 */

import type { SQL } from 'drizzle-orm'
import { and, eq, isNull, lt } from 'drizzle-orm'
import { hashSecret, makeSecret } from '../../identity/secret.ts'
import type { Database } from '../../store/open.ts'
import { guard, hasRow, insert, query, remove, statement, update } from '../../store/query.ts'
import { oauthGrants, oauthRefreshTokens } from '../../store/schema/ledger/oauth.ts'
import type { Statement } from '../../store/statement.ts'
import type { Authorization } from '../authorize/authorize.ts'
import type { OAuthDependencies } from '../dependencies.ts'

export type Grant = typeof oauthGrants.$inferSelect

/** How long an ended grant is kept, to notice the replay of what it gave. */
export const grantMemoryMilliseconds = 7 * 24 * 3600_000

/** What a person approved, and the code that gives its first tokens. */
type NewGrant = Pick<
  Grant,
  'clientId' | 'userId' | 'scope' | 'resources' | 'codeHash' | 'redirectUri' | 'codeChallenge' | 'codeExpiresAt'
>

/** An approval and its code; both exist once the statements have run. */
export function newGrant(
  dependencies: OAuthDependencies,
  { client, scope, resources, redirectUri, codeChallenge }: Authorization,
  userId: string,
): { id: string; code: string; statements: Statement[] } {
  const { clock, randomBytes, settings } = dependencies
  const code = makeSecret('oauthCode', randomBytes)
  const codeExpiresAt = clock.now() + settings.oauth_code_seconds * 1000
  const approved = { clientId: client.id, userId, scope, resources, redirectUri, codeChallenge }
  return { code, ...insertGrant(dependencies, { ...approved, codeHash: hashSecret(code), codeExpiresAt }) }
}

/** Makes an approval, and takes away those that ended long ago. */
export function insertGrant(
  { newId, clock, settings }: Pick<OAuthDependencies, 'newId' | 'clock' | 'settings'>,
  approved: NewGrant,
): { id: string; statements: Statement[] } {
  const [id, now] = [newId(), clock.now()]
  const expiresAt = now + settings.oauth_refresh_lifetime_seconds * 1000
  return {
    id,
    statements: [
      statement(remove(oauthGrants).where(lt(oauthGrants.expiresAt, now - grantMemoryMilliseconds))),
      statement(insert(oauthGrants).values({ ...approved, id, createdAt: now, expiresAt })),
    ],
  }
}

export const grantOfCode = async (ledger: Database, code: string): Promise<Grant | null> =>
  (await query(ledger)
    .select()
    .from(oauthGrants)
    .where(eq(oauthGrants.codeHash, hashSecret(code)))
    .get()) ?? null

/** A refresh token with the grant it belongs to, or null. */
export async function findRefreshToken(
  ledger: Database,
  secret: string,
): Promise<{ grant: Grant; refresh: { expiresAt: number; usedAt: number | null } } | null> {
  const row = await query(ledger)
    .select({ grant: oauthGrants, refresh: oauthRefreshTokens })
    .from(oauthRefreshTokens)
    .innerJoin(oauthGrants, eq(oauthGrants.id, oauthRefreshTokens.grantId))
    .where(isRefreshToken(secret))
    .get()
  return row ?? null
}

const isRefreshToken = (secret: string): SQL => eq(oauthRefreshTokens.hash, hashSecret(secret))

/** Whether tokens may still be given for the grant. */
export async function isRevoked(ledger: Database, id: string): Promise<boolean> {
  const unrevoked = and(eq(oauthGrants.id, id), isNull(oauthGrants.revokedAt))
  return (await query(ledger).$count(oauthGrants, unrevoked)) === 0
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
export function useCode({ secret, grantId, now, next }: Use): Statement[] {
  const { id, codeHash, codeUsedAt, revokedAt } = oauthGrants
  const unused = and(eq(id, grantId), eq(codeHash, hashSecret(secret)), isNull(codeUsedAt), isNull(revokedAt))
  return [guard(hasRow(oauthGrants, unused)), codeUsed(grantId, now), insertRefresh(next, grantId)]
}

/** Uses a refresh token up for the next one, likewise (RFC 9700 section 4.14.2). */
export function rotateRefreshToken({ secret, grantId, now, next }: Use): Statement[] {
  const inForce = hasRow(
    oauthGrants,
    and(eq(oauthGrants.id, oauthRefreshTokens.grantId), isNull(oauthGrants.revokedAt)),
  )
  const unused = and(isRefreshToken(secret), isNull(oauthRefreshTokens.usedAt), inForce)
  return [guard(hasRow(oauthRefreshTokens, unused)), refreshUsed(secret, now), insertRefresh(next, grantId)]
}

/** Undoes a use that gave nothing: the code, or the refresh token, works again. */
export const unuseCode = ({ grantId, next }: Use): Statement[] => [codeUsed(grantId, null), deleteRefresh(next)]

export const unuseRefreshToken = ({ secret, next }: Use): Statement[] => [
  refreshUsed(secret, null),
  deleteRefresh(next),
]

const codeUsed = (grantId: string, codeUsedAt: number | null): Statement =>
  statement(update(oauthGrants).set({ codeUsedAt }).where(eq(oauthGrants.id, grantId)))

const refreshUsed = (secret: string, usedAt: number | null): Statement =>
  statement(update(oauthRefreshTokens).set({ usedAt }).where(isRefreshToken(secret)))

const deleteRefresh = ({ secret }: Use['next']): Statement =>
  statement(remove(oauthRefreshTokens).where(isRefreshToken(secret)))

const insertRefresh = ({ secret, expiresAt }: Use['next'], grantId: string): Statement =>
  statement(insert(oauthRefreshTokens).values({ hash: hashSecret(secret), grantId, expiresAt }))
