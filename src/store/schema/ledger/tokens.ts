/** The records of API tokens, and how many there are. */
import { sql } from 'drizzle-orm'
import { index, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/**
 * The whole record of a token except its hash, which only the state has. `account_id` is the token's own account, or that
 * of the token it was rotated from. The indexes serve lists, which are filtered and newest first; those of bindings and of
 * ends are partial, because most tokens have none and each index costs every new token a page.
 */
export const tokens = sqliteTable(
  'tokens',
  {
    id: text('id').primaryKey(),
    name: text('name').notNull(),
    tokenPrefix: text('token_prefix').notNull(),
    purpose: text('purpose').notNull(),
    principalType: text('principal_type').notNull(),
    keyClass: text('key_class').notNull(),
    gatewayId: text('gateway_id'),
    teamId: text('team_id'),
    userId: text('user_id'),
    provider: text('provider'),
    modelFilter: text('model_filter'),
    budgetId: text('budget_id'),
    roles: text('roles').notNull(),
    policyIds: text('policy_ids').notNull(),
    accessPolicyIds: text('access_policy_ids').notNull(),
    metadataTrust: text('metadata_trust').notNull(),
    metadata: text('metadata').notNull(),
    ownerKind: text('owner_kind').notNull(),
    ownerId: text('owner_id').notNull(),
    maxBudget: integer('max_budget'),
    maxRequests: integer('max_requests'),
    rateLimitRpm: integer('rate_limit_rpm'),
    rateLimitTpm: integer('rate_limit_tpm'),
    expiresAt: integer('expires_at'),
    rotatedAt: integer('rotated_at'),
    revokedAt: integer('revoked_at'),
    revocation: text('revocation'),
    rotatedFrom: text('rotated_from'),
    rotatedToId: text('rotated_to_id'),
    sourceTokenId: text('source_token_id'),
    createdAt: integer('created_at').notNull(),
    createdBy: text('created_by'),
    lastUsedAt: integer('last_used_at'),
    version: integer('version').notNull(),
    accountId: text('account_id'),
  },
  (table) => [
    index('tokens_purpose').on(table.purpose, table.id),
    index('tokens_key_class').on(table.keyClass, table.id),
    index('tokens_account').on(table.accountId),
    index('tokens_team').on(table.teamId, table.id).where(sql`team_id is not null`),
    index('tokens_gateway').on(table.gatewayId, table.id).where(sql`gateway_id is not null`),
    index('tokens_user').on(table.userId, table.id).where(sql`user_id is not null`),
    index('tokens_revoked').on(table.id).where(sql`revoked_at is not null`),
    index('tokens_rotated').on(table.id, table.rotatedAt).where(sql`rotated_at is not null and revoked_at is null`),
    index('tokens_expiring')
      .on(table.id, table.expiresAt, table.rotatedAt)
      .where(sql`expires_at is not null and revoked_at is null`),
  ],
)

/** How many tokens there are by what does not change with time. Triggers on `tokens` keep it; no team is ''. */
export const tokenCounts = sqliteTable(
  'token_counts',
  {
    purpose: text('purpose').notNull(),
    keyClass: text('key_class').notNull(),
    teamId: text('team_id').notNull(),
    count: integer('count').notNull(),
  },
  (table) => [primaryKey({ columns: [table.purpose, table.keyClass, table.teamId] })],
)

/** The accounts that a clone draws on beside its own: those of its source, and of that one's. A rotation keeps them. */
export const sourceAccounts = sqliteTable(
  'source_accounts',
  {
    tokenId: text('token_id').notNull(),
    accountId: text('account_id').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.tokenId, table.accountId] }),
    index('source_accounts_account').on(table.accountId, table.tokenId),
  ],
)
