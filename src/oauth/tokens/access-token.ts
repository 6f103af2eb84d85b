/** Access tokens: their row in the state, by which control plane and gateways admit. */

import type { SQL } from 'drizzle-orm'
import { and, eq, gt, isNull, lt } from 'drizzle-orm'
import { hashSecret } from '../../identity/secret.ts'
import type { Database } from '../../store/open.ts'
import { insert, newStateVersion, query, remove, statement, update } from '../../store/query.ts'
import { oauthTokens } from '../../store/schema/state/tokens.ts'
import type { Statement } from '../../store/statement.ts'
import { type PersonStatus, permissionsWithin } from '../person-status.ts'
import type { Grant } from './grant.ts'

export type AccessToken = typeof oauthTokens.$inferSelect

/** How long an expired row stays, so that a late request is told that the token has expired. */
const expiredMemoryMilliseconds = 24 * 3600_000

/** Makes a token's row and takes those away that expired long ago: without a job, where new ones come. */
export const insertAccessToken = (
  token: { id: string; secret: string; scope: readonly string[]; resources: readonly string[]; expiresAt: number },
  { id: grantId, clientId, userId }: Grant,
  personStatus: PersonStatus,
  now: number,
): Statement[] => [
  statement(remove(oauthTokens).where(lt(oauthTokens.expiresAt, now - expiredMemoryMilliseconds))),
  statement(
    insert(oauthTokens).values({
      id: token.id,
      hash: hashSecret(token.secret),
      grantId,
      clientId,
      userId,
      scope: token.scope,
      permissions: permissionsWithin(token.scope, personStatus),
      teamIds: personStatus.teamIds,
      resources: token.resources,
      expiresAt: token.expiresAt,
      version: newStateVersion,
    }),
  ),
]

/** Whose tokens: the one of this id, or all of a grant or a person. */
type Which = { by: 'id' | 'grantId' | 'userId'; id: string }

const inForce = ({ by, id }: Which): SQL | undefined => and(eq(oauthTokens[by], id), isNull(oauthTokens.revokedAt))

export const revokeAccessTokens = (which: Which, now: number): Statement =>
  statement(update(oauthTokens).set({ revokedAt: now, version: newStateVersion }).where(inForce(which)))

/** The tokens that are in force. */
export const liveAccessTokens = (state: Database, which: Which, now: number): Promise<AccessToken[]> =>
  query(state)
    .select()
    .from(oauthTokens)
    .where(and(inForce(which), gt(oauthTokens.expiresAt, now), eq(oauthTokens.deleted, 0)))

export async function findAccessToken(state: Database, secret: string): Promise<AccessToken | null> {
  const found = and(eq(oauthTokens.hash, hashSecret(secret)), eq(oauthTokens.deleted, 0))
  return (await query(state).select().from(oauthTokens).where(found).get()) ?? null
}
