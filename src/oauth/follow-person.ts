/**
 * Keeps access tokens at what their person may do (oauth/README.md). A change of a person's role, status or teams is
 * in the ledger. The same transaction sets a mark that the tokens in the state must follow. They are updated right
 * after, and if the process dies before, `settleOAuth` finds the mark. A disabled person loses all approvals in that
 * transaction, so that enabling restores none.
 *
 * After writing the tokens the person is read again, until both agree: of several concurrent writers the last one has
 * then read the truth. The control plane itself reads the person on each call and does not wait for this.
 */

import { and, eq, isNull, lte, sql } from 'drizzle-orm'
import { controlPlaneEvent } from '../events/control-plane-event.ts'
import { Failure } from '../failure.ts'
import { anonymous } from '../identity/principal.ts'
import type { Delegations } from '../members/dependencies.ts'
import { hasRow, insert, newStateVersion, query, remove, statement, update } from '../store/query.ts'
import { oauthGrants, pendingPermissionUpdates } from '../store/schema/ledger/oauth.ts'
import { oauthTokens } from '../store/schema/state/tokens.ts'
import type { Statement } from '../store/statement.ts'
import type { Actor } from '../tokens/creation/minting.ts'
import { removeUnapproved } from './clients/register-client.ts'
import type { OAuthDependencies } from './dependencies.ts'
import { type PersonStatus, permissionsWithin, personStatusOf } from './person-status.ts'
import { type AccessToken, liveAccessTokens } from './tokens/access-token.ts'
import { endGrant, revokeGrantsOf, settleEndings, unendedGrants } from './tokens/end-grant.ts'

/** Part of the transaction that changes a person. Empty if no application acts for them. */
export function markPerson(userId: string, now: number): Statement {
  const hasGrant = hasRow(oauthGrants, and(eq(oauthGrants.userId, userId), isNull(oauthGrants.revokedAt)))
  return statement(
    insert(pendingPermissionUpdates)
      .select(sql`select ${userId}, 1, ${now} where ${hasGrant}`)
      .onConflictDoUpdate({
        target: pendingPermissionUpdates.userId,
        set: { changes: sql`${pendingPermissionUpdates.changes} + 1` },
      }),
  )
}

/** As the routes of people see it. */
export const delegationsOf = (dependencies: OAuthDependencies): Delegations => ({
  mark: (userId, now, disabled = false) => [
    markPerson(userId, now),
    ...(disabled ? [revokeGrantsOf(userId, now)] : []),
  ],
  follow: (actor, userId) => followPerson(dependencies, actor, userId),
})

const abandonedAfterMilliseconds = 5000
const mostRounds = 20

/** Updates a person's tokens, and waits until gateways know if rights were removed. */
export async function followPerson(dependencies: OAuthDependencies, actor: Actor, userId: string): Promise<void> {
  const { ledger, fleet } = dependencies
  const mark = await query(ledger)
    .select()
    .from(pendingPermissionUpdates)
    .where(eq(pendingPermissionUpdates.userId, userId))
    .get()
  if (mark === undefined) return
  const version = await bringUpToDate(dependencies, actor, userId)
  const followed = and(eq(pendingPermissionUpdates.userId, userId), eq(pendingPermissionUpdates.changes, mark.changes))
  await ledger.write([statement(remove(pendingPermissionUpdates).where(followed))])
  if (version !== null) await fleet.propagation(version)
}

/** The state version that removed rights; null if none did. */
async function bringUpToDate(dependencies: OAuthDependencies, actor: Actor, userId: string): Promise<number | null> {
  let narrowed: number | null = null
  for (let round = 0; round < mostRounds; round += 1) {
    const personStatus = await personStatusOf(dependencies.ledger, userId)
    if (!personStatus.active) return await endAll(dependencies, actor, userId)
    const live = await liveAccessTokens(dependencies.state, { by: 'userId', id: userId }, dependencies.clock.now())
    const outdated = live.filter((token) => !agrees(token, personStatus))
    if (outdated.length === 0) return narrowed
    narrowed = (await rewrite(dependencies, actor, { userId, personStatus, outdated })) ?? narrowed
  }
  throw new Failure('dependency_unavailable', { message: 'The person changes faster than the tokens can follow' })
}

async function endAll(dependencies: OAuthDependencies, actor: Actor, userId: string): Promise<number | null> {
  let version: number | null = null
  for (const grant of await unendedGrants(dependencies.ledger, userId)) {
    version = await endGrant(dependencies, grant, { type: 'oauth.token_revoked', cause: 'user_disabled', ...actor })
  }
  return version
}

const agrees = ({ scope, permissions, teamIds }: AccessToken, personStatus: PersonStatus): boolean =>
  Bun.deepEquals(permissions, permissionsWithin(scope, personStatus)) && Bun.deepEquals(teamIds, personStatus.teamIds)

async function rewrite(
  { clock, newId, recorder }: OAuthDependencies,
  { principal, requestId }: Actor,
  { userId, personStatus, outdated }: { userId: string; personStatus: PersonStatus; outdated: readonly AccessToken[] },
): Promise<number | null> {
  const narrowed = outdated.filter(({ scope, permissions }) => {
    const now: readonly string[] = permissionsWithin(scope, personStatus)
    return permissions.some((permission) => !now.includes(permission))
  })
  const event = controlPlaneEvent({
    type: 'member.updated',
    principal,
    requestId,
    teamId: personStatus.teamIds[0] ?? null,
    details: { user_id: userId, oauth_tokens: outdated.length, narrowed: narrowed.length },
    configVersion: 0,
    clock,
    newId,
  })
  const { head } = await recorder.change({
    event,
    state: outdated.map(({ id, scope }) => {
      const rights = { permissions: permissionsWithin(scope, personStatus), teamIds: personStatus.teamIds }
      return statement(
        update(oauthTokens)
          .set({ ...rights, version: newStateVersion })
          .where(eq(oauthTokens.id, id)),
      )
    }),
    ledger: [],
    revoked: narrowed.map(({ hash }) => hash),
  })
  return narrowed.length > 0 ? head.version : null
}

/** Finishes what dead processes began: endings of grants, and tokens that do not match their person yet. */
export async function settleOAuth(dependencies: OAuthDependencies): Promise<void> {
  const { ledger, clock, newId } = dependencies
  const olderThan = clock.now() - abandonedAfterMilliseconds
  const actor: Actor = { principal: { ...anonymous, name: 'system:settle' }, requestId: newId() }
  await settleEndings(dependencies, { type: 'oauth.token_revoked', cause: 'interrupted', ...actor }, olderThan)
  await removeUnapproved(dependencies)
  const marked = await query(ledger)
    .select()
    .from(pendingPermissionUpdates)
    .where(lte(pendingPermissionUpdates.changedAt, olderThan))
  for (const { userId } of marked) await followPerson(dependencies, actor, userId)
}
