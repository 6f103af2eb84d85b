/**
 * What an event is (events/README.md). An event's body is the exact JSON text that was written, shipped, chained and
 * stored; the ledger's columns are read from it and never the other way round.
 */
import { z } from 'zod'

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

export const eventTypes = [
  'gateway.request.outcome',
  'gateway.provider.attempt',
  'gateway.checkpoint_regressed',
  'gateway.instance_replaced',
  'decision',
  'token.created',
  'token.updated',
  'token.rotated',
  'token.cloned',
  'token.revoked',
  'token.emergency_revoked',
  'token.exhausted',
  'policy.created',
  'policy.updated',
  'policy.deleted',
  'policy.ordered',
  'escalation.queued',
  'escalation.claimed',
  'escalation.unclaimed',
  'escalation.resolved',
  'escalation.expired',
  'usage.lease_lost',
  'usage.released',
  'usage.bound_exceeded',
  'usage.excess_forgotten',
  'usage.claim_refused',
  'catalog.created',
  'catalog.updated',
  'catalog.deleted',
  'mcp.offer_approved',
  'mcp.offer_changed',
  'mcp.offer_withdrawn',
  'member.created',
  'member.updated',
  'member.team_created',
  'member.team_updated',
  'member.team_deleted',
  'member.joined',
  'member.left',
  'auth.signed_in',
  'auth.signed_out',
  'auth.refused',
  'auth.program_approved',
  'auth.session_started',
  'auth.session_ended',
  'auth.code_exchanged',
  'auth.code_replayed',
  'oauth.client_created',
  'oauth.client_updated',
  'oauth.client_deactivated',
  'oauth.client_activated',
  'oauth.authorized',
  'oauth.denied',
  'oauth.token_issued',
  'oauth.token_refreshed',
  'oauth.token_revoked',
  'oauth.replay_detected',
  'export.created',
  'export.completed',
  'export.failed',
  'export.expired',
  'fleet.enrolled',
  'fleet.event_quarantined',
] as const
export type EventType = (typeof eventTypes)[number]

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
