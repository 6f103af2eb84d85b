/** The gateway's routes in `/v1/openapi.json`: one for each dialect, and model discovery. */
import { z } from 'zod'
import type { GatewayRouteDescription } from '../../api/openapi/gateway-routes.ts'
import { type Family, families, modelFamilies } from '../../languages/families.ts'
import { familySchemas } from './route-schemas.ts'
import { socketRouteDescriptions } from './websocket-routes.ts'

const modelReply = z.object({
  id: z.string(),
  object: z.literal('model'),
  created: z.number().int().describe('Seconds since the epoch'),
  owned_by: z.string().describe('The name of its provider'),
  type: z.literal('model'),
  display_name: z.string(),
  created_at: z.iso.datetime(),
})

const modelPageReply = z.object({
  object: z.literal('list'),
  data: z.array(modelReply),
  has_more: z.boolean(),
  first_id: z.string().nullable(),
  last_id: z.string().nullable(),
})

const posted = (family: Family): GatewayRouteDescription => {
  const { path, permission, policyStages } = families[family]
  return { method: 'POST', path, family, permission, policyStages, ...familySchemas[family] }
}

export const gatewayRouteDescriptions: readonly GatewayRouteDescription[] = [
  ...modelFamilies.map(posted),
  {
    method: 'GET',
    path: '/v1/models',
    family: 'models',
    summary: 'The models that this token may use',
    permission: 'gateway:invoke',
    policyStages: [],
    reply: modelPageReply,
    takesApiKey: true,
  },
  {
    method: 'GET',
    path: '/v1/models/{model_id}',
    family: 'models',
    summary: 'One model that this token may use; its id may hold slashes',
    permission: 'gateway:invoke',
    policyStages: [],
    reply: modelReply,
    takesApiKey: true,
  },
  posted('mcp'),
  {
    method: 'GET',
    path: families.mcp.path,
    family: 'mcp',
    summary: 'Open the stream of what the MCP surface says by itself; DELETE ends the session',
    permission: families.mcp.permission,
    policyStages: [],
    alsoAnswers: ['text/event-stream'],
  },
  ...socketRouteDescriptions,
]
