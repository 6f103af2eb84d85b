/**
 * Ends an approval: from the first step on none of its codes and refresh tokens works, from the second on no access
 * token, which gateways learn like any revocation (fleet/README.md, Revocation).
 *
 *  1. ledger   the grant is revoked
 *  2. state    its access tokens are revoked; ledger: the grant has ended; one change with its event
 *
 * A process may die between the two: `settleEndings` finishes. A token that is being issued meanwhile is either in the
 * state before step 2, or its issuer, who reads the grant after writing it, finds step 1 done.
 */
import type { SQL } from 'drizzle-orm'
import { and, eq, isNotNull, isNull, lte } from 'drizzle-orm'
import type { EventType } from '../../events/event-types.ts'
import type { Principal } from '../../identity/principal.ts'
import type { Database } from '../../store/open.ts'
import { query, statement, update } from '../../store/query.ts'
import { oauthGrants } from '../../store/schema/ledger/oauth.ts'
import type { Statement } from '../../store/statement.ts'
import type { OAuthDependencies } from '../dependencies.ts'
import { oauthEvent } from '../oauth-event.ts'
import { personStatusOf } from '../person-status.ts'
import { liveAccessTokens, revokeAccessTokens } from './access-token.ts'

export interface Ending {
  type: Extract<EventType, 'oauth.token_revoked' | 'oauth.replay_detected'>
  /** The reason, as a stable code. */
  cause: 'client' | 'code_replay' | 'refresh_replay' | 'user_disabled' | 'interrupted'
  principal: Principal
  requestId: string
}

interface Ended {
  id: string
  clientId: string
  userId: string
}

/** Ends a grant; a revoked one is only finished. Returns the state version with the revocation. */
export async function endGrant(dependencies: OAuthDependencies, grant: Ended, ending: Ending): Promise<number> {
  const { ledger, clock } = dependencies
  const unrevoked = and(eq(oauthGrants.id, grant.id), isNull(oauthGrants.revokedAt))
  await ledger.write([statement(update(oauthGrants).set({ revokedAt: clock.now(), endedAt: null }).where(unrevoked))])
  return await revokeIssued(dependencies, grant, ending)
}

async function revokeIssued(dependencies: OAuthDependencies, grant: Ended, ending: Ending): Promise<number> {
  const { state, ledger, clock, recorder } = dependencies
  const { id, clientId, userId } = grant
  const live = await liveAccessTokens(state, { by: 'grantId', id }, clock.now())
  const { teamIds } = await personStatusOf(ledger, userId)
  const event = await oauthEvent(dependencies, {
    type: ending.type,
    ...(ending.type === 'oauth.replay_detected' ? { refused: 'invalid_grant' } : {}),
    principal: ending.principal,
    requestId: ending.requestId,
    clientId,
    userId,
    teamId: teamIds[0] ?? null,
    details: { grant_id: id, cause: ending.cause, access_tokens: live.length },
  })
  const { head } = await recorder.change({
    event,
    state: [revokeAccessTokens({ by: 'grantId', id }, clock.now())],
    ledger: [statement(update(oauthGrants).set({ endedAt: clock.now() }).where(eq(oauthGrants.id, id)))],
    revoked: live.map(({ hash }) => hash),
  })
  return head.version
}

const grants = (ledger: Database, which: SQL | undefined): Promise<Ended[]> =>
  query(ledger)
    .select({ id: oauthGrants.id, clientId: oauthGrants.clientId, userId: oauthGrants.userId })
    .from(oauthGrants)
    .where(which)

/** Grants that were revoked and have not ended since. */
const unfinishedEndings = (ledger: Database, olderThan: number): Promise<Ended[]> => {
  const { revokedAt, endedAt } = oauthGrants
  return grants(ledger, and(isNotNull(revokedAt), isNull(endedAt), lte(revokedAt, olderThan)))
}

/** All that a person approved and that has not ended. */
export const unendedGrants = (ledger: Database, userId: string): Promise<Ended[]> =>
  grants(ledger, and(eq(oauthGrants.userId, userId), isNull(oauthGrants.endedAt)))

/** The first step for all grants of a person; `endGrant` or `settleEndings` does the second. */
export const revokeGrantsOf = (userId: string, now: number): Statement => {
  const unrevoked = and(eq(oauthGrants.userId, userId), isNull(oauthGrants.revokedAt))
  return statement(update(oauthGrants).set({ revokedAt: now }).where(unrevoked))
}

/** Finishes what a process that died had begun. */
export async function settleEndings(dependencies: OAuthDependencies, ending: Ending, olderThan: number): Promise<void> {
  for (const grant of await unfinishedEndings(dependencies.ledger, olderThan)) {
    await revokeIssued(dependencies, grant, ending)
  }
}
