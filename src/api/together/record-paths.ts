/** The paths of records: of each kind that is searched or named, and of those that `POST /v1/together` changes. */
import type { Permission } from '../../identity/permissions.ts'

/** Where the records of each kind are listed; `/` and the id behind it is one of them. */
export const recordLists = {
  token: '/v1/tokens',
  policy: '/v1/policies',
  escalation: '/v1/escalations',
  team: '/v1/teams',
  user: '/v1/users',
  provider: '/v1/catalog/providers',
  model: '/v1/catalog/models',
  mcp_server: '/v1/catalog/mcp-servers',
  gateway: '/v1/gateways',
  budget: '/v1/budgets',
  consumer_group: '/v1/consumer-groups',
  access_policy: '/v1/access-policies',
  dimension: '/v1/attribution-dimensions',
  application: '/v1/oauth/clients',
} as const

/**
 * The records that `POST /v1/together` makes, changes and labels, with the permission to write them. What else the API
 * does, such as to make a token or to try a channel, cannot be undone, so it is no part of a list.
 */
export const recordPaths: Readonly<Record<string, Permission>> = {
  '/v1/access-policies': 'catalog:write',
  '/v1/alert-channels': 'catalog:write',
  '/v1/alerts': 'catalog:write',
  '/v1/attribution-dimensions': 'catalog:write',
  '/v1/budgets': 'catalog:write',
  '/v1/catalog/managed-settings': 'members:write',
  '/v1/catalog/mcp-servers': 'catalog:write',
  '/v1/catalog/models': 'catalog:write',
  '/v1/catalog/providers': 'catalog:write',
  '/v1/consumer-groups': 'catalog:write',
  '/v1/gateways': 'catalog:write',
  '/v1/identity-providers': 'members:write',
  '/v1/oauth/clients': 'oauth-clients:write',
  '/v1/policies': 'policies:write',
  '/v1/sinks': 'members:write',
  '/v1/teams': 'members:write',
  '/v1/users': 'members:write',
  '/v1/workload-identities': 'tokens:write',
}

/** Beside records themselves: who is in a team, and whether an application is active. */
const more: Readonly<Record<string, RegExp>> = {
  POST: /^(\/v1\/teams)\/[^/]+\/members$|^(\/v1\/oauth\/clients)\/[^/]+\/(?:activate|deactivate)$/,
  DELETE: /^(\/v1\/teams)\/[^/]+\/members\/[^/]+$/,
}

/** Whether a call makes, changes or deletes a record. */
export function isOfRecord({ method, path }: { method: string; path: string }): boolean {
  const kind = method === 'POST' ? path : path.slice(0, path.lastIndexOf('/'))
  // `..` would be another path than the one that was looked at.
  if (path.split('/').some((part) => /^(?:\.|%2e){1,2}$/i.test(part))) return false
  return Object.hasOwn(recordPaths, kind) || more[method]?.test(path) === true
}
