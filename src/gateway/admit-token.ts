/** Whether this token may call a gateway route at all, and this gateway (contract section 6, bindings). */
import { Failure } from '../failure.ts'
import { notDelegated } from '../tokens/delegation.ts'
import type { GovernedToken } from '../tokens/governed.ts'
import { type Permission, permissionsOf, type Role, roles } from '../tokens/permissions.ts'
import { lookAtToken } from './authenticate.ts'
import { type Exchange, type Gateway, given } from './exchange.ts'

const needed: Permission = 'gateway:invoke'
const invokingRoles: ReadonlySet<Role> = new Set(roles.filter((role) => permissionsOf([role]).has(needed)))

export function admitToken(exchange: Exchange, gateway: Gateway): void {
  // The body may have been long in coming.
  lookAtToken(exchange, gateway)
  const token = given(exchange.token)
  if (token.purpose === 'gateway_runtime') throw new Failure('tokens.purpose_not_allowed')
  requireInvoking(token)
  if (token.gatewayId !== null && token.gatewayId !== gateway.lane.standing.gatewayId) {
    throw new Failure('tokens.gateway_not_allowed')
  }
}

function requireInvoking({ roles, delegation }: GovernedToken): void {
  if (delegation !== undefined) {
    if (!delegation.permissions.includes(needed)) throw notDelegated(delegation, needed)
  } else if (!roles.some((role) => invokingRoles.has(role))) {
    throw new Failure('permission_denied', { message: `The token lacks the permission ${needed}` })
  }
}
