/** Who may call a route of the control plane: authentication, the permission, and the record of a refusal. */
import { Failure } from '../failure.ts'
import { notDelegated } from '../identity/delegation.ts'
import { isPermission, type Permission } from '../identity/permissions.ts'
import type { Principal } from '../identity/principal.ts'
import type { Log } from '../lib/log/log.ts'
import { beyondToken } from './token-reach.ts'

/** Who may call: a permission; anyone signed in; a gateway by its runtime token or session; or everybody. */
export type Access = Permission | 'signed-in' | 'runtime:session' | 'public'

/** The route that a request matched, as far as access control looks at it. */
export interface CalledRoute {
  method: string
  /** OpenAPI form: `/v1/tokens/{id}`. */
  path: string
  access: Access
  wholeOrganization: boolean
  internal: boolean
}

export interface Refusal {
  principal: Principal
  requestId: string
  /** Method and path of the route: `POST /v1/tokens`. */
  route: string
  permission: Access
}

/** Throws `missing_api_key` or `permission_denied` unless the principal may call the route. */
export function requireAccess(route: CalledRoute, principal: Principal): void {
  if (!mayCall(route, principal)) throw refusalOf(route, principal)
}

function mayCall(route: CalledRoute, principal: Principal): boolean {
  const { access } = route
  if (access === 'public') return true
  if (principal.kind === 'anonymous') return false
  // No scope covers what only a person may do (oauth/README.md).
  if (access === 'signed-in') return principal.delegation === undefined
  if (access === 'runtime:session') return principal.kind === 'runtime'
  return principal.permissions.has(access) && beyondToken(route, principal) === null
}

function refusalOf(route: CalledRoute, principal: Principal): Failure {
  const { access } = route
  if (principal.kind === 'anonymous') return new Failure('missing_api_key')
  if (principal.delegation !== undefined && isPermission(access)) return notDelegated(principal.delegation, access)
  if (access === 'signed-in') return new Failure('permission_denied', { message: 'Only a person can do this' })
  if (access === 'runtime:session') {
    return new Failure('permission_denied', { message: "Only a gateway's session may do this" })
  }
  const holds = isPermission(access) && principal.permissions.has(access)
  const beyond = holds ? beyondToken(route, principal) : null
  return new Failure('permission_denied', { message: beyond ?? `This needs the permission ${access}` })
}

/** Records the refusal of a change. When the record cannot be written, the caller is refused all the same. */
export async function recordRefusal(
  { refused, log }: { refused?: ((refusal: Refusal) => Promise<void>) | undefined; log: Log },
  { method, path, access, internal }: CalledRoute,
  principal: Principal,
  requestId: string,
): Promise<void> {
  if (method === 'GET' || internal || principal.kind === 'anonymous' || refused === undefined) return
  try {
    await refused({ principal, requestId, route: `${method} ${path}`, permission: access })
  } catch (error) {
    log.error({ request_id: requestId, error: String(error) }, 'A refusal was not recorded')
  }
}
