/**
 * What a reviewer does with a waiting request (escalations/README.md). A decision sends nothing again: with
 * `grant_once_seconds` the same token may send the same request once within that time. Nobody decides about their own
 * request.
 */

import { eq, not, sql } from 'drizzle-orm'
import { controlPlaneEvent } from '../events/control-plane-event.ts'
import type { EventType } from '../events/event-types.ts'
import { Failure } from '../failure.ts'
import type { Principal } from '../identity/principal.ts'
import { timestamp } from '../lib/clock.ts'
import type { Database } from '../store/open.ts'
import { condition, hasRow, insert, newStateVersion, statement, update } from '../store/query.ts'
import { escalations } from '../store/schema/ledger/policies.ts'
import { grants } from '../store/schema/state/tokens.ts'
import { type QueueDependencies, unchanged } from './arrivals.ts'
import { type NamedEscalation, type resolutions, stateOf } from './escalation.ts'

export interface DecisionDependencies extends QueueDependencies {
  state: Database
}

export interface Reviewer {
  principal: Principal
  requestId: string
}

export interface Resolution {
  resolution: (typeof resolutions)[number]
  note: string | null
  grantOnceSeconds: number | null
}

/** Claims it: others see that somebody works on it. Claiming it again changes nothing. */
export async function claim(deps: DecisionDependencies, reviewer: Reviewer, row: NamedEscalation): Promise<void> {
  requireOpen(row, deps.clock.now())
  requireOther(reviewer.principal, row)
  if (row.claimedBy === reviewer.principal.name) return
  if (row.claimedBy !== null) throw claimedByAnother()
  await change(
    deps,
    reviewer,
    row,
    'escalation.claimed',
    { details: {} },
    {
      state: 'claimed',
      claimedBy: reviewer.principal.name,
      claimedAt: deps.clock.now(),
    },
  )
}

/** Releases the claim; owners and admins may do that for others. */
export async function unclaim(deps: DecisionDependencies, reviewer: Reviewer, row: NamedEscalation): Promise<void> {
  requireOpen(row, deps.clock.now())
  if (row.claimedBy === null) return
  const { name, roles } = reviewer.principal
  if (row.claimedBy !== name && !roles.some((role) => role === 'owner' || role === 'admin')) throw claimedByAnother()
  await change(
    deps,
    reviewer,
    row,
    'escalation.unclaimed',
    { details: { claimed_by: row.claimedBy } },
    {
      state: 'queued',
      claimedBy: null,
      claimedAt: null,
    },
  )
}

/**
 * Decides, once. Throws `conflict` if it is decided, has expired or is claimed by somebody else. A grant is in the
 * state, which is written before the ledger. So the reviewer claims first, which keeps others from deciding, and the
 * grant's id is the escalation's, so that there can be only one.
 */
export async function resolve(
  deps: DecisionDependencies,
  reviewer: Reviewer,
  row: NamedEscalation,
  { resolution, note, grantOnceSeconds }: Resolution,
): Promise<void> {
  const now = deps.clock.now()
  requireOpen(row, now)
  requireOther(reviewer.principal, row)
  const { name } = reviewer.principal
  if (row.claimedBy !== null && row.claimedBy !== name) throw claimedByAnother()
  const grant = grantOnceSeconds === null ? null : { id: row.id, expiresAt: now + 1000 * grantOnceSeconds }
  if (grant !== null) await claim(deps, reviewer, row)
  const details = {
    resolution,
    note,
    grant: grant === null ? null : { id: grant.id, expires_at: timestamp(grant.expiresAt) },
  }
  await change(
    deps,
    reviewer,
    row,
    'escalation.resolved',
    { details, grant },
    {
      state: 'resolved',
      resolution,
      note,
      resolvedBy: name,
      resolvedAt: now,
      grantId: grant?.id ?? null,
      grantExpiresAt: grant?.expiresAt ?? null,
    },
  )
}

const claimedByAnother = () => new Failure('conflict', { message: 'Somebody else has claimed this escalation' })

function requireOpen(row: NamedEscalation, now: number): void {
  const state = stateOf(row, now)
  if (state === 'queued' || state === 'claimed') return
  throw new Failure('conflict', { message: `The escalation is ${state}` })
}

/** Own means the request's user, or the token that sent it; the creator of the token does not count. */
function requireOther({ userId, tokenId }: Principal, row: NamedEscalation): void {
  if ((userId !== null && userId === row.userId) || tokenId === row.tokenId) {
    throw new Failure('permission_denied', { message: 'Nobody decides about a request of their own' })
  }
}

interface GivenGrant {
  id: string
  expiresAt: number
}

async function change(
  { recorder, clock, newId }: DecisionDependencies,
  { principal, requestId }: Reviewer,
  row: NamedEscalation,
  type: EventType,
  { details, grant = null }: { details: Record<string, unknown>; grant?: GivenGrant | null },
  set: Partial<typeof escalations.$inferInsert>,
): Promise<void> {
  const event = controlPlaneEvent({
    type,
    principal,
    requestId,
    teamId: row.teamId,
    tokenId: row.tokenId,
    details: { escalation_id: row.id, policy_id: row.policyId, ...details },
    configVersion: 0,
    clock,
    newId,
  })
  const decided = statement(
    update(escalations)
      .set({ ...set, version: sql`${escalations.version} + 1` })
      .where(eq(escalations.id, row.id)),
  )
  if (grant === null) {
    await recorder.change({ event, state: [], ledger: [unchanged(row.id, row.version), decided] })
    return
  }
  await recorder.change({
    event,
    guard: condition(not(hasRow(grants, eq(grants.id, grant.id)))),
    state: [
      statement(
        insert(grants).values({ ...grant, tokenId: row.tokenId, digest: row.digest, version: newStateVersion }),
      ),
    ],
    ledger: [decided],
  })
}
