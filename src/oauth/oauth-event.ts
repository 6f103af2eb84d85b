/** Events of OAuth: who did what through which application; never a code, a token or a challenge. */
import { controlPlaneEvent, versionNow } from '../events/control-plane-event.ts'
import type { Event } from '../events/event.ts'
import type { EventType } from '../events/event-types.ts'
import { anonymous, type Principal } from '../identity/principal.ts'
import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import type { Database } from '../store/open.ts'

export interface OAuthEvent {
  type: EventType
  /** The reason of a refusal; absent: allowed. */
  refused?: string
  principal: Principal
  requestId: string
  clientId: string
  /** Whose access it is about; null where it is about the client alone. */
  userId?: string | null
  /** The access token that was made or ended. */
  tokenId?: string | null
  teamId?: string | null
  details?: Record<string, unknown>
}

/** An event with the version of the state as of now; a change of the state writes its own. */
export async function oauthEvent(
  { state, clock, newId }: { state: Database; clock: Clock; newId: NewId },
  event: OAuthEvent,
): Promise<Event> {
  const { clientId, userId = null, tokenId = null, teamId = null } = event
  const made = controlPlaneEvent({
    type: event.type,
    verdict: event.refused === undefined ? 'allow' : 'deny',
    reason: event.refused ?? 'ok',
    principal: event.principal,
    requestId: event.requestId,
    details: { client_id: clientId, ...event.details },
    teamId,
    tokenId,
    configVersion: await versionNow(state),
    clock,
    newId,
  })
  const { event_attribution } = made
  return {
    ...made,
    event_attribution: {
      ...event_attribution,
      user_id: userId ?? event_attribution.user_id,
      oauth_client_id: clientId,
    },
  }
}

/** A public client at the token endpoint: it has said who it is and cannot prove it. */
export const clientPrincipal = (clientId: string): Principal => ({ ...anonymous, name: `oauth-client:${clientId}` })
