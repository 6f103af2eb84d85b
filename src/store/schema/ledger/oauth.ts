/**
 * OAuth 2.0 (oauth/README.md): applications, what people approved for them, and refresh tokens. Codes and refresh
 * tokens are here as SHA-256 only; access tokens are in the state, where gateways find them.
 */
import { sql } from 'drizzle-orm'
import { index, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { list } from '../token-columns.ts'
import { users } from './people.ts'

export const oauthClients = sqliteTable('oauth_clients', {
  id: text('id').primaryKey(),
  name: text('name').notNull(),
  redirectUris: list('redirect_uris').notNull(),
  scope: list('scope').notNull(),
  grantTypes: list('grant_types').notNull().default(['authorization_code', 'refresh_token']),
  createdAt: integer('created_at').notNull(),
  createdBy: text('created_by').notNull(),
  deactivatedAt: integer('deactivated_at'),
  version: integer('version').notNull().default(1),
})

/**
 * One approval by one person: its code, and the family of all tokens that came of it. No `resources`
 * means all. `expires_at` ends the whole family, however often it is refreshed. `ended_at` is set when the access
 * tokens in the state are revoked too.
 */
export const oauthGrants = sqliteTable(
  'oauth_grants',
  {
    id: text('id').primaryKey(),
    clientId: text('client_id')
      .notNull()
      .references(() => oauthClients.id),
    userId: text('user_id')
      .notNull()
      .references(() => users.id),
    scope: list('scope').notNull(),
    resources: list('resources').notNull(),
    codeHash: text('code_hash').notNull().unique(),
    redirectUri: text('redirect_uri').notNull(),
    codeChallenge: text('code_challenge').notNull(),
    codeExpiresAt: integer('code_expires_at').notNull(),
    codeUsedAt: integer('code_used_at'),
    createdAt: integer('created_at').notNull(),
    expiresAt: integer('expires_at').notNull(),
    revokedAt: integer('revoked_at'),
    endedAt: integer('ended_at'),
  },
  (table) => [
    index('oauth_grants_user').on(table.userId),
    index('oauth_grants_expiry').on(table.expiresAt),
    index('oauth_grants_ending').on(table.revokedAt).where(sql`revoked_at is not null and ended_at is null`),
  ],
)

export const oauthRefreshTokens = sqliteTable(
  'oauth_refresh_tokens',
  {
    hash: text('hash').primaryKey(),
    grantId: text('grant_id')
      .notNull()
      .references(() => oauthGrants.id, { onDelete: 'cascade' }),
    expiresAt: integer('expires_at').notNull(),
    usedAt: integer('used_at'),
  },
  (table) => [index('oauth_refresh_tokens_grant').on(table.grantId)],
)

/**
 * Requests of devices (RFC 8628): each waits for a person, who finds it by the user code. Both codes are here as SHA-256
 * only. An approval is a grant whose code is the device code. `polled_at` and `interval_seconds` say when the device may
 * ask again; `address_key` is a digest of the network address that asked.
 */
export const oauthDeviceCodes = sqliteTable(
  'oauth_device_codes',
  {
    hash: text('hash').primaryKey(),
    userCodeHash: text('user_code_hash').notNull().unique(),
    clientId: text('client_id')
      .notNull()
      .references(() => oauthClients.id),
    scope: list('scope').notNull(),
    resources: list('resources').notNull(),
    addressKey: text('address_key').notNull(),
    createdAt: integer('created_at').notNull(),
    expiresAt: integer('expires_at').notNull(),
    intervalSeconds: integer('interval_seconds').notNull(),
    polledAt: integer('polled_at'),
    decision: text('decision', { enum: ['approved', 'denied'] }),
  },
  (table) => [
    index('oauth_device_codes_address').on(table.addressKey, table.createdAt),
    index('oauth_device_codes_expiry').on(table.expiresAt),
  ],
)

/**
 * People's own accounts at MCP servers (connections/README.md). `sealed` is JSON under the master key: the tokens, and
 * the client and the place they are for. `expires_at` is of the access token; null where the server did not say.
 * `refreshing_until` is set by the control plane that refreshes. `ended_at`: nobody gets the tokens any more; they are
 * revoked at the server's authorization server, and then the row is removed.
 */
export const mcpConnections = sqliteTable(
  'mcp_connections',
  {
    userId: text('user_id')
      .notNull()
      .references(() => users.id),
    serverId: text('server_id').notNull(),
    sealed: text('sealed').notNull(),
    issuer: text('issuer').notNull(),
    scope: text('scope'),
    connectedAt: integer('connected_at').notNull(),
    expiresAt: integer('expires_at'),
    refreshedAt: integer('refreshed_at'),
    refreshingUntil: integer('refreshing_until'),
    endedAt: integer('ended_at'),
  },
  (table) => [
    primaryKey({ columns: [table.userId, table.serverId] }),
    index('mcp_connections_server').on(table.serverId),
    index('mcp_connections_ended').on(table.endedAt).where(sql`ended_at is not null`),
  ],
)

/**
 * People whose rights changed and whose access tokens in the state do not follow yet. `marks` counts the changes, so
 * that a change during an update is not forgotten.
 */
export const pendingPermissionUpdates = sqliteTable('pending_permission_updates', {
  userId: text('user_id').primaryKey(),
  changes: integer('changes').notNull().default(1),
  changedAt: integer('changed_at').notNull(),
})
