import type { Delegation } from './delegation.ts'
import type { KeyClass } from './key-class.ts'
import type { Permission, Role } from './permissions.ts'

/** The caller of the control plane and its permissions. */
export interface Principal {
  kind: 'anonymous' | 'token' | 'session' | 'runtime'
  /** A stable name for idempotency and attribution: `token:<id>`. */
  name: string
  tokenId: string | null
  userId: string | null
  teamId: string | null
  /** The team of events about its token: the token's, or that of the token's owner. */
  eventTeamId: string | null
  keyClass: KeyClass | null
  /** Whether its token expires, or has a binding, a policy or a limit of any kind. */
  restricted: boolean
  /**
   * Whether its token has a limit, a policy, a binding to a gateway, provider or model, or is named by a consumer group
   * or policy. Expiry and a binding to a team or user do not count.
   */
  limited: boolean
  /** The gateway of a runtime token or runtime session. */
  gatewayId: string | null
  /** The instance of a runtime session. */
  instanceId: string | null
  roles: readonly Role[]
  permissions: ReadonlySet<Permission>
  /** Set when an application acts for the user by an OAuth access token. */
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
