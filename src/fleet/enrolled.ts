/** The event that a lane of an instance that was never seen before has come (protocols section 5). */
import { controlPlaneEvent } from '../events/control-plane-event.ts'
import type { Principal } from '../tokens/principal.ts'
import type { FleetOptions } from './control.ts'

export interface Enrolment {
  principal: Principal
  requestId: string
  lane: string
  instanceId: string
  /** The executable's version, as far as it was told. */
  version: string | null
  configVersion: number
}

/** Recorded before the lane's row is written: whoever dies in between has said it twice rather than never. */
export async function recordEnrolment(
  { recorder, clock, newId }: Pick<FleetOptions, 'recorder' | 'clock' | 'newId'>,
  { principal, requestId, lane, instanceId, version, configVersion }: Enrolment,
): Promise<void> {
  const details = { lane, instance_id: instanceId, version }
  const about = { principal, requestId, details, configVersion, clock, newId }
  await recorder().append([controlPlaneEvent({ type: 'fleet.enrolled', ...about })])
}
