import type { Principal } from '../identity/principal.ts'
import type { Clock } from '../lib/clock.ts'
import { timestamp } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import type { Database } from '../store/open.ts'
import { type Event, noAttribution, type Verdict } from './event.ts'
import type { EventType } from './event-types.ts'

interface ControlPlaneEvent {
  type: EventType
  /** Default `allow`; a refused action is `deny` (events/README.md). */
  verdict?: Verdict
  /** Default `ok`; otherwise a stable dotted code. */
  reason?: string
  principal: Principal
  requestId: string
  /** What was done to what: ids and names, never a secret. */
  details: Record<string, unknown>
  /** The team of the event, if it is not the principal's: that of the changed token. */
  teamId?: string | null
  /** The token that was acted on; the acting one is in `details.actor`. Default: the principal's own. */
  tokenId?: string | null
  /** The class of that token. Default: of the principal's own. */
  keyClass?: string | null
  configVersion: number
  clock: Clock
  newId: NewId
}

/** An event of the control plane. The actor is in `details.actor`. */
export function controlPlaneEvent(options: ControlPlaneEvent): Event {
  const { principal } = options
  return {
    event_id: options.newId(),
    event_type: options.type,
    request_id: options.requestId,
    timestamp: timestamp(options.clock.now()),
    verdict: options.verdict ?? 'allow',
    reason_code: options.reason ?? 'ok',
    config_version: options.configVersion,
    event_attribution: {
      ...noAttribution,
      token_id: options.tokenId === undefined ? principal.tokenId : options.tokenId,
      team_id: options.teamId === undefined ? principal.teamId : options.teamId,
      user_id: principal.userId,
      gateway_id: principal.gatewayId,
      key_class: options.tokenId === undefined ? principal.keyClass : (options.keyClass ?? null),
      oauth_client_id: principal.delegation?.clientId ?? null,
    },
    details: { ...options.details, actor: principal.name },
  }
}

/** The `config_version` of events that belong to no change of the state. */
export async function versionNow(state: Pick<Database, 'read'>): Promise<number> {
  const [head] = await state.read<{ version: number }>('select version from state_head')
  return head?.version ?? 0
}
