/** The columns that the rows of a token have in both databases, in their groups. Times are null where they never come. */
import { integer, text } from 'drizzle-orm/sqlite-core'

/** A list of texts, as JSON. */
export const list = (name: string) => text(name, { mode: 'json' }).$type<readonly string[]>()

type Role = 'owner' | 'admin' | 'operator' | 'auditor' | 'member' | 'runtime'

export const tokenScope = {
  purpose: text('purpose', { enum: ['general', 'gateway_runtime', 'integration'] }).notNull(),
  principalType: text('principal_type', { enum: ['api_token', 'gateway_runtime'] }).notNull(),
  keyClass: text('key_class', { enum: ['durable', 'virtual', 'disposable'] }).notNull(),
  gatewayId: text('gateway_id'),
  teamId: text('team_id'),
  userId: text('user_id'),
  provider: text('provider'),
  modelFilter: list('model_filter'),
  budgetId: text('budget_id'),
  roles: text('roles', { mode: 'json' }).$type<readonly Role[]>().notNull(),
  policyIds: list('policy_ids').notNull(),
  accessPolicyIds: list('access_policy_ids').notNull(),
  metadataTrust: text('metadata_trust', { enum: ['none', 'caller'] }).notNull(),
  mcpTools: text('mcp_tools', { enum: ['listed', 'searched'] })
    .notNull()
    .default('listed'),
}

export const tokenOwner = {
  ownerKind: text('owner_kind', { enum: ['user', 'team'] }).notNull(),
  ownerId: text('owner_id').notNull(),
}

export const tokenLimits = {
  maxBudget: integer('max_budget'),
  maxRequests: integer('max_requests'),
  rateLimitRpm: integer('rate_limit_rpm'),
  rateLimitTpm: integer('rate_limit_tpm'),
  expiresAt: integer('expires_at'),
  rotatedAt: integer('rotated_at'),
  revokedAt: integer('revoked_at'),
}
