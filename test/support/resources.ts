import type { Resource } from '../../src/api/resource.ts'
import { mcpServerResource } from '../../src/mcp/catalog/server-resource.ts'
import { userResource } from '../../src/members/people/user-resource.ts'
import { teamResource } from '../../src/members/teams/team-resource.ts'
import { clientResource } from '../../src/oauth/clients/client-resource.ts'
import { gatewayResource } from '../../src/providers/catalog/gateway-resource.ts'
import { modelResource } from '../../src/providers/catalog/model-resource.ts'
import { providerResource } from '../../src/providers/provider-resource.ts'
import { accessPolicyResource } from '../../src/usage/api/access-policy-resource.ts'
import { budgetResource } from '../../src/usage/api/budget-resource.ts'
import { consumerGroupResource } from '../../src/usage/api/consumer-group-resource.ts'

/** Every kind of record that has a description. */
export const resources: readonly Resource[] = [
  providerResource,
  modelResource,
  gatewayResource,
  mcpServerResource,
  budgetResource,
  consumerGroupResource,
  accessPolicyResource,
  teamResource,
  userResource,
  clientResource,
]
