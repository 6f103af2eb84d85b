/**
 * Describes the details of each event type, for the API's description and its readers. It does not validate: an event
 * is shown as it was written, by whatever version, and `details.trimmed` says that it was cut to its reserved space.
 */
import { z } from 'zod'
import { attributionSchema, costAttributionSchema, type EventType, eventSchema, verdicts } from './event.ts'

const milliseconds = z.number().int().min(0).nullable()
const trimmed = z.literal(true).optional().describe('Something was left out because there was no room for it')
const actor = z.string().optional().describe('Who did it: a token, a session or a part of the control plane, by name')
const anId = z.string().optional()
const nothingAsked = z.string().nullable()

const policyResult = z
  .looseObject({
    policy_id: z.string(),
    kind: z.string(),
    stage: z.enum(['pre_request', 'post_request', 'pre_response']),
    mode: z.enum(['enforce', 'monitor']).describe('monitor: recorded and not applied'),
    verdict: z.enum(verdicts),
    reason_code: z.string(),
    latency_ms: z.number(),
    targets: z.array(z.string()).describe('Where something was found and what kind of thing, never the thing itself'),
  })
  .meta({ id: 'PolicyResult' })

const changes = z.record(z.string(), z.unknown()).optional().describe('Each field with what it was and what it is')

interface Described {
  /** The schema's name in the description. */
  name: string
  types: readonly [EventType, ...EventType[]]
  details: z.ZodObject
}

