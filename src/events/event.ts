/**
 * What an event is (events/README.md). The log stores the exact JSON text of its record, which was written, shipped and
 * chained.
 */
import { z } from 'zod'
import { eventTypes } from './event-types.ts'

export const verdicts = [
  'allow',
  'block',
  'deny',
  'redact',
  'rewrite',
  'escalate',
  'approval_required',
  'pending',
  'rate_limit',
  'error',
] as const
export type Verdict = (typeof verdicts)[number]

/** The verdicts of requests that were answered: every other ended with a refusal or an error. */
export const answeredVerdicts: readonly Verdict[] = ['allow', 'redact', 'rewrite']

/** The only types a gateway may post for its worker (fleet/README.md, Trust). */
export const isGatewayEventType = (type: string): boolean =>
  type.startsWith('gateway.') || type === 'decision' || type.startsWith('auth.')

export const attributionSchema = z.object({
  token_id: z.string().nullable(),
  team_id: z.string().nullable(),
  user_id: z.string().nullable(),
  gateway_id: z.string().nullable(),
  oauth_client_id: z.string().nullable(),
  session_id: z.string().nullable(),
  key_class: z.string().nullable(),
  workload_identity_id: z.string().optional().describe('The workload identity of a caller with a JWT'),
  workload_subject: z.string().optional().describe('The `sub` of that JWT'),
  client: z.string().optional().describe('The known client that sent it, such as claude-code'),
  dimensions: z
    .record(z.string(), z.string())
    .optional()
    .describe('Values of the dimensions that the organization declares, such as customer'),
})

export const costAttributionSchema = z.object({
  currency: z.literal('USD'),
  cost: z.number().nullable().describe('Null where the model has no price'),
  estimated: z.boolean().describe('Whether the counts are estimates, because the provider reported none'),
  input_tokens: z.number().int().nullable(),
  output_tokens: z.number().int().nullable(),
  cached_input_tokens: z.number().int().nullable(),
  reasoning_tokens: z.number().int().nullable(),
  provider: z.string(),
  model: z.string(),
  price_source: z.string().nullable(),
  spend_owner: z.string().nullable(),
})

export const settlementSchema = z.object({ account: z.string(), amount: z.number().int().min(0) })

export const eventSchema = z.object({
  event_id: z.uuid(),
  event_type: z.enum(eventTypes),
  request_id: z.string().nullable(),
  timestamp: z.iso.datetime(),
  verdict: z.enum(verdicts),
  reason_code: z.string(),
  config_version: z.number().int(),
  event_attribution: attributionSchema,
  exchange_id: z
    .uuid()
    .optional()
    .describe("The gateway's own id of the request; request_id is the caller's and may repeat"),
  trace_id: z
    .string()
    .optional()
    .describe("The trace of the caller's traceparent, or that the gateway began where it exports traces"),
  config_id: z
    .string()
    .optional()
    .describe(
      'Which config_version this is: the event id of the change that made it. Restored installations count anew',
    ),
  environment: z.string().optional().describe('What whoever recorded it is set to call itself: `environment`'),
  details: z.record(z.string(), z.unknown()).optional(),
  metadata: z.record(z.string(), z.string()).optional(),
  prompt_redacted: z.string().optional(),
  prompt_hash: z.string().optional().describe("A keyed hash of the request's bytes"),
  event_cost_attribution: costAttributionSchema.optional(),
  settlements: z
    .array(settlementSchema)
    .optional()
    .describe('What the exchange used of each limit: requests, or nano-dollars'),
})

export type Event = z.infer<typeof eventSchema>
export type Attribution = z.infer<typeof attributionSchema>
export type CostAttribution = z.infer<typeof costAttributionSchema>

export const noAttribution: Attribution = {
  token_id: null,
  team_id: null,
  user_id: null,
  gateway_id: null,
  oauth_client_id: null,
  session_id: null,
  key_class: null,
}

/** The value of a dimension of attribution; null without one. */
export function valueOfDimension({ event_attribution: { dimensions } }: Event, name: string): string | null {
  return dimensions !== undefined && Object.hasOwn(dimensions, name) ? (dimensions[name] ?? null) : null
}

/**
 * The model that sums count an event under; null without one. Of a call to an MCP server that cost something it is the
 * tool. Without a provider the model's name is the caller's own text.
 */
export function reportedModel({ details, event_cost_attribution: cost }: Event): string | null {
  if (typeof details?.model === 'string' && details.provider !== null) return details.model
  return cost !== undefined && typeof details?.server === 'string' && typeof details.tool === 'string'
    ? details.tool
    : null
}

/** The provider that sums count an event under: `mcp:NAME` is an MCP server whose call cost something. */
export function reportedProvider({ details, event_cost_attribution: cost }: Event): string | null {
  if (typeof details?.provider === 'string') return details.provider
  if (cost === undefined) return null
  return typeof details?.server === 'string' ? `mcp:${details.server}` : cost.provider || null
}

/** Milliseconds that a request or a call of a provider took; a decision's `latency_ms` is that of its policy. */
export const latencyOf = ({ event_type: type, details }: Event): unknown =>
  type === 'decision' ? undefined : details?.latency_ms
