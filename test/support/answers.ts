/**
 * The product's answers as its documents promise them, written down here a second time on purpose: these tests look
 * from outside, and a schema taken from the product would agree with whatever the product does.
 */
import { z } from 'zod'

const instant = z.string().regex(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/)

export const errorAnswer = z.object({
  error: z.object({
    message: z.string().min(1),
    type: z.string(),
    param: z.string().nullable(),
    code: z.string(),
  }),
  request_id: z.string().min(1),
})

export const tokenRecord = z.looseObject({
  id: z.uuid(),
  name: z.string(),
  token_prefix: z.string().length(12),
  purpose: z.enum(['general', 'gateway_runtime', 'integration']),
  principal_type: z.enum(['api_token', 'gateway_runtime']),
  key_class: z.enum(['durable', 'virtual', 'disposable']),
  bindings: z.looseObject({
    gateway_id: z.string().nullish(),
    team_id: z.string().nullish(),
    provider: z.string().nullish(),
    model_filter: z.array(z.string()).nullish(),
  }),
  roles: z.array(z.string()),
  policies: z.array(z.unknown()),
  status: z.enum(['active', 'revoked', 'expired', 'rotated', 'budget_exhausted', 'request_exhausted']),
  expires_at: instant.nullable(),
  resource_id: z.string(),
  resource_vrn: z.string().startsWith('vrn:gatehouse:'),
  created_at: instant,
  last_used_at: instant.nullable(),
})
export type TokenRecord = z.infer<typeof tokenRecord>

export const createdToken = tokenRecord.extend({ token_value: z.string().regex(/^gth_[0-9A-Za-z]{36}$/) })
export type CreatedToken = z.infer<typeof createdToken>

export const tokenPage = z.object({ tokens: z.array(tokenRecord), next_cursor: z.string().nullable() })

export const propagation = z.object({
  connected: z.number().int(),
  acknowledged: z.number().int(),
  unreachable: z.array(z.object({ gateway_id: z.string(), instance_id: z.string(), until: instant })),
  effective_by: instant,
})

export const revokedToken = tokenRecord.extend({ propagation })

export const event = z.looseObject({
  event_id: z.uuid(),
  event_type: z.string(),
  request_id: z.string().nullable(),
  timestamp: instant,
  verdict: z.string(),
  reason_code: z.string(),
  config_version: z.number().int(),
  event_attribution: z.looseObject({
    token_id: z.string().nullable(),
    team_id: z.string().nullable(),
    gateway_id: z.string().nullable(),
  }),
  exchange_id: z.string().optional(),
  details: z.record(z.string(), z.unknown()).optional(),
  prompt_hash: z.string().optional(),
  event_cost_attribution: z
    .looseObject({
      estimated: z.boolean(),
      input_tokens: z.number().nullable(),
      output_tokens: z.number().nullable(),
      provider: z.string(),
      model: z.string(),
    })
    .optional(),
})
export type Event = z.infer<typeof event>

export const eventPage = z.object({ events: z.array(event), next_cursor: z.string().nullable() })

/** What `up --json` prints when it is ready. */
export const readyLine = z.object({
  ready: z.literal(true),
  base_url: z.url(),
  gateway_url: z.url(),
  console_url: z.url(),
  setup_url: z.string().nullish(),
  admin_token: z.string().nullish(),
})
export type ReadyLine = z.infer<typeof readyLine>
