/** What gateways authenticate by: API tokens, OAuth access tokens, and grants of reviewers. */
import { index, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { versioned, versionIndex } from './versioned.ts'

export const tokens = sqliteTable(
  'tokens',
  {
    id: text('id').primaryKey(),
    hash: text('hash').notNull().unique(),
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
    ownerKind: text('owner_kind').notNull(),
    ownerId: text('owner_id').notNull(),
    eventTeamId: text('event_team_id'),
    accountIds: text('account_ids').notNull(),
    maxBudget: integer('max_budget'),
    maxRequests: integer('max_requests'),
    rateLimitRpm: integer('rate_limit_rpm'),
    rateLimitTpm: integer('rate_limit_tpm'),
    expiresAt: integer('expires_at'),
    rotatedAt: integer('rotated_at'),
    revokedAt: integer('revoked_at'),
    ...versioned,
  },
  (table) => [versionIndex('tokens', table.version)],
)

/** A reviewer lets one token send one request once: an account of limit 1 named grant/<id> counts it. */
export const grants = sqliteTable(
  'grants',
  {
    id: text('id').primaryKey(),
    tokenId: text('token_id').notNull(),
    digest: text('digest').notNull(),
    expiresAt: integer('expires_at').notNull(),
    ...versioned,
  },
  (table) => [versionIndex('grants', table.version), index('grants_token').on(table.tokenId, table.digest)],
)

/**
 * OAuth access tokens (oauth/README.md). `permissions` is the part of the scope that the person holds, kept current with
 * the person's role and status. `team_ids` are the person's teams; readers of the first one see the token's events.
 * Lists are JSON; an empty list of resources means all.
 */
export const oauthTokens = sqliteTable(
  'oauth_tokens',
  {
    id: text('id').primaryKey(),
    hash: text('hash').notNull().unique(),
    grantId: text('grant_id').notNull(),
    clientId: text('client_id').notNull(),
    userId: text('user_id').notNull(),
    scope: text('scope').notNull(),
    permissions: text('permissions').notNull(),
    teamIds: text('team_ids').notNull(),
    resources: text('resources').notNull(),
    expiresAt: integer('expires_at').notNull(),
    revokedAt: integer('revoked_at'),
    ...versioned,
  },
  (table) => [
    versionIndex('oauth_tokens', table.version),
    index('oauth_tokens_grant').on(table.grantId),
    index('oauth_tokens_user').on(table.userId),
    index('oauth_tokens_expiry').on(table.expiresAt),
  ],
)
