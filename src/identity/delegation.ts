/** What an OAuth access token adds to a token: through which application somebody acts, and how far that goes. */
import { delegableScopes } from '../config.ts'
import { Failure } from '../failure.ts'
import type { Permission } from './permissions.ts'

export interface Delegation {
  clientId: string
  /** What the person approved, whose access tokens follow each other. */
  grantId: string
  /** What the person agreed to. */
  scope: readonly string[]
  /** The part of it that the person holds. */
  permissions: readonly Permission[]
  /** Where alone it works (RFC 8707); empty for everywhere. */
  resources: readonly string[]
}

/** Throws `invalid_api_token` for a token that was given for other resources than this one (RFC 8707 section 2). */
export function requireAudience({ resources }: Pick<Delegation, 'resources'>, resource: string): void {
  if (resources.length === 0 || resources.includes(resource)) return
  throw new Failure('invalid_api_token', { message: 'The access token was given for another resource' })
}

/**
 * What refuses a delegated call that needs `permission`: where the scope lacks it, the application can ask for it, and
 * is told so (RFC 6750 section 3.1); where the person lacks it, no scope helps. A permission that no application can be
 * given is not named as a scope: whoever asked for it would be refused as a whole.
 */
export const notDelegated = ({ scope }: Pick<Delegation, 'scope'>, permission: Permission): Failure =>
  scope.includes(permission)
    ? new Failure('permission_denied', { message: `The person lacks the permission ${permission}` })
    : new Failure('insufficient_scope', {
        message: `The access token was not given the scope ${permission}`,
        extra: delegableScopes.some((scope) => scope === permission) ? { scope: permission } : {},
      })
