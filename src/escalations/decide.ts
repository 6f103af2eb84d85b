/**
 * What a reviewer does with a waiting request (escalations/README.md). A decision sends nothing again: with
 * `grant_once_seconds` the same token may send the same request once within that time. Nobody decides about their own
 * request. A decision that can be undone is only noted: it takes effect when that time has passed (`arrivals.ts`), so
 * that an approval which is taken back has let nothing through.
 */
import { Failure } from '../failure.ts'
import type { Principal } from '../identity/principal.ts'
import { timestamp } from '../lib/clock.ts'
import { changeEscalation, type QueueDependencies, type Reviewer, takeEffect } from './change-escalation.ts'
import { type NamedEscalation, type resolutions, stateOf } from './escalation.ts'

export interface Resolution {
  resolution: (typeof resolutions)[number]
  note: string | null
  grantOnceSeconds: number | null
  /** How long it can be undone; 0: it takes effect at once. */
  undoSeconds: number
}

/** Claims it: others see that somebody works on it. Claiming it again changes nothing. */
export async function claim(deps: QueueDependencies, reviewer: Reviewer, row: NamedEscalation): Promise<void> {
  requireOpen(row, deps.clock.now())
  requireOther(reviewer.principal, row)
  const { name } = reviewer.principal
  if (row.claimedBy === name) return
  if (row.claimedBy !== null) throw claimedByAnother()
  const set = { state: 'claimed' as const, claimedBy: name, claimedAt: deps.clock.now() }
  await changeEscalation(deps, reviewer, row, { type: 'escalation.claimed', set })
}

/** Releases the claim; owners and admins may do that for others. */
export async function unclaim(deps: QueueDependencies, reviewer: Reviewer, row: NamedEscalation): Promise<void> {
  requireOpen(row, deps.clock.now())
  if (row.claimedBy === null) return
  const { name, roles } = reviewer.principal
  if (row.claimedBy !== name && !roles.some((role) => role === 'owner' || role === 'admin')) throw claimedByAnother()
  await changeEscalation(deps, reviewer, row, {
    type: 'escalation.unclaimed',
    details: { claimed_by: row.claimedBy },
    set: { state: 'queued', claimedBy: null, claimedAt: null },
  })
}

/** Decides, once. Throws `conflict` if it is decided, has expired or is claimed by somebody else. */
export async function resolve(
  deps: QueueDependencies,
  reviewer: Reviewer,
  row: NamedEscalation,
  { resolution, note, grantOnceSeconds, undoSeconds }: Resolution,
): Promise<void> {
  const now = deps.clock.now()
  requireOpen(row, now)
  requireOther(reviewer.principal, row)
  const { name } = reviewer.principal
  if (row.claimedBy !== null && row.claimedBy !== name) throw claimedByAnother()
  const resolvedAt = now + 1000 * undoSeconds
  const grantExpiresAt = grantOnceSeconds === null ? null : resolvedAt + 1000 * grantOnceSeconds
  const decided = { resolution, note, resolvedBy: name, resolvedAt, grantExpiresAt }
  if (undoSeconds === 0) return await takeEffect(deps, reviewer, row, decided)
  await changeEscalation(deps, reviewer, row, {
    type: 'escalation.decided',
    details: { resolution, note, takes_effect_at: timestamp(resolvedAt) },
    set: { ...decided, state: 'deciding' },
  })
}

/** Takes back the reviewer's own decision. Throws `conflict` once it takes effect. */
export async function undo(deps: QueueDependencies, reviewer: Reviewer, row: NamedEscalation): Promise<void> {
  if (row.state !== 'deciding') {
    throw new Failure('conflict', { message: `There is no decision to undo: the escalation is ${row.state}` })
  }
  const { resolution, note, resolvedBy, claimedBy } = row
  if (resolvedBy !== reviewer.principal.name) {
    throw new Failure('permission_denied', { message: 'Only who decided may undo the decision' })
  }
  const none = { resolution: null, note: null, resolvedBy: null, resolvedAt: null, grantExpiresAt: null }
  await changeEscalation(deps, reviewer, row, {
    type: 'escalation.undone',
    details: { resolution, note },
    set: { ...none, state: claimedBy === null ? 'queued' : 'claimed' },
  })
}

const claimedByAnother = () => new Failure('conflict', { message: 'Somebody else has claimed this escalation' })

function requireOpen(row: NamedEscalation, now: number): void {
  const state = stateOf(row, now)
  if (state === 'queued' || state === 'claimed') return
  const message = state === 'deciding' ? 'Somebody has just decided this escalation' : `The escalation is ${state}`
  throw new Failure('conflict', { message })
}

/** Own means the request's user, or the token that sent it; the creator of the token does not count. */
function requireOther({ userId, tokenId }: Principal, row: NamedEscalation): void {
  if ((userId !== null && userId === row.userId) || tokenId === row.tokenId) {
    throw new Failure('permission_denied', { message: 'Nobody decides about a request of their own' })
  }
}
