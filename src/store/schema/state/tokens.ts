/** What gateways authenticate by: API tokens, OAuth access tokens, and grants of reviewers. */
import { index, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { list, tokenLimits, tokenOwner, tokenScope } from '../token-columns.ts'
import { versioned, versionIndex } from './versioned.ts'

export const tokens = sqliteTable(
  'tokens',
  {
    id: text('id').primaryKey(),
    hash: text('hash').notNull().unique(),
    ...tokenScope,
    ...tokenOwner,
    eventTeamId: text('event_team_id'),
    accountIds: list('account_ids').notNull(),
    ...tokenLimits,
    ...versioned,
    /** The entries that dimensions of attribution read (store/schema/token-metadata.ts). */
    metadata: text('metadata', { mode: 'json' }).$type<Readonly<Record<string, string>>>().notNull().default({}),
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
 * No `resources` means all.
 */
export const oauthTokens = sqliteTable(
  'oauth_tokens',
  {
    id: text('id').primaryKey(),
    hash: text('hash').notNull().unique(),
    grantId: text('grant_id').notNull(),
    clientId: text('client_id').notNull(),
    userId: text('user_id').notNull(),
    scope: list('scope').notNull(),
    permissions: list('permissions').notNull(),
    teamIds: list('team_ids').notNull(),
    resources: list('resources').notNull(),
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

/**
 * Callers that another issuer vouches for (workloads/README.md). `keys` is the issuer's JWK Set, JSON. A caller acts as
 * the token of `token_hash`. `attribution` maps names in the metadata of events to claims. `revoked` is JSON
 * [{"kind", "value", "until"}].
 */
export const workloadIdentities = sqliteTable(
  'workload_identities',
  {
    id: text('id').primaryKey(),
    name: text('name').notNull(),
    issuer: text('issuer').notNull(),
    audience: text('audience').notNull(),
    jwksUrl: text('jwks_url'),
    keys: text('keys').notNull(),
    keysChangedAt: integer('keys_changed_at').notNull(),
    condition: text('condition'),
    attribution: text('attribution').notNull(),
    tokenId: text('token_id').notNull(),
    tokenHash: text('token_hash').notNull(),
    longestSeconds: integer('longest_seconds').notNull(),
    revoked: text('revoked').notNull(),
    enabled: integer('enabled').notNull().default(1),
    ...versioned,
  },
  (table) => [versionIndex('workload_identities', table.version), index('workload_identities_token').on(table.tokenId)],
)
