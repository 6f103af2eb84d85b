/**
 * Every type of event, once: its name, and what its `details` hold. The type `EventType`, the API description and the
 * handbook's reference follow from this table. Longer than most files: it is one table. A gateway may post the types that begin
 * with `gateway.` or `auth.`, and `decision` (`isGatewayEventType`).
 *
 * The schemas describe and do not validate: an event is shown as it was written, by whatever version wrote it, and
 * `details.trimmed` says where the space set aside for one was too small for all of it. They are made when the
 * description is asked for: no start needs them. Longer than most, because it is one table.
 */
import { z } from 'zod'

const milliseconds = z.number().int().min(0).nullable()
const trimmed = z.literal(true).optional().describe('Something was left out because there was no room for it')
const actor = z.string().optional().describe('Who did it: a token, a session or a part of the control plane, by name')
const anId = z.string().optional()
const nothingAsked = z.string().nullable()

const changes = z.record(z.string(), z.unknown()).optional().describe('Each field with what it was and what it is')

/** Schemas that details share with the rest of an event. */
interface SharedSchemas {
  policyResult: z.ZodObject
}

/** Types whose details are alike; `name` is the schema's name in the API description. */
const group = <const Type extends string>(
  name: string,
  types: readonly [Type, ...Type[]],
  details: (shared: SharedSchemas) => z.ZodObject,
) => ({ name, types, details })

