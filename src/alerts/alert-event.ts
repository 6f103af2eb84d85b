/** Events about the records of alerts and channels; never an address or a secret. */
import { controlPlaneEvent, versionNow } from '../events/control-plane-event.ts'
import type { Event } from '../events/event.ts'
import type { EventType } from '../events/event-types.ts'
import type { Principal } from '../identity/principal.ts'
import type { AlertDependencies } from './dependencies.ts'

interface AboutRecord {
  type: Extract<EventType, `alert.${string}`>
  principal: Principal
  requestId: string
  details: Record<string, unknown>
}

/** Alerts belong to the installation, not to a team. */
export const alertEvent = async (
  { state, clock, newId }: Pick<AlertDependencies, 'state' | 'clock' | 'newId'>,
  about: AboutRecord,
): Promise<Event> => controlPlaneEvent({ ...about, teamId: null, configVersion: await versionNow(state), clock, newId })

/** The fields of a change that were sent. */
export const given = (fields: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
