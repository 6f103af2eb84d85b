import type { Delegation } from './delegation.ts'
import type { KeyClass } from './key-class.ts'
import type { Permission, Role } from './permissions.ts'

/** Who makes a control-plane call, and what they may do. */
export interface Principal {
  kind: 'anonymous' | 'token' | 'session' | 'runtime'
  /** Stable name of who this is, for idempotency and attribution: `token:<id>`. */
  name: string
  tokenId: string | null
  userId: string | null
  teamId: string | null
  /** The team that the events of its token belong to: the token's, or that of the token's owner. */
  eventTeamId: string | null
  keyClass: KeyClass | null
  /** Whether its token expires, or has a binding, a policy or a limit of any kind. */
  restricted: boolean
  /**
   * Whether its token has a limit, a policy, or a binding to a gateway, provider or model, or a consumer group or policy
   * names it. Expiry and a binding to a team or a user do not count.
   */
  limited: boolean
  /** The gateway a runtime token or runtime session belongs to. */
  gatewayId: string | null
  /** The instance a runtime session is bound to. */
  instanceId: string | null
  roles: readonly Role[]
  permissions: ReadonlySet<Permission>
  /** Set where an application acts for the user by an OAuth access token. */
  delegation?: Pick<Delegation, 'clientId' | 'scope'>
}

export const anonymous: Principal = {
  kind: 'anonymous',
  name: 'anonymous',
  tokenId: null,
  userId: null,
  teamId: null,
  eventTeamId: null,
  keyClass: null,
  restricted: false,
  limited: false,
  gatewayId: null,
  instanceId: null,
  roles: [],
  permissions: new Set(),
}