export const eventGroups = [
  group('RequestOutcome', ['gateway.request.outcome'], ({ policyResult }) =>
    z.looseObject({
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
      called_tools: z
        .array(z.string())
        .optional()
        .describe('In a session: the tools that the model called last, whose results the request brings'),
      notes: z.array(z.string()).optional().describe('What the gateway did to the request beside its verdicts'),
      max_output_tokens: z.number().int().optional().describe('To what the output limit was lowered'),
      limit: z
        .object({
          kind: z.enum([
            'max_budget',
            'max_requests',
            'budget',
            'consumer_group',
            'access_policy',
            'mcp_server',
            'rate_limit',
          ]),
          id: z.string().describe('Of the budget, group or policy, or of the token whose limit it is'),
          name: z.string().nullable(),
          scope: z
            .object({
              kind: z.enum(['organization', 'team', 'user', 'token', 'mcp_server']),
              id: z.string().nullable(),
            })
            .optional()
            .describe('Of a budget: whose spend it bounds'),
          unit: z.enum(['usd', 'requests', 'tokens']),
          limit: z.number().nullable().describe('How much it allows; of a rate in a minute'),
          left: z.number().nullable(),
          resets_at: z.iso.datetime().nullable(),
        })
        .optional()
        .describe('The limit that refused the request'),
      cache: z
        .enum(['hit', 'miss', 'bypass'])
        .optional()
        .describe('Whether the answer came from the cache; bypass: the caller asked for a new one'),
      cache_saved: z.number().optional().describe('By how many US dollars the answer from the cache was cheaper'),
      bound_exceeded: z
        .object({ provider_id: z.string(), model: z.string(), excess: z.number() })
        .optional()
        .describe('By how many US dollars the provider charged more than the request could cost by its list price'),
      made: z
        .object({ kind: z.enum(['file', 'batch']), owner: z.string(), place: z.array(z.string()) })
        .optional()
        .describe('The file or batch that the request made, as its sealed id says where it is'),
      batch: z
        .object({ id: z.string(), provider_id: z.string(), family: z.string(), lines: z.number().int() })
        .optional()
        .describe('The batch that the request made: it holds the most that it can cost until `usage.batch_settled`'),
      trimmed,
    }),
  ),
  group('ShadowOutcome', ['gateway.shadow.outcome'], ({ policyResult }) =>
    z.looseObject({
      route: z.string(),
      model: nothingAsked.describe('As the caller named it'),
      provider: nothingAsked.describe('Of the shadow target'),
      status: z.number().int().nullable(),
      latency_ms: milliseconds,
      first_token_ms: milliseconds,
      stream: z.boolean(),
      answer_characters: z.number().int().min(0).describe('Of generated text'),
      policy_results: z.array(policyResult).optional().describe('What policies would have done to the answer'),
      compared: z
        .object({
          exchange_id: z.string(),
          provider: z.string().nullable(),
          model: z.string().nullable().describe("The provider's own name of it"),
          verdict: z.string(),
          latency_ms: z.number().int(),
          first_token_ms: milliseconds,
          answer_characters: z.number().int(),
          output_tokens: z.number().int().nullable(),
          cost: z.number().nullable().describe('US dollars'),
        })
        .describe('The answer that the caller got'),
      trimmed,
    }),
  ),
  group('ProviderAttempt', ['gateway.provider.attempt'], () =>
    z.looseObject({
      provider: z.string(),
      model: z.string().describe("The provider's own name of it"),
      attempt: z.number().int().min(1),
      status: z.number().int().nullable(),
      start_ms: z.number().optional().describe('From the arrival of the request to the call'),
      latency_ms: milliseconds,
      first_byte_ms: milliseconds.describe("From the call to its answer's headers"),
      trimmed,
    }),
  ),
  group('PolicyDecision', ['decision'], ({ policyResult }) =>
    policyResult.extend({
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
          calls: z
            .array(z.looseObject({ tool: z.string(), arguments: z.string().nullable() }))
            .optional()
            .describe(
              'The tools whose call waits; arguments without personal data and secrets, where they are captured: for callers with escalations:read and sinks, null for others',
            ),
          answer: z
            .string()
            .optional()
            .describe(
              'The text of the answer that waits, where it is captured: for callers with escalations:read and sinks only',
            ),
        })
        .optional(),
      trimmed,
    }),
  ),
  group(
    'TokenEvent',
    [
      'token.created',
      'token.updated',
      'token.rotated',
      'token.cloned',
      'token.revoked',
      'token.emergency_revoked',
      'token.exhausted',
    ],
    () =>
      z.looseObject({
        token_id: anId,
        name: z.string().optional(),
        source_token_id: anId,
        rotated_to_id: anId,
        explanation: z.string().optional(),
        limit: z.enum(['max_budget', 'max_requests']).optional().describe('The limit that is used up'),
        param: z.string().nullish().describe('The field for which it was refused'),
        actor,
      }),
  ),
  group('PolicyEvent', ['policy.created', 'policy.updated', 'policy.deleted', 'policy.ordered'], () =>
    z.looseObject({ policy_id: anId, name: z.string().optional(), kind: z.unknown().optional(), actor }),
  ),
  group(
    'EscalationEvent',
    [
      'escalation.queued',
      'escalation.claimed',
      'escalation.unclaimed',
      'escalation.decided',
      'escalation.undone',
      'escalation.resolved',
      'escalation.expired',
    ],
    () =>
      z.looseObject({
        escalation_id: anId,
        policy_id: anId,
        resolution: z.enum(['allow', 'block']).optional(),
        note: z.string().nullish(),
        actor,
      }),
  ),
  group(
    'UsageEvent',
    [
      'usage.lease_lost',
      'usage.released',
      'usage.bound_exceeded',
      'usage.excess_forgotten',
      'usage.claim_refused',
      'usage.batch_settled',
    ],
    () =>
      z.looseObject({
        worker: z.string().optional(),
        account: z.string().optional(),
        provider_id: anId,
        model: z.string().optional().describe("The provider's name of the model"),
        excess: z.number().optional().describe('US dollars that the provider charged beyond the bound of a request'),
        hold: anId.describe('The exchange that made the batch'),
        status: z.string().optional().describe('How the batch ended'),
        requests: z.number().int().optional().describe('Lines of the batch that the provider answered'),
        returned: z
          .array(z.object({ account: z.string(), amount: z.number().int() }))
          .optional()
          .describe('What the batch gave back to each limit: requests, or nano-dollars'),
        actor,
      }),
  ),
  group(
    'CatalogEvent',
    ['catalog.created', 'catalog.updated', 'catalog.deleted', 'catalog.tested', 'catalog.cache_cleared'],
    () =>
      z.looseObject({
        kind: z.string().optional(),
        id: anId,
        provider_id: anId,
        model_id: anId,
        gateway_id: anId,
        mcp_server_id: anId,
        name: z.string().optional(),
        actor,
      }),
  ),
  group(
    'AlertEvent',
    [
      'alert.created',
      'alert.updated',
      'alert.deleted',
      'alert.fired',
      'alert.resolved',
      'alert.channel_created',
      'alert.channel_updated',
      'alert.channel_deleted',
    ],
    () =>
      z.looseObject({
        alert_id: anId,
        alert_channel_id: anId,
        name: z.string().optional(),
        kind: z.string().optional().describe('The condition of the alert, or the kind of the channel'),
        firing_id: anId,
        subject: z.string().optional().describe('What it is about'),
        value: z.number().optional().describe('In the unit of the condition'),
        threshold: z.number().optional(),
        severity: z.string().optional(),
        about: z.string().optional().describe('What was found, in words'),
        fields: z.array(z.string()).optional().describe('What was changed'),
        actor,
      }),
  ),
  group(
    'WorkloadEvent',
    ['workload.created', 'workload.updated', 'workload.deleted', 'workload.revoked', 'workload.keys_changed'],
    () =>
      z.looseObject({
        workload_identity_id: z.string(),
        name: z.string(),
        acts_as: anId.describe('The token that its callers act as'),
        revoked: z.string().optional().describe('subject or jwt_id'),
        value: z.string().optional().describe('The subject or the id that is revoked or allowed again'),
        actor,
      }),
  ),
  group(
    'McpOfferEvent',
    ['mcp.offer_approved', 'mcp.offer_changed', 'mcp.offer_dismissed', 'mcp.offer_withdrawn'],
    () =>
      z.looseObject({
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
  ),
  group(
    'McpConnectionEvent',
    ['mcp_connection.created', 'mcp_connection.ended', 'mcp_connection.lost', 'mcp_connection.refused'],
    () =>
      z.looseObject({
        mcp_server_id: z.string(),
        server: z.string().describe('Its name'),
        user_id: z.string().describe('Whose account'),
        issuer: z.string().optional().describe('The authorization server of the account'),
        scope: z.string().optional(),
        fault: z.string().optional().describe('Why there is no connection'),
        actor,
      }),
  ),
  group(
    'MemberEvent',
    [
      'member.created',
      'member.updated',
      'member.team_created',
      'member.team_updated',
      'member.team_deleted',
      'member.joined',
      'member.left',
    ],
    () => z.looseObject({ user_id: anId, team_id: anId, role: z.string().optional(), changes, actor }),
  ),
  group(
    'IdentityProviderEvent',
    [
      'identity_provider.created',
      'identity_provider.updated',
      'identity_provider.deleted',
      'identity_provider.scim_token_created',
      'identity_provider.scim_token_revoked',
    ],
    () =>
      z.looseObject({
        identity_provider_id: z.string(),
        issuer: z.string(),
        fields: z.array(z.string()).optional().describe('What was changed'),
        scim_token_id: anId,
        actor,
      }),
  ),
  group(
    'SignInEvent',
    [
      'auth.signed_in',
      'auth.signed_out',
      'auth.refused',
      'auth.program_approved',
      'auth.session_started',
      'auth.session_ended',
      'auth.identity_linked',
      'auth.identity_lost',
      'auth.code_exchanged',
      'auth.code_replayed',
    ],
    () =>
      z.looseObject({
        user_id: z.string().nullish(),
        address: z.string().optional().describe('Where the attempt came from'),
        program: z.string().optional(),
        identity_provider_id: anId.describe('Where the person signed in, or tried to'),
        permission: z.string().optional().describe('What was missing'),
        route: z.string().optional(),
        actor,
      }),
  ),
  group(
    'OauthEvent',
    [
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
    () => z.looseObject({ client_id: anId, user_id: anId, scope: z.string().optional(), actor }),
  ),
  group('ExportEvent', ['export.created', 'export.completed', 'export.failed', 'export.expired'], () =>
    z.looseObject({
      job_id: z.string(),
      format: z.string().optional(),
      events: z.number().int().optional(),
      bytes: z.number().int().optional(),
      first_event_at: z.string().nullable().optional().describe('What was before it, retention has removed'),
      actor,
    }),
  ),
  group(
    'SinkEvent',
    [
      'sink.created',
      'sink.updated',
      'sink.deleted',
      'sink.tested',
      'sink.failing',
      'sink.recovered',
      'sink.record_refused',
      'sink.records_lost',
    ],
    () =>
      z.looseObject({
        sink_id: z.string(),
        name: z.string(),
        kind: z.string().optional(),
        url: z.string().optional(),
        fields: z.array(z.string()).optional().describe('What was changed'),
        failures: z.number().int().optional().describe('Tries in a row that failed'),
        error: z.string().nullish(),
        event_id: anId.describe('The event that the receiver refused'),
        chain: z.string().optional(),
        position: z.number().int().optional().describe('Of the refused record in the log'),
        first_position: z.number().int().optional().describe('Of the first record that is lost for the sink'),
        records: z.number().int().optional().describe('How many retention removed before the sink had them'),
        actor,
      }),
  ),
  group(
    'FleetEvent',
    ['fleet.enrolled', 'fleet.event_quarantined', 'gateway.checkpoint_regressed', 'gateway.instance_replaced'],
    () =>
      z.looseObject({
        instance_id: anId,
        chain: z.string().optional().describe('The chain in which the bytes keep their place'),
        seq: z.number().int().optional(),
        bytes: z.number().int().optional(),
        actor,
      }),
  ),
  group('MasterKeyEvent', ['master_key.rotation_begun'], () => z.looseObject({ actor })),
]

export type EventType = (typeof eventGroups)[number]['types'][number]

export const eventTypes: readonly EventType[] = eventGroups.flatMap(({ types }) => types)
