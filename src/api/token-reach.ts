/**
 * What a token may not do although its roles permit it: change what bounds it, or make somebody who is not bounded. A
 * person who is signed in has no such bounds.
 */
import { Failure } from '../failure.ts'
import type { Permission } from '../identity/permissions.ts'
import type { Principal } from '../identity/principal.ts'

interface Writing {
  method: string
  access: string
  wholeOrganization: boolean
}

type Caller = Pick<Principal, 'kind' | 'teamId' | 'userId' | 'restricted' | 'limited'>

interface Bound {
  bounds(route: Writing, caller: Caller): boolean
  message: string
}

const needsOneOf = (permissions: readonly Permission[], { access }: Writing): boolean =>
  permissions.some((permission) => permission === access)

/** Permissions to change what holds for the whole organization. */
const organizationWide: readonly Permission[] = ['catalog:write', 'policies:write', 'oauth-clients:write']

const bounds: readonly Bound[] = [
  {
    // A person whom the token adds, or whose password it sets, could sign in and would have none of its bounds.
    bounds: (route, { restricted }) => restricted && needsOneOf(['members:write'], route),
    message:
      'A token that expires, or has limits or bindings, may not change people or teams, nor make a setup link. Sign in, ' +
      'or use a token without them, such as the one in the file admin-token of the data directory on the host',
  },
  {
    bounds: (route, { teamId, userId }) =>
      (teamId !== null && needsOneOf(organizationWide, route)) ||
      ((teamId !== null || userId !== null) && route.wholeOrganization),
    message: 'A token bound to a team or a user may not see or change what concerns the whole organization',
  },
  {
    // Its limits count by budgets, prices and models, its policies are these, and a grant lets a request past them.
    bounds: (route, { limited }) =>
      limited &&
      (needsOneOf([...organizationWide, 'escalations:resolve'], route) ||
        (route.wholeOrganization && route.method !== 'GET')),
    message:
      'A token with limits, policies or a binding to a gateway, provider or model may not change what they depend on: ' +
      'limits, policies, the catalog, applications, escalations. Use a token without them, or sign in',
  },
]

/** Why the caller's token may not call the route; null where it may. */
export function beyondToken(route: Writing, caller: Caller): string | null {
  if (caller.kind !== 'token') return null
  return bounds.find((bound) => bound.bounds(route, caller))?.message ?? null
}

/** For routes of records: throws `permission_denied` for a token that is bound to a team or a user. */
export function requireWholeOrganization(caller: Caller): void {
  const message = beyondToken({ method: 'GET', access: '', wholeOrganization: true }, caller)
  if (message !== null) throw new Failure('permission_denied', { message })
}
