/** Parses a row of the state's `tokens`. */
import { z } from 'zod'
import { keyClasses } from '../../identity/key-class.ts'
import { roles } from '../../identity/permissions.ts'
import { type GovernedToken, principalTypes, purposes } from '../../tokens/governed-token.ts'

const json = <Schema extends z.ZodType>(schema: Schema) =>
  z
    .string()
    .transform((text): unknown => JSON.parse(text))
    .pipe(schema)

const limit = z.number().nullable()

const rowSchema = z.object({
  id: z.string(),
  hash: z.string(),
  purpose: z.enum(purposes),
  principal_type: z.enum(principalTypes),
  key_class: z.enum(keyClasses),
  gateway_id: z.string().nullable(),
  team_id: z.string().nullable(),
  user_id: z.string().nullable(),
  provider: z.string().nullable(),
  model_filter: json(z.array(z.string())).nullable(),
  roles: json(z.array(z.enum(roles))),
  owner_kind: z.enum(['user', 'team']),
  owner_id: z.string(),
  event_team_id: z.string().nullable(),
  policy_ids: json(z.array(z.string())),
  access_policy_ids: json(z.array(z.string())),
  budget_id: z.string().nullable(),
  metadata_trust: z.enum(['none', 'caller']),
  metadata: json(z.record(z.string(), z.string())),
  mcp_tools: z.enum(['listed', 'searched']),
  expires_at: z.number().nullable(),
  rotated_at: z.number().nullable(),
  revoked_at: z.number().nullable(),
  accounts: json(z.array(z.tuple([z.string(), limit, limit, limit, limit]))),
  version: z.number(),
})

/**
 * A token's accounts in order, its own first, as a JSON list of [id, requests, nano-dollars, requests and tokens a
 * minute].
 */
const accountsColumn = `(
  select json_group_array(
    json_array(each.value, a.max_requests, a.max_budget, a.rate_limit_rpm, a.rate_limit_tpm) order by each.key)
  from json_each(tokens.account_ids) each left join accounts a on a.id = each.value and a.deleted = 0
)`

export const tokenColumns = Object.keys(rowSchema.shape)
  .map((column) => (column === 'accounts' ? `${accountsColumn} as accounts` : column))
  .join(', ')

/** Compiles a row of `tokenColumns`. Throws if it is malformed for this version. */
export function compileToken(row: unknown): GovernedToken {
  const read = rowSchema.parse(row)
  return {
    id: read.id,
    hash: read.hash,
    purpose: read.purpose,
    principalType: read.principal_type,
    keyClass: read.key_class,
    gatewayId: read.gateway_id,
    teamId: read.team_id,
    userId: read.user_id,
    provider: read.provider,
    modelFilter: read.model_filter,
    roles: read.roles,
    ownerKind: read.owner_kind,
    ownerId: read.owner_id,
    eventTeamId: read.event_team_id,
    policyIds: read.policy_ids,
    accessPolicyIds: read.access_policy_ids,
    budgetId: read.budget_id,
    metadataTrust: read.metadata_trust,
    metadata: read.metadata,
    mcpTools: read.mcp_tools,
    accounts: read.accounts.map(([id, maxRequests, maxBudget, rateLimitRpm, rateLimitTpm]) => {
      return { id, maxRequests, maxBudget, rateLimitRpm, rateLimitTpm }
    }),
    expiresAt: read.expires_at,
    rotatedAt: read.rotated_at,
    revokedAt: read.revoked_at,
    version: read.version,
  }
}
