/** The gateway's routes in `/v1/openapi.json`: one for each dialect, and model discovery. */
import { z } from 'zod'
import type { GatewayRouteDescription } from '../../api/openapi/gateway-routes.ts'
import { families, isPosted, modelFamilies, type PostedFamily } from '../../languages/families.ts'
import { geminiModelsPath } from '../../languages/gemini/request-form.ts'
import { countTokensPath } from '../../languages/messages/count-tokens.ts'
import { catalogPath, serverCardPath } from '../../mcp/server-card.ts'
import { protectedResourcePath } from '../../oauth/metadata/protected-resource.ts'
import { agentRouteDescriptions } from './agent-routes.ts'
import { batchRouteDescriptions } from './batch-routes.ts'
import { geminiStream, geminiTokenCount } from './gemini-schemas.ts'
import { familySchemas, tokenCount } from './route-schemas.ts'
import { storedRouteDescriptions } from './stored-routes.ts'
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

const posted = (family: PostedFamily | 'mcp'): GatewayRouteDescription => {
  const { path, permission, policyStages } = families[family]
  return { method: 'POST', path, family, permission, policyStages, ...familySchemas[family] }
}

const geminiModelReply = z.object({
  name: z.string().describe('models/ and the id'),
  displayName: z.string(),
  supportedGenerationMethods: z.array(z.string()),
})

const countFailures = [400, 401, 402, 403, 404, 405, 408, 413, 415, 422, 429, 501, 502, 503]
const modelListFailures = [400, 401, 402, 403, 404, 405, 503]
const sessionFailures = [400, 401, 402, 403, 404, 405, 406, 503]

const resourceReply = z.object({
  resource: z.string(),
  authorization_servers: z.array(z.string()),
  scopes_supported: z.array(z.string()),
  bearer_methods_supported: z.array(z.string()),
})

const cardReply = z.object({
  $schema: z.string(),
  name: z.string(),
  version: z.string(),
  title: z.string(),
  description: z.string(),
  remotes: z.array(z.looseObject({ type: z.string(), url: z.string() })),
})

const catalogReply = z.object({
  specVersion: z.string(),
  entries: z.array(z.object({ identifier: z.string(), type: z.string(), url: z.string() })),
})

const ofProcess = { method: 'GET', permission: null, policyStages: [], failures: [503] } as const

/** What a process answers about itself. The last three are of the MCP surface, which the control plane does not have. */
const aboutItself: readonly GatewayRouteDescription[] = [
  { ...ofProcess, path: '/healthz', summary: 'Says whether the process is alive' },
  { ...ofProcess, path: '/readyz', summary: 'Says whether the process is ready, and what is missing' },
  { ...ofProcess, path: '/metrics', summary: 'Returns the metrics of the process, for Prometheus' },
  { ...ofProcess, path: '/v1/openapi.json', summary: 'This document' },
  {
    ...ofProcess,
    path: protectedResourcePath,
    summary: 'The gateway as a protected resource (RFC 9728)',
    reply: resourceReply,
  },
  {
    ...ofProcess,
    path: `${protectedResourcePath}/mcp`,
    summary: 'The MCP surface as a protected resource (RFC 9728)',
    reply: resourceReply,
  },
  { ...ofProcess, path: serverCardPath, summary: 'The MCP surface as a server card (SEP-2127)', reply: cardReply },
  { ...ofProcess, path: catalogPath, summary: 'The AI catalog that leads to the server card', reply: catalogReply },
]

const { permission, policyStages } = families.gemini
const ofGemini = { permission, errors: 'google', takesApiKey: 'x-goog-api-key' } as const

/** The routes of Gemini's language beside that of its row. */
const geminiRouteDescriptions: readonly GatewayRouteDescription[] = [
  {
    ...geminiStream,
    ...ofGemini,
    policyStages,
    method: 'POST',
    path: `${geminiModelsPath}/{model}:streamGenerateContent`,
    family: 'gemini',
  },
  {
    ...geminiTokenCount,
    ...ofGemini,
    policyStages,
    method: 'POST',
    path: `${geminiModelsPath}/{model}:countTokens`,
    family: 'count_tokens',
    failures: countFailures,
  },
  {
    ...ofGemini,
    policyStages: [],
    method: 'GET',
    path: geminiModelsPath,
    family: 'models',
    summary: "Lists the models that this token may use, in Google's form",
    reply: z.object({ models: z.array(geminiModelReply) }),
    failures: modelListFailures,
  },
  {
    ...ofGemini,
    policyStages: [],
    method: 'GET',
    path: `${geminiModelsPath}/{model}`,
    family: 'models',
    summary: "Reads one model that this token may use, in Google's form; its id may contain slashes",
    reply: geminiModelReply,
    failures: modelListFailures,
  },
]

export const gatewayRouteDescriptions: readonly GatewayRouteDescription[] = [
  ...modelFamilies.filter(isPosted).map(posted),
  ...storedRouteDescriptions,
  ...batchRouteDescriptions,
  {
    method: 'POST',
    path: countTokensPath,
    family: 'count_tokens',
    permission: families.messages.permission,
    policyStages: families.messages.policyStages,
    failures: countFailures,
    ...tokenCount,
  },
  {
    method: 'GET',
    path: '/v1/models',
    family: 'models',
    summary: "Lists the models that this token may use; in Anthropic's form for a request with anthropic-version",
    permission: 'gateway:invoke',
    policyStages: [],
    reply: modelPageReply,
    failures: modelListFailures,
    takesApiKey: 'x-api-key',
  },
  {
    method: 'GET',
    path: '/v1/models/{model_id}',
    family: 'models',
    summary: 'Reads one model that this token may use; its id may contain slashes',
    permission: 'gateway:invoke',
    policyStages: [],
    reply: modelReply,
    failures: modelListFailures,
    takesApiKey: 'x-api-key',
  },
  ...geminiRouteDescriptions,
  ...agentRouteDescriptions,
  posted('mcp'),
  {
    method: 'GET',
    path: families.mcp.path,
    family: 'mcp',
    summary: 'Opens the stream of messages that the MCP surface sends on its own',
    permission: families.mcp.permission,
    policyStages: [],
    alsoAnswers: ['text/event-stream'],
    failures: sessionFailures,
    errors: 'json-rpc',
  },
  {
    method: 'DELETE',
    path: '/mcp',
    family: 'mcp',
    summary: 'Ends the session',
    permission: 'mcp:invoke',
    policyStages: [],
    otherSuccess: { 200: 'The session has ended' },
    failures: sessionFailures,
    errors: 'json-rpc',
  },
  ...socketRouteDescriptions,
  ...aboutItself,
]
