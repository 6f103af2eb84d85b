/**
 * A token as the API shows it (handbook/tokens.md), never with its secret. The status is computed for the time of
 * reading. Counts of depletion are null if nothing counts them.
 */
import { z } from 'zod'
import { keyClasses } from '../identity/key-class.ts'
import { roles } from '../identity/permissions.ts'
import { timestamp } from '../lib/clock.ts'
import { fromNano } from '../lib/money.ts'
import { principalTypes, purposes, tokenStatus } from './governed-token.ts'
import type { TokenDepletion } from './limits/depletion.ts'
import { tokenResourceName } from './organization.ts'
import type { StoredToken } from './stored-token.ts'

export const tokenStatuses = [
  'active',
  'revoked',
  'expired',
  'rotated',
  'budget_exhausted',
  'request_exhausted',
] as const

const instant = z.iso.datetime()
const amount = z.number().nullable()

export const tokenRecordSchema = z.object({
  id: z.uuid(),
  name: z.string(),
  token_prefix: z.string().describe('The first characters of the secret, to recognise it by'),
  purpose: z.enum(purposes),
  principal_type: z.enum(principalTypes),
  key_class: z.enum(keyClasses),
  bindings: z.object({
    gateway_id: z.uuid().optional(),
    team_id: z.uuid().optional(),
    user_id: z.uuid().optional(),
    provider: z.string().optional(),
    model_filter: z.array(z.string()).optional(),
    budget_id: z.uuid().optional(),
  }),
  restrictions: z.array(z.object({ kind: z.string(), summary: z.string() })),
  roles: z.array(z.enum(roles)),
  policies: z.array(z.object({ id: z.uuid(), name: z.string() })),
  access_policy_ids: z.array(z.uuid()),
  owner: z.object({ kind: z.enum(['user', 'team']), id: z.uuid() }),
  rate_limit_rpm: z.number().int().nullable(),
  rate_limit_tpm: z.number().int().nullable(),
  metadata_trust: z.enum(['none', 'caller']),
  mcp_tools: z.enum(['listed', 'searched']),
  version: z.number().int().describe('Also the ETag; send it as If-Match'),
  status: z.enum(tokenStatuses),
  expires_at: instant.nullable(),
  max_budget: amount.describe('US dollars'),
  max_requests: z.number().int().nullable(),
  depletion: z
    .object({
      currency: z.literal('USD'),
      max_budget: amount,
      current_spend: amount,
      remaining_budget: amount,
      max_requests: z.number().int().nullable(),
      current_requests: z.number().int().nullable(),
      remaining_requests: z.number().int().nullable(),
    })
    .describe('Null where there is no limit, or where the amount is not counted'),
  resource_id: z.uuid(),
  resource_vrn: z.string(),
  metadata: z.record(z.string(), z.string()),
  created_at: instant,
  created_by: z.string().nullable(),
  last_used_at: instant.nullable().describe('To the minute'),
  revocation: z
    .object({ at: instant, by: z.string().nullable(), emergency: z.boolean(), explanation: z.string().nullable() })
    .nullable(),
  rotated_at: instant.nullable().describe('From when on the rotated token is refused'),
  rotated_from: z.uuid().nullable(),
  rotated_to_id: z.uuid().nullable(),
  source_token_id: z.uuid().nullable(),
})
export type TokenRecord = z.infer<typeof tokenRecordSchema>

const instantOf = (milliseconds: number | null): string | null =>
  milliseconds === null ? null : timestamp(milliseconds)
const amountOf = (nano: number | null): number | null => (nano === null ? null : fromNano(nano))
const present = <Value>(value: Value | null): Value | undefined => value ?? undefined

