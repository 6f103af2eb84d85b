/**
 * The gateway's routes as `/v1/openapi.json` shows them. The schemas describe and do not validate: unknown members are
 * forwarded untouched, and what a model accepts is its provider's to say.
 */
import { z } from 'zod'
import type { GatewayRouteDescription } from '../api/route.ts'
import { socketRouteDescriptions } from './socket-routes.ts'

const message = z.looseObject({
  role: z.string().describe('system, developer, user, assistant or tool'),
  content: z
    .union([z.string(), z.array(z.looseObject({ type: z.string() })), z.null()])
    .optional()
    .describe('Text, or parts of it'),
})

const chatRequest = z.looseObject({
  model: z.string().min(1).describe('A model id of GET /v1/models, or one that a provider of this gateway knows'),
  messages: z.array(message),
  stream: z.boolean().optional().describe('Answer as server-sent events, ended by `data: [DONE]`'),
})

const chatReply = z.looseObject({
  id: z.string(),
  object: z.string(),
  created: z.number().int(),
  model: z.string(),
  choices: z.array(
    z.looseObject({
      index: z.number().int(),
      message: z.looseObject({ role: z.string(), content: z.string().nullable() }),
      finish_reason: z.string().nullable(),
    }),
  ),
  usage: z
    .looseObject({
      prompt_tokens: z.number().int(),
      completion_tokens: z.number().int(),
      total_tokens: z.number().int(),
    })
    .optional(),
})

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

export const gatewayRouteDescriptions: readonly GatewayRouteDescription[] = [
  {
    method: 'POST',
    path: '/v1/chat/completions',
    family: 'chat',
    summary: 'Complete a chat, as JSON or as server-sent events',
    permission: 'gateway:invoke',
    policyStages: ['pre_request', 'post_request', 'pre_response'],
    request: chatRequest,
    reply: chatReply,
    alsoAnswers: ['text/event-stream'],
  },
  {
    method: 'GET',
    path: '/v1/models',
    family: 'models',
    summary: 'The models that this token may use',
    permission: 'gateway:invoke',
    policyStages: [],
    reply: modelPageReply,
  },
  {
    method: 'GET',
    path: '/v1/models/{model_id}',
    family: 'models',
    summary: 'One model that this token may use; its id may hold slashes',
    permission: 'gateway:invoke',
    policyStages: [],
    reply: modelReply,
  },
  ...socketRouteDescriptions,
]
