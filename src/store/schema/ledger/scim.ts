/**
 * What an identity provider keeps here by SCIM 2.0 (members/scim): its tokens, people and groups. People and groups
 * belong to an issuer, as identities do; each is a person or a team beside what the provider says of it.
 */
import { index, integer, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'
import { teams, users } from './people.ts'

/** The secret is here only as SHA-256. */
export const scimTokens = sqliteTable(
  'scim_tokens',
  {
    id: text('id').primaryKey(),
    identityProviderId: text('identity_provider_id').notNull(),
    name: text('name').notNull(),
    hash: text('hash').notNull().unique(),
    hint: text('hint').notNull(),
    createdAt: integer('created_at').notNull(),
    lastUsedAt: integer('last_used_at'),
    revokedAt: integer('revoked_at'),
  },
  (table) => [index('scim_tokens_provider').on(table.identityProviderId)],
)

/** user_name_key: the name in lower case, by which names are compared. attributes: JSON of what only SCIM reads. */
export const scimUsers = sqliteTable(
  'scim_users',
  {
    userId: text('user_id')
      .primaryKey()
      .references(() => users.id),
    issuer: text('issuer').notNull(),
    userName: text('user_name').notNull(),
    userNameKey: text('user_name_key').notNull(),
    externalId: text('external_id'),
    attributes: text('attributes').notNull(),
    createdAt: integer('created_at').notNull(),
    updatedAt: integer('updated_at').notNull(),
  },
  (table) => [
    uniqueIndex('scim_users_name').on(table.issuer, table.userNameKey),
    uniqueIndex('scim_users_external').on(table.issuer, table.externalId),
  ],
)

/** A group is a team; its members are the team's members who are of the same issuer. */
export const scimGroups = sqliteTable(
  'scim_groups',
  {
    teamId: text('team_id')
      .primaryKey()
      .references(() => teams.id),
    issuer: text('issuer').notNull(),
    externalId: text('external_id'),
    createdAt: integer('created_at').notNull(),
    updatedAt: integer('updated_at').notNull(),
    version: integer('version').notNull().default(1),
  },
  (table) => [uniqueIndex('scim_groups_external').on(table.issuer, table.externalId)],
)
