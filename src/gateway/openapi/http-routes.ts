/** The gateway's routes as `/v1/openapi.json` shows them: one for each dialect, and model discovery. */
import { z } from 'zod'
import type { GatewayRouteDescription } from '../../api/openapi/gateway-routes.ts'
import { dialects } from '../../languages/index.ts'
import { mcp } from '../../languages/mcp/dialect.ts'
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

const inference: readonly GatewayRouteDescription[] = dialects.map(({ family, route, policyStages }) => ({
  method: 'POST',
  path: route.slice(route.indexOf(' ') + 1),
  family,
  permission: 'gateway:invoke',
  policyStages,
  ...familySchemas[family],
}))

export const gatewayRouteDescriptions: readonly GatewayRouteDescription[] = [
  ...inference,
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
  {
    method: 'POST',
    path: '/mcp',
    family: 'mcp',
    permission: 'mcp:invoke',
    policyStages: mcp.policyStages,
    ...familySchemas.mcp,
  },
  {
    method: 'GET',
    path: '/mcp',
    family: 'mcp',
    summary: 'Open the stream of what the MCP surface says by itself; DELETE ends the session',
    permission: 'mcp:invoke',
    policyStages: [],
    alsoAnswers: ['text/event-stream'],
  },
  ...socketRouteDescriptions,
]
