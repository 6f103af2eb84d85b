/** Records a change that is refused because the caller lacks a permission (events/README.md). */
import type { Recorder } from '../events/recorder.ts'
import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import type { Database } from '../store/open.ts'
import type { Actor } from '../tokens/creation/minting.ts'
import { memberEvent } from './member-event.ts'

/** `route` as declared, without values: `DELETE /v1/tokens/{id}`. */
export async function recordAccessRefusal(
  dependencies: { state: Database; recorder: Recorder; clock: Clock; newId: NewId },
  { principal, requestId }: Actor,
  attempted: { route: string; permission: string },
): Promise<void> {
  const event = await memberEvent(dependencies, {
    type: 'auth.refused',
    refused: 'permission_denied',
    principal,
    requestId,
    teamId: principal.eventTeamId,
    details: attempted,
  })
  await dependencies.recorder.append([event])
}