const groups = (): readonly Described[] => [
  {
    name: 'RequestOutcome',
    types: ['gateway.request.outcome'],
    details: z.looseObject({
      route: z.string().describe('`POST /v1/chat/completions`'),
      model: nothingAsked.describe('As the caller named it'),
      provider: nothingAsked.describe('Who answered, or was to'),
      status: z.number().int().nullable().describe("The answer's HTTP status; null where the caller left before"),
      latency_ms: milliseconds.describe('From the request to the end of its answer'),
      first_token_ms: milliseconds.describe('From the request to the first generated text'),
      attempts: z.number().int().min(0).describe('Calls to providers'),
      stream: z.boolean(),
      dispatched: z
        .literal(true)
        .optional()
        .describe('The request was sent on, so it counts towards the limits of its token'),
      policy_results: z.array(policyResult).optional(),
      notes: z.array(z.string()).optional().describe('What the gateway did to the request beside its verdicts'),
      max_output_tokens: z.number().int().optional().describe('To what the output limit was lowered'),
      bound_exceeded: z
        .object({ provider_id: z.string(), model: z.string(), excess: z.number() })
        .optional()
        .describe('By how many US dollars the provider charged more than the request could cost by its list price'),
      trimmed,
    }),
  },
  {
    name: 'ProviderAttempt',
    types: ['gateway.provider.attempt'],
    details: z.looseObject({
      provider: z.string(),
      model: z.string().describe("The provider's own name of it"),
      attempt: z.number().int().min(1),
      status: z.number().int().nullable(),
      latency_ms: milliseconds,
      first_byte_ms: milliseconds.describe("From the call to its answer's headers"),
      trimmed,
    }),
  },
  {
    name: 'PolicyDecision',
    types: ['decision'],
    details: policyResult.extend({
      escalation: z
        .looseObject({
          id: z.string(),
          policy_id: z.string(),
          policy_version: z.number().int(),
          digest: z.string().describe('A keyed digest of the request'),
          route: z.string(),
          family: z.string(),
          model: nothingAsked,
          provider: nothingAsked,
          sent: z.boolean().optional().describe('It had been sent, and its answer waits: leave sends it again'),
        })
        .optional(),
      trimmed,
    }),
  },
  {
    name: 'TokenEvent',
    types: [
      'token.created',
      'token.updated',
      'token.rotated',
      'token.cloned',
      'token.revoked',
      'token.emergency_revoked',
      'token.exhausted',
    ],
    details: z.looseObject({
      token_id: anId,
      name: z.string().optional(),
      source_token_id: anId,
      rotated_to_id: anId,
      explanation: z.string().optional(),
      limit: z.enum(['max_budget', 'max_requests']).optional().describe('The limit that is used up'),
      param: z.string().nullish().describe('The field for which it was refused'),
      actor,
    }),
  },
  {
    name: 'PolicyEvent',
    types: ['policy.created', 'policy.updated', 'policy.deleted', 'policy.ordered'],
    details: z.looseObject({ policy_id: anId, name: z.string().optional(), kind: z.unknown().optional(), actor }),
  },
  {
    name: 'EscalationEvent',
    types: [
      'escalation.queued',
      'escalation.claimed',
      'escalation.unclaimed',
      'escalation.resolved',
      'escalation.expired',
    ],
    details: z.looseObject({
      escalation_id: anId,
      policy_id: anId,
      resolution: z.enum(['allow', 'block']).optional(),
      note: z.string().nullish(),
      actor,
    }),
  },
  {
    name: 'UsageEvent',
    types: [
      'usage.lease_lost',
      'usage.released',
      'usage.bound_exceeded',
      'usage.excess_forgotten',
      'usage.claim_refused',
    ],
    details: z.looseObject({
      worker: z.string().optional(),
      account: z.string().optional(),
      provider_id: anId,
      model: z.string().optional().describe("The provider's name of the model"),
      excess: z.number().optional().describe('US dollars that the provider charged beyond the bound of a request'),
      actor,
    }),
  },
  {
    name: 'CatalogEvent',
    types: ['catalog.created', 'catalog.updated', 'catalog.deleted'],
    details: z.looseObject({
      kind: z.string().optional(),
      id: anId,
      provider_id: anId,
      model_id: anId,
      gateway_id: anId,
      mcp_server_id: anId,
      name: z.string().optional(),
      actor,
    }),
  },
  {
    name: 'McpOfferEvent',
    types: ['mcp.offer_approved', 'mcp.offer_changed', 'mcp.offer_withdrawn'],
    details: z.looseObject({
      mcp_server_id: z.string(),
      server: z.string().describe('Its name'),
      kind: z.string(),
      offers: z.array(
        z.object({
          name: z.string(),
          digest: z.string(),
          approved_digest: z.string().nullable(),
          misfit: z.string().optional().describe('Why it is never shown'),
        }),
      ),
      actor,
    }),
  },
  {
    name: 'MemberEvent',
    types: [
      'member.created',
      'member.updated',
      'member.team_created',
      'member.team_updated',
      'member.team_deleted',
      'member.joined',
      'member.left',
    ],
    details: z.looseObject({ user_id: anId, team_id: anId, role: z.string().optional(), changes, actor }),
  },
  {
    name: 'SignInEvent',
    types: [
      'auth.signed_in',
      'auth.signed_out',
      'auth.refused',
      'auth.program_approved',
      'auth.session_started',
      'auth.session_ended',
      'auth.code_exchanged',
      'auth.code_replayed',
    ],
    details: z.looseObject({
      user_id: z.string().nullish(),
      address: z.string().optional().describe('Where the attempt came from'),
      program: z.string().optional(),
      permission: z.string().optional().describe('What was missing'),
      route: z.string().optional(),
      actor,
    }),
  },
  {
    name: 'OauthEvent',
    types: [
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
    ],
    details: z.looseObject({ client_id: anId, user_id: anId, scope: z.string().optional(), actor }),
  },
  {
    name: 'ExportEvent',
    types: ['export.created', 'export.completed', 'export.failed', 'export.expired'],
    details: z.looseObject({
      job_id: z.string(),
      format: z.string().optional(),
      events: z.number().int().optional(),
      bytes: z.number().int().optional(),
      first_event_at: z.string().nullable().optional().describe('What was before it, retention has removed'),
      actor,
    }),
  },
  {
    name: 'FleetEvent',
    types: ['fleet.enrolled', 'fleet.event_quarantined', 'gateway.checkpoint_regressed', 'gateway.instance_replaced'],
    details: z.looseObject({
      instance_id: anId,
      chain: z.string().optional().describe('The chain in which the bytes keep their place'),
      seq: z.number().int().optional(),
      bytes: z.number().int().optional(),
      actor,
    }),
  },
]

const shared = {
  event_attribution: attributionSchema.meta({ id: 'EventAttribution' }),
  event_cost_attribution: costAttributionSchema.meta({ id: 'EventCostAttribution' }).optional(),
}

/** An event as the API answers it, each type with its details. Built on demand, so that no start pays for it. */
export const describedEventSchema = z.lazy(() =>
  z.union(
    groups().map(({ name, types, details }) =>
      eventSchema.extend({ ...shared, event_type: z.enum(types), details: details.optional() }).meta({ id: name }),
    ),
  ),
)

/** The described types. A test compares them with all types. */
export const describedTypes = (): readonly EventType[] => groups().flatMap(({ types }) => types)