/** The record at the instant `now`, with what has been used where that is counted. */
export function tokenRecord(
  token: StoredToken,
  organizationId: string,
  now: number,
  used: TokenDepletion | null,
): TokenRecord {
  const status = tokenStatus(token, now)
  return {
    id: token.id,
    name: token.name,
    token_prefix: token.tokenPrefix,
    purpose: token.purpose,
    principal_type: token.principalType,
    key_class: token.keyClass,
    bindings: bindingsOf(token),
    restrictions: restrictionsOf(token),
    roles: [...token.roles],
    policies: [],
    access_policy_ids: [...token.accessPolicyIds],
    owner: { kind: token.ownerKind, id: token.ownerId },
    rate_limit_rpm: token.rateLimitRpm,
    rate_limit_tpm: token.rateLimitTpm,
    metadata_trust: token.metadataTrust,
    mcp_tools: token.mcpTools,
    version: token.version,
    status: status === 'active' ? (used?.status ?? status) : status,
    expires_at: instantOf(token.expiresAt),
    max_budget: amountOf(token.maxBudget),
    max_requests: token.maxRequests,
    depletion: depletionOf(token, used),
    resource_id: token.id,
    resource_vrn: tokenResourceName(organizationId, token.id),
    metadata: token.metadata,
    created_at: timestamp(token.createdAt),
    created_by: token.createdBy,
    last_used_at: instantOf(token.lastUsedAt),
    revocation: revocationOf(token),
    rotated_at: instantOf(token.rotatedAt),
    rotated_from: token.rotatedFrom,
    rotated_to_id: token.rotatedToId,
    source_token_id: token.sourceTokenId,
  }
}

function bindingsOf(token: StoredToken): TokenRecord['bindings'] {
  return {
    gateway_id: present(token.gatewayId),
    team_id: present(token.teamId),
    user_id: present(token.userId),
    provider: present(token.provider),
    model_filter: token.modelFilter === null ? undefined : [...token.modelFilter],
    budget_id: present(token.budgetId),
  }
}

const notCounted = { current_spend: null, remaining_budget: null, current_requests: null, remaining_requests: null }

const depletionOf = (token: StoredToken, used: TokenDepletion | null): TokenRecord['depletion'] => ({
  currency: 'USD',
  max_budget: amountOf(token.maxBudget),
  max_requests: token.maxRequests,
  ...(used?.depletion ?? notCounted),
})

function revocationOf({ revokedAt, revocation }: StoredToken): TokenRecord['revocation'] {
  if (revokedAt === null) return null
  const { by = null, emergency = false, explanation = null } = revocation ?? {}
  return { at: timestamp(revokedAt), by, emergency, explanation }
}

function restrictionsOf(token: StoredToken): TokenRecord['restrictions'] {
  const said: [kind: string, summary: string | null][] = [
    ['gateway', token.gatewayId && `Only at gateway ${token.gatewayId}`],
    ['team', token.teamId && `Belongs to team ${token.teamId}`],
    ['user', token.userId && `Acts for user ${token.userId}`],
    ['provider', token.provider && `Only provider ${token.provider}`],
    ['model', token.modelFilter && `Only models ${token.modelFilter.join(', ')}`],
    ['budget', token.maxBudget === null ? null : `At most ${fromNano(token.maxBudget)} USD`],
    ['budget_window', token.budgetId && `Spends from budget ${token.budgetId}`],
    ['requests', token.maxRequests === null ? null : `At most ${token.maxRequests} requests`],
    ['rate', token.rateLimitRpm === null ? null : `At most ${token.rateLimitRpm} requests a minute`],
    ['rate', token.rateLimitTpm === null ? null : `At most ${token.rateLimitTpm} tokens a minute`],
    ['expiry', token.expiresAt === null ? null : `Until ${timestamp(token.expiresAt)}`],
    ['policies', token.policyIds.length === 0 ? null : `Attached policies: ${token.policyIds.length}`],
    ['access_policies', token.accessPolicyIds.length === 0 ? null : `Access policies: ${token.accessPolicyIds.length}`],
  ]
  return said.flatMap(([kind, summary]) => (summary === null || summary === '' ? [] : [{ kind, summary }]))
}
