/** Records a change of tokens that the caller may not make, as an event with verdict deny (events/README.md). */
import { versionNow } from '../../events/control-plane-event.ts'
import type { EventType } from '../../events/event-types.ts'
import { Failure } from '../../failure.ts'
import type { TokenDependencies } from '../dependencies.ts'
import { findToken } from '../stored-token.ts'
import { type Actor, tokenEvent } from './minting.ts'

/** Does the work. If it is refused for a missing permission, records the attempt before it rethrows the error. */
export async function recordingRefusal<Result>(
  deps: TokenDependencies,
  actor: Actor,
  attempted: { type: EventType; tokenId: string | null },
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof Failure && error.code === 'permission_denied') {
      const { type, tokenId } = attempted
      const token = tokenId === null ? null : await findToken(deps.ledger, tokenId)
      const { eventTeamId } = actor.principal
      const event = tokenEvent({ type, actor, token, eventTeamId, details: { param: error.param } }, deps)
      await deps.recorder.append([
        { ...event, verdict: 'deny', reason_code: error.code, config_version: await versionNow(deps.state) },
      ])
    }
    throw error
  }
}
