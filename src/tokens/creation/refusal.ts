/** A change of tokens that its caller may not make leaves an event too, with verdict deny (events/README.md). */
import { versionNow } from '../../events/control-plane-event.ts'
import type { EventType } from '../../events/event-types.ts'
import { Failure } from '../../failure.ts'
import type { TokenDependencies } from '../dependencies.ts'
import { findToken } from '../stored-token.ts'
import { type Actor, tokenEvent } from './minting.ts'

/** Does the work; where it is refused for want of permission, records what was attempted before passing that on. */
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
