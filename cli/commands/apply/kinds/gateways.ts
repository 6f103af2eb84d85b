import { gatewayResource } from '../../../../src/providers/catalog/gateway-resource.ts'
import { kindOf } from '../kind.ts'
import type { Entry } from '../places.ts'

/** `team:NAME` and `user:ADDRESS` in a file are `team:ID` and `user:ID` for the API. */
function ownerOf(_: Entry, owner: unknown) {
  if (typeof owner !== 'string') return null
  if (owner.startsWith('team:')) return { path: '/v1/teams', prefix: 'team:' }
  return owner.startsWith('user:') ? { path: '/v1/users', prefix: 'user:' } : null
}

export const gateways = kindOf(gatewayResource, { references: { spend_owner: ownerOf } })
