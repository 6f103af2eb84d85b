/** The routes of stored responses and conversations in `/v1/openapi.json`, from their table. */
import { z } from 'zod'
import type { GatewayRouteDescription } from '../../api/openapi/gateway-routes.ts'
import { families } from '../../languages/families.ts'
import { compactPath } from '../../languages/responses/stored.ts'
import { conversationsPath, describedPath, type StoredRoute, storedRoutes } from '../stored/routes.ts'
import { familySchemas } from './route-schemas.ts'

const item = z.looseObject({ type: z.string().optional(), id: z.string().optional() })
const metadata = z.record(z.string(), z.string()).nullish()
const usage = z.looseObject({ input_tokens: z.number().int(), output_tokens: z.number().int() })

const conversationReply = z.looseObject({
  id: z.string().describe('A sealed id of the gateway: conv_…'),
  object: z.string().describe('conversation, or conversation.deleted'),
  created_at: z.number().optional(),
  metadata,
})
const pageReply = z.looseObject({
  object: z.literal('list'),
  data: z.array(item),
  first_id: z.string().nullish(),
  last_id: z.string().nullish(),
  has_more: z.boolean(),
})
const deletedReply = z.looseObject({ id: z.string(), object: z.string(), deleted: z.boolean() })

const failures = [400, 401, 402, 403, 404, 405, 408, 409, 413, 415, 422, 429, 499, 500, 501, 502, 503, 504]

function replyOf({ gives, answers, method, kind }: StoredRoute): z.ZodType {
  if (gives === 'conv') return conversationReply
  if (answers === 'item') return item
  if (gives === null) return pageReply
  return method === 'DELETE' && kind === 'resp' ? deletedReply : (familySchemas.responses.reply ?? item)
}

function requestOf({ path, body, kind }: StoredRoute): z.ZodType | null {
  if (body === 'none') return null
  if (path.endsWith('/items')) return z.looseObject({ items: z.array(item).describe('At most 20') })
  if (path !== conversationsPath || kind !== null) return z.looseObject({ metadata })
  const model = z.string().optional().describe('Names the provider that keeps the conversation; not forwarded')
  return z.looseObject({ model, items: z.array(item).nullish(), metadata })
}

function described(route: StoredRoute): GatewayRouteDescription {
  const { method, summary, query } = route
  const request = requestOf(route)
  return {
    method,
    path: describedPath(route),
    family: 'responses',
    summary,
    permission: families.responses.permission,
    policyStages: families.responses.policyStages,
    ...(Object.keys(query).length > 0 && { query: z.object(query) }),
    ...(request !== null && { request }),
    reply: replyOf(route),
    ...('stream' in query && { alsoAnswers: ['text/event-stream'] }),
    failures,
  }
}

export const storedRouteDescriptions: readonly GatewayRouteDescription[] = [
  {
    method: 'POST',
    path: compactPath,
    family: 'responses',
    summary: 'Asks the provider for fewer items that stand for a conversation; 501 where it cannot',
    permission: families.responses.permission,
    policyStages: families.responses.policyStages,
    ...(familySchemas.responses.request !== undefined && { request: familySchemas.responses.request }),
    reply: z.looseObject({ id: z.string(), object: z.literal('response.compaction'), output: z.array(item), usage }),
    failures,
  },
  ...storedRoutes.map(described),
]
