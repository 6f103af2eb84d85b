/**
 * What the routes and the background work of people and of their connections need, connected; it loads the relying
 * party of OpenID Connect.
 */
import type { ConnectionDependencies } from '../connections/dependencies.ts'
import { endConnectionsOf } from '../connections/stored-connection.ts'
import type { Delegations, MemberDependencies } from '../members/dependencies.ts'
import { createRelyingParty } from '../members/identity-providers/relying-party.ts'
import { delegationsOf } from '../oauth/follow-person.ts'
import { resolveHost } from '../policies/resolve-host.ts'
import type { Parts } from './control-plane-parts.ts'

export const memberDependencies = ({
  shared,
  settings,
  workers,
  callers,
  oauth,
}: Pick<Parts, 'shared' | 'settings' | 'workers' | 'callers' | 'oauth'>): MemberDependencies => ({
  ...shared,
  fleet: workers.fleet,
  settings,
  baseUrl: oauth.baseUrl,
  consoleUrl: oauth.consoleUrl,
  delegations: delegationsAndConnections(oauth),
  addressOf: (request) => callers.get(request) ?? 'unknown',
  relyingParty: createRelyingParty({ clock: shared.clock, fetch }),
})

/** A disabled person loses connections too; the next round of `housekeeping.ts` revokes their tokens elsewhere. */
function delegationsAndConnections(oauth: Parts['oauth']): Delegations {
  const delegations = delegationsOf(oauth)
  return {
    ...delegations,
    mark: (userId, now, disabled = false) => [
      ...delegations.mark(userId, now, disabled),
      ...(disabled ? [endConnectionsOf(userId, now)] : []),
    ],
  }
}

export const connectionDependencies = ({
  shared,
  settings,
  oauth,
}: Pick<Parts, 'shared' | 'settings' | 'oauth'>): ConnectionDependencies => ({
  ...shared,
  settings,
  fetch,
  resolve: resolveHost,
  baseUrl: oauth.baseUrl,
  consoleUrl: oauth.consoleUrl,
})
