/** Events of people's connections: who connected what; never a token, a code or a client's secret. */
import { controlPlaneEvent, versionNow } from '../events/control-plane-event.ts'
import type { Event } from '../events/event.ts'
import type { EventType } from '../events/event-types.ts'
import type { Principal } from '../identity/principal.ts'
import { teamsOfUsers } from '../members/people/stored-user.ts'
import type { ConnectionDependencies } from './dependencies.ts'

interface ConnectionEvent {
  type: Extract<EventType, `mcp_connection.${string}`>
  /** The reason of a refusal; absent: allowed. */
  refused?: string
  principal: Principal
  requestId: string
  userId: string
  server: { id: string; name: string }
  details?: Record<string, unknown>
}

export async function connectionEvent(
  { state, ledger, clock, newId }: Pick<ConnectionDependencies, 'state' | 'ledger' | 'clock' | 'newId'>,
  { type, refused, principal, requestId, userId, server, details = {} }: ConnectionEvent,
): Promise<Event> {
  const teams = await teamsOfUsers(ledger, [userId])
  const event = controlPlaneEvent({
    type,
    verdict: refused === undefined ? 'allow' : 'deny',
    reason: refused ?? 'ok',
    principal,
    requestId,
    details: { mcp_server_id: server.id, server: server.name, user_id: userId, ...details },
    teamId: teams.get(userId)?.[0] ?? null,
    configVersion: await versionNow(state),
    clock,
    newId,
  })
  return { ...event, event_attribution: { ...event.event_attribution, user_id: userId } }
}
