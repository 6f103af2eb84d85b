/** Events of people: who did it, to whom, and what changed; never a password or another secret. */
import { type Event, type EventType, nobody } from '../events/event.ts'
import type { Change, Recorder } from '../events/recorder.ts'
import { Failure } from '../failure.ts'
import { type Clock, timestamp } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import type { Statement } from '../store/open.ts'
import type { Principal } from '../tokens/principal.ts'

export interface MemberEventOptions {
  type: EventType
  /** Absent: allowed. */
  refused?: string
  principal: Pick<Principal, 'name' | 'tokenId' | 'userId'>
  requestId: string
  sessionId?: string | null
  teamId?: string | null
  details: Record<string, unknown>
}

export interface EventMaker {
  clock: Clock
  newId: NewId
  /** The present version of the configuration. */
  configVersion(): Promise<number>
}

export async function memberEvent(
  { clock, newId, configVersion }: EventMaker,
  { type, refused, principal, requestId, sessionId = null, teamId = null, details }: MemberEventOptions,
): Promise<Event> {
  return {
    event_id: newId(),
    event_type: type,
    request_id: requestId,
    timestamp: timestamp(clock.now()),
    verdict: refused === undefined ? 'allow' : 'deny',
    reason_code: refused ?? 'ok',
    config_version: await configVersion(),
    event_attribution: {
      ...nobody,
      token_id: principal.tokenId,
      user_id: principal.userId,
      team_id: teamId,
      session_id: sessionId,
    },
    details: { actor: principal.name, ...details },
  }
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
 * Records a change of the ledger alone. Throws `conflict`, naming `conflict` where it is given, when a guard or a
 * constraint does not hold; then nothing has changed.
 */
export async function recordChange(
  recorder: Recorder,
  change: { event: Event; ledger: readonly Statement[] },
  conflict: { message?: string; param?: string } = {},
): Promise<void> {
  const whole: Change = { ...change, state: [] }
  try {
    await recorder.change(whole)
  } catch (error) {
    if (breaksConstraint(error)) throw new Failure('conflict', { ...conflict, cause: error })
    throw error
  }
}

/** Whether a statement failed because a constraint of the database does not hold. */
function breaksConstraint(error: unknown): boolean {
  if (error instanceof Failure) return error.code === 'conflict'
  if (!(error instanceof Error)) return false
  return /constraint failed/i.test(error.message) || breaksConstraint(error.cause)
}
