/** How a record of the queue changes: with its event, and only if nobody else changed it since it was read. */
import { and, eq, not, sql } from 'drizzle-orm'
import { controlPlaneEvent } from '../events/control-plane-event.ts'
import type { EventType } from '../events/event-types.ts'
import type { Recorder } from '../events/recorder.ts'
import { Failure } from '../failure.ts'
import type { Principal } from '../identity/principal.ts'
import { type Clock, timestamp } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import type { Database } from '../store/open.ts'
import { condition, guard, hasRow, insert, newStateVersion, query, statement, update } from '../store/query.ts'
import { escalations } from '../store/schema/ledger/policies.ts'
import { grants } from '../store/schema/state/tokens.ts'
import type { Statement } from '../store/statement.ts'
import type { EscalationRow } from './escalation.ts'

export interface QueueDependencies {
  ledger: Database
  recorder: Recorder
  clock: Clock
  newId: NewId
  settings: { escalation_expiry_seconds: number }
}

export interface Reviewer {
  principal: Principal
  /** Null where a decision takes effect after the request that made it. */
  requestId: string | null
}

type Columns = Partial<typeof escalations.$inferInsert>

export interface Changed {
  type: EventType
  details?: Record<string, unknown>
  set: Columns
}

/** Throws `conflict` if the row is not as it was read. */
export async function changeEscalation(
  deps: QueueDependencies,
  reviewer: Reviewer,
  row: EscalationRow,
  changed: Changed,
): Promise<void> {
  const ledger = [unchanged(row.id, row.version), setColumns(row, changed.set)]
  await deps.recorder.change({ event: eventOf(deps, reviewer, row, changed), state: [], ledger })
}

export type Decided = Pick<EscalationRow, 'resolution' | 'note' | 'resolvedBy' | 'resolvedAt' | 'grantExpiresAt'>

/**
 * Puts a decision into effect. A grant is in the state, which is written before the ledger: so the row is marked as
 * `applying` first, and from then on nobody can undo the decision. A process that dies in between leaves the mark, and
 * `applyQueueChanges` goes on from there; the grant's id is the escalation's, so that there can be only one.
 */
export async function takeEffect(
  deps: QueueDependencies,
  reviewer: Reviewer,
  row: EscalationRow,
  decided: Decided,
): Promise<void> {
  const { id, tokenId, digest } = row
  const { resolution, note, grantExpiresAt: expiresAt } = decided
  const grant = expiresAt === null ? null : { id, expires_at: timestamp(expiresAt) }
  const set = { ...decided, state: 'resolved' as const, grantId: grant?.id ?? null }
  const changed: Changed = { type: 'escalation.resolved', details: { resolution, note, grant }, set }
  if (expiresAt === null) return await changeEscalation(deps, reviewer, row, changed)
  if (row.state !== 'applying') {
    await writeGuarded(deps.ledger, [unchanged(id, row.version), setColumns(row, { ...decided, state: 'applying' })])
  }
  const applied = deps.recorder.change({
    event: eventOf(deps, reviewer, row, changed),
    guard: condition(not(hasRow(grants, eq(grants.id, id)))),
    state: [statement(insert(grants).values({ id, expiresAt, tokenId, digest, version: newStateVersion }))],
    ledger: [setColumns(row, set)],
  })
  await applied.catch(async (error: unknown) => {
    // Another control plane may have put the same decision into effect as soon as the row was marked.
    if (!(await isDecided(deps.ledger, id, decided))) throw error
  })
}

async function isDecided(ledger: Database, id: string, { resolvedBy, resolvedAt }: Decided): Promise<boolean> {
  const { state, resolvedBy: by, resolvedAt: at } = escalations
  const found = await query(ledger).select({ state, by, at }).from(escalations).where(eq(escalations.id, id)).get()
  return found?.state === 'resolved' && found.by === resolvedBy && found.at === resolvedAt
}

function eventOf({ clock, newId }: QueueDependencies, reviewer: Reviewer, row: EscalationRow, changed: Changed) {
  const { principal, requestId } = reviewer
  const event = controlPlaneEvent({
    type: changed.type,
    principal,
    requestId: requestId ?? '',
    teamId: row.teamId,
    tokenId: row.tokenId,
    details: { escalation_id: row.id, policy_id: row.policyId, ...changed.details },
    configVersion: 0,
    clock,
    newId,
  })
  return { ...event, request_id: requestId }
}

const setColumns = ({ id }: EscalationRow, set: Columns): Statement =>
  statement(
    update(escalations)
      .set({ ...set, version: sql`${escalations.version} + 1` })
      .where(eq(escalations.id, id)),
  )

/** Fails its transaction if another process was faster. */
export const unchanged = (id: string, version: number): Statement =>
  guard(hasRow(escalations, and(eq(escalations.id, id), eq(escalations.version, version))))

/** Throws `conflict` if a guard fails. */
export async function writeGuarded(ledger: Database, statements: readonly Statement[]): Promise<void> {
  try {
    await ledger.write(statements)
  } catch (error) {
    if (error instanceof Error && /CHECK constraint failed/i.test(error.message)) {
      throw new Failure('conflict', { cause: error })
    }
    throw error
  }
}
