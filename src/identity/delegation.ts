/** What an OAuth access token adds to a principal: the application and the scope. */
import { delegableScopes } from '../config.ts'
import { Failure } from '../failure.ts'
import type { Permission } from './permissions.ts'

export interface Delegation {
  clientId: string
  /** The id of the person's approval, shared by all its access tokens. */
  grantId: string
  /** The approved scope. */
  scope: readonly string[]
  /** The part of the scope that the person's roles allow. */
  permissions: readonly Permission[]
  /** The resources it is valid for (RFC 8707); empty for all. */
  resources: readonly string[]
  /** The person's teams. */
  teamIds: readonly string[]
}

/** Throws `invalid_api_token` for an access token of other resources (RFC 8707 section 2). */
export function requireAudience({ resources }: Pick<Delegation, 'resources'>, resource: string): void {
  if (resources.length === 0 || resources.includes(resource)) return
  throw new Failure('invalid_api_token', { message: 'The access token was given for another resource' })
}

/**
 * The refusal of a delegated call that needs `permission`. When the scope lacks it, the application can request it and
 * is told so (RFC 6750 section 3.1). When the person lacks it, no scope helps. A permission that no application may
 * have is not named as a scope, because a request for it would be refused as a whole.
 */
export const notDelegated = ({ scope }: Pick<Delegation, 'scope'>, permission: Permission): Failure =>
  scope.includes(permission)
    ? new Failure('permission_denied', { message: `The person lacks the permission ${permission}` })
    : new Failure('insufficient_scope', {
        message: `The access token was not given the scope ${permission}`,
        extra: delegableScopes.some((scope) => scope === permission) ? { scope: permission } : {},
      })
