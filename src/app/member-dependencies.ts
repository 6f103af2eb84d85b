/** What the routes and the background work of people need, connected; it loads the relying party of OpenID Connect. */
import type { MemberDependencies } from '../members/dependencies.ts'
import { createRelyingParty } from '../members/identity-providers/relying-party.ts'
import { delegationsOf } from '../oauth/follow-person.ts'
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
  delegations: delegationsOf(oauth),
  addressOf: (request) => callers.get(request) ?? 'unknown',
  relyingParty: createRelyingParty({ clock: shared.clock, fetch }),
})
