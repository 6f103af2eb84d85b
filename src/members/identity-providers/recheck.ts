/**
 * Asks providers again about people who are signed in, each `recheck_seconds` after the last time. Who no longer
 * belongs loses their sessions and the approvals of applications at once; whose groups have changed gets the role and
 * the teams of the present ones. A provider that does not answer is asked again every minute; its people stay until
 * what it said last has run out (`vouchedUntil`).
 *
 * Of several control planes the one that moves `check_at` on asks: a refresh token that is used twice would count as
 * stolen at many providers.
 */
import { and, asc, eq, isNotNull, isNull, lte, or } from 'drizzle-orm'
import type { Log } from '../../lib/log/log.ts'
import { hasRow, query, statement, update } from '../../store/query.ts'
import { oauthGrants } from '../../store/schema/ledger/oauth.ts'
import { userIdentities, userSessions } from '../../store/schema/ledger/people.ts'
import type { MemberDependencies } from '../dependencies.ts'
import { memberEvent, recordChange } from '../member-event.ts'
import { findUser } from '../people/stored-user.ts'
import { endSessionsOf } from '../sessions/session.ts'
import { admit } from './claims.ts'
import { ProviderRefusal } from './provider-refusal.ts'
import { provisionedGroups } from './provisioned.ts'
import type { Vouched } from './relying-party.ts'
import {
  type IdentityRow,
  type KnownProvider,
  loseIdentity,
  openRefreshToken,
  renewIdentity,
  requireEnabled,
} from './stored-identity-provider.ts'
import { followGroups, providerPrincipal, standingOf } from './take-in.ts'

/** So many at once, so that one round ends soon. */
const inOneRound = 20
const retryMilliseconds = 60_000

export interface RecheckDependencies extends MemberDependencies {
  log: Log
}

/** One round: asks about those whose turn it is. */
export async function recheckIdentities(dependencies: RecheckDependencies): Promise<void> {
  const { ledger, clock } = dependencies
  const due = await query(ledger)
    .select()
    .from(userIdentities)
    .where(and(isNotNull(userIdentities.checkAt), lte(userIdentities.checkAt, clock.now())))
    .orderBy(asc(userIdentities.checkAt))
    .limit(inOneRound)
  await Promise.all(due.map((identity) => recheck(dependencies, identity)))
}

async function recheck(dependencies: RecheckDependencies, identity: IdentityRow): Promise<void> {
  if (!(await claim(dependencies, identity))) return
  try {
    if (!(await isUsed(dependencies, identity))) {
      await dependencies.ledger.write([renewIdentity(identity.id, { checkAt: null })])
      return
    }
    const provider = await requireEnabled(dependencies, { issuer: identity.issuer })
    await take(dependencies, provider, identity, await ask(dependencies, provider, identity))
  } catch (error) {
    // What is not understood is no word of the provider: it is asked again, and its last one runs out by itself.
    dependencies.log.warn(
      { identity_id: identity.id, issuer: identity.issuer, error: String(error) },
      'An identity provider could not be asked about a person and will be asked again',
    )
  }
}

/** Puts the next question off, so that no other control plane asks meanwhile. False where one was faster. */
async function claim({ ledger, clock }: RecheckDependencies, { id, checkAt }: IdentityRow): Promise<boolean> {
  const isDue = and(eq(userIdentities.id, id), checkAt === null ? undefined : eq(userIdentities.checkAt, checkAt))
  const claimed = await ledger.writeAndRead([
    statement(
      update(userIdentities)
        .set({ checkAt: clock.now() + retryMilliseconds })
        .where(isDue)
        .returning({ id: userIdentities.id }),
    ),
  ])
  return claimed.length > 0
}

/** Whether anything hangs on the provider's word: a session, or an application that acts for the person. */
async function isUsed({ ledger }: RecheckDependencies, { id, userId }: IdentityRow): Promise<boolean> {
  const bySession = hasRow(userSessions, eq(userSessions.identityId, id))
  const byApproval = hasRow(oauthGrants, and(eq(oauthGrants.userId, userId), isNull(oauthGrants.revokedAt)))
  return (await query(ledger).$count(userIdentities, and(eq(userIdentities.id, id), or(bySession, byApproval)))) > 0
}

/** What the provider says now; null where it has withdrawn its word. Throws where it said nothing usable. */
async function ask(
  { masterKey, relyingParty }: RecheckDependencies,
  provider: KnownProvider,
  identity: IdentityRow,
): Promise<Vouched | null> {
  const token = openRefreshToken(masterKey, identity)
  return token === null ? null : await relyingParty.renew(provider, token, identity.subject)
}

async function take(
  dependencies: RecheckDependencies,
  provider: KnownProvider,
  identity: IdentityRow,
  vouched: Vouched | null,
): Promise<void> {
  if (vouched === null) return await lose(dependencies, provider, identity, 'withdrawn')
  const { lastSignInAt: _, ...standing } = standingOf(dependencies, provider, identity, vouched)
  // First of all: a provider that rotates refresh tokens no longer takes the one before.
  await dependencies.ledger.write([renewIdentity(identity.id, { refreshToken: standing.refreshToken })])
  const user = await findUser(dependencies.ledger, identity.userId)
  if (user === null) return
  try {
    const groups = await provisionedGroups(dependencies.ledger, provider, user.id)
    const admission = admit(provider, vouched.claims, groups)
    await followGroups(dependencies, provider, { user, admission, requestId: dependencies.newId() })
  } catch (error) {
    if (!(error instanceof ProviderRefusal)) throw error
    return await lose(dependencies, provider, identity, error.reason)
  }
  await dependencies.ledger.write([renewIdentity(identity.id, standing)])
}

/** Ends what the person has here by the provider's word. */
async function lose(
  dependencies: RecheckDependencies,
  provider: KnownProvider,
  { id, userId }: IdentityRow,
  reason: string,
): Promise<void> {
  const { clock, recorder, newId, delegations } = dependencies
  const [now, requestId, principal] = [clock.now(), newId(), providerPrincipal(provider)]
  const event = await memberEvent(dependencies, {
    type: 'auth.identity_lost',
    refused: `identity.${reason}`,
    principal,
    requestId,
    details: { user_id: userId, identity_provider_id: provider.id },
  })
  const ends = [loseIdentity(id, now), ...endSessionsOf(userId), ...delegations.mark(userId, now, true)]
  await recordChange(recorder, { event, ledger: ends })
  await delegations.follow({ principal, requestId }, userId)
}
