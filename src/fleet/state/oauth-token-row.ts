/** A row of the state's `oauth_tokens` as a token whose permissions are in the row. */
import { z } from 'zod'
import { permissions } from '../../identity/permissions.ts'
import type { GovernedToken } from '../../tokens/governed-token.ts'

const json = <Schema extends z.ZodType>(schema: Schema) =>
  z
    .string()
    .transform((text): unknown => JSON.parse(text))
    .pipe(schema)

const rowSchema = z.object({
  id: z.string(),
  hash: z.string(),
  grant_id: z.string(),
  client_id: z.string(),
  user_id: z.string(),
  scope: json(z.array(z.string())),
  permissions: json(z.array(z.enum(permissions))),
  team_ids: json(z.array(z.string())),
  resources: json(z.array(z.string())),
  expires_at: z.number(),
  revoked_at: z.number().nullable(),
  version: z.number(),
})

export const delegatedColumns = Object.keys(rowSchema.shape).join(', ')

/**
 * Compiles a row of `delegatedColumns`: the token of its user, who pays for it, without limits of its own. Throws if
 * the row is malformed for this version.
 */
export function compileDelegated(row: unknown): GovernedToken {
  const read = rowSchema.parse(row)
  return {
    id: read.id,
    hash: read.hash,
    purpose: 'general',
    principalType: 'api_token',
    keyClass: 'durable',
    gatewayId: null,
    teamId: null,
    userId: read.user_id,
    provider: null,
    modelFilter: null,
    roles: [],
    ownerKind: 'user',
    ownerId: read.user_id,
    eventTeamId: read.team_ids[0] ?? null,
    policyIds: [],
    accessPolicyIds: [],
    budgetId: null,
    metadataTrust: 'none',
    metadata: {},
    mcpTools: 'listed',
    accounts: [],
    expiresAt: read.expires_at,
    rotatedAt: null,
    revokedAt: read.revoked_at,
    version: read.version,
    delegation: {
      clientId: read.client_id,
      grantId: read.grant_id,
      scope: read.scope,
      permissions: read.permissions,
      resources: read.resources,
      teamIds: read.team_ids,
    },
  }
}
