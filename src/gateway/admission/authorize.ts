/** Checks that the token may call gateway routes, and this gateway (gateway/README.md, Order of checks). */
import { Failure } from '../../failure.ts'
import { notDelegated } from '../../identity/delegation.ts'
import { type Permission, permissionsOf, type Role, roles } from '../../identity/permissions.ts'
import { type Family, families, isFamily } from '../../languages/families.ts'
import type { GovernedToken } from '../../tokens/governed-token.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, required } from '../exchange.ts'
import { checkToken } from './authenticate.ts'

type Invoking = (typeof families)[Family]['permission'] & Permission
const rolesWith = (needed: Invoking): ReadonlySet<Role> =>
  new Set(roles.filter((role) => permissionsOf([role]).has(needed)))
const invokingRoles: Readonly<Record<Invoking, ReadonlySet<Role>>> = {
  'gateway:invoke': rolesWith('gateway:invoke'),
  'mcp:invoke': rolesWith('mcp:invoke'),
}

export function admitToken(exchange: Exchange, gateway: Gateway): void {
  // The token may have been revoked while the body arrived.
  checkToken(exchange, gateway)
  const token = required(exchange.token)
  if (token.purpose === 'gateway_runtime') throw new Failure('tokens.purpose_not_allowed')
  requireInvoking(token, isFamily(exchange.family) ? families[exchange.family].permission : 'gateway:invoke')
  if (token.gatewayId !== null && token.gatewayId !== gateway.worker.status.gatewayId) {
    throw new Failure('tokens.gateway_not_allowed')
  }
}

function requireInvoking({ roles, delegation }: GovernedToken, needed: Invoking): void {
  if (delegation !== undefined) {
    if (!delegation.permissions.includes(needed)) throw notDelegated(delegation, needed)
  } else if (!roles.some((role) => invokingRoles[needed].has(role))) {
    throw new Failure('permission_denied', { message: `The token lacks the permission ${needed}` })
  }
}
