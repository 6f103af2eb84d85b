/** Every kind of record that files can hold, what others refer to first. */

import { managedSettingsResource } from '../../../../src/managed-settings/managed-settings-resource.ts'
import { teamResource } from '../../../../src/members/teams/team-resource.ts'
import { accessPolicyResource } from '../../../../src/usage/api/access-policy-resource.ts'
import { dimensionResource } from '../../../../src/usage/attribution/dimension-resource.ts'
import { type Kind, type KindAlone, kindOf } from '../kind.ts'
import { alertChannels } from './alert-channels.ts'
import { alerts } from './alerts.ts'
import { budgets } from './budgets.ts'
import { consumerGroups } from './consumer-groups.ts'
import { gateways } from './gateways.ts'
import { identityProviders } from './identity-providers.ts'
import { mcpServers } from './mcp-servers.ts'
import { models } from './models.ts'
import { oauthClients } from './oauth-clients.ts'
import { policies } from './policies.ts'
import { providers } from './providers.ts'
import { sinks } from './sinks.ts'
import { users } from './users.ts'
import { workloadIdentities } from './workload-identities.ts'

/** The team of records without an owner, which keeps its name and stays. */
const defaultTeam = 'default'

const teams = kindOf(teamResource, {
  remove: ({ name }, id) => (name === defaultTeam ? [] : [{ method: 'DELETE', path: `${teamResource.path}/${id}` }]),
})

const inOrder: readonly KindAlone[] = [
  teams,
  users,
  identityProviders,
  providers,
  models,
  gateways,
  kindOf(dimensionResource),
  kindOf(accessPolicyResource),
  mcpServers,
  budgets,
  consumerGroups,
  oauthClients,
  policies,
  kindOf(managedSettingsResource),
  workloadIdentities,
  sinks,
  alertChannels,
  alerts,
]

export const kinds: readonly Kind[] = inOrder.map((kind, order) => ({ ...kind, order }))
