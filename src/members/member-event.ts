/** Events about people: who did it, to whom, and what changed; never a password or another secret. */

import { controlPlaneEvent, versionNow } from '../events/control-plane-event.ts'
import type { Event } from '../events/event.ts'
import type { EventType } from '../events/event-types.ts'
import { brokenConstraint } from '../events/log/append.ts'
import type { Change, Recorder } from '../events/recorder.ts'
import { Failure } from '../failure.ts'
import type { Principal } from '../identity/principal.ts'
import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import type { Database } from '../store/open.ts'

export interface MemberEventOptions {
  type: EventType
  /** The reason of a refusal; absent: allowed. */
  refused?: string
  principal: Principal
  requestId: string
  sessionId?: string | null
  /** The team concerned. Events about people alone are visible to owners and admins only. */
  teamId?: string | null
  details: Record<string, unknown>
}

export async function memberEvent(
  { state, clock, newId }: { state: Database; clock: Clock; newId: NewId },
  { type, refused, principal, requestId, sessionId = null, teamId = null, details }: MemberEventOptions,
): Promise<Event> {
  const event = controlPlaneEvent({
    type,
    verdict: refused === undefined ? 'allow' : 'deny',
    reason: refused ?? 'ok',
    principal,
    requestId,
    details,
    teamId,
    configVersion: await versionNow(state),
    clock,
    newId,
  })
  return { ...event, event_attribution: { ...event.event_attribution, session_id: sessionId } }
}

/** The fields whose values differ, each with what it was and what it is. */
export function changesOf<Row extends object>(before: Row, after: Row, fields: readonly (keyof Row & string)[]) {
  return Object.fromEntries(
    fields
      .filter((field) => before[field] !== after[field])
      .map((field) => [field, { from: before[field], to: after[field] }]),
  )
}

/**
 * Records a change of the ledger alone. Throws `conflict`, with the message and field given, where a guard or a
 * constraint does not hold; then nothing has changed.
 */
export async function recordChange(
  recorder: Recorder,
  change: Pick<Change, 'event' | 'further' | 'ledger'>,
  conflict: { message?: string; param?: string } = {},
): Promise<void> {
  try {
    await recorder.change({ ...change, state: [] })
  } catch (error) {
    const guardBroke = error instanceof Failure && error.code === 'conflict'
    if (guardBroke || brokenConstraint(error) !== null) throw new Failure('conflict', { ...conflict, cause: error })
    throw error
  }
}
