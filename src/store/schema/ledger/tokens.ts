/** The records of API tokens, and how many there are. */
import { sql } from 'drizzle-orm'
import { index, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { tokenLimits, tokenOwner, tokenScope } from '../token-columns.ts'

export interface Revocation {
  by: string | null
  emergency: boolean
  explanation: string | null
}

/**
 * The whole record of a token except its hash, which only the state has. `account_id` is the token's own account, or
 * that of the token it was rotated from. The indexes serve lists, which are filtered and newest first; those of
 * bindings and of ends are partial, because most tokens have none and each index costs every new token a page.
 */
export const tokens = sqliteTable(
  'tokens',
  {
    id: text('id').primaryKey(),
    name: text('name').notNull(),
    tokenPrefix: text('token_prefix').notNull(),
    ...tokenScope,
    metadata: text('metadata', { mode: 'json' }).$type<Readonly<Record<string, string>>>().notNull(),
    ...tokenOwner,
    ...tokenLimits,
    revocation: text('revocation', { mode: 'json' }).$type<Revocation>(),
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
