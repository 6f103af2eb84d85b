/**
 * People, teams, and how people sign in: identity providers, sessions, codes for programs, links for a first sign-in,
 * and what slows guessing down. Secrets are here only as SHA-256, or sealed.
 */
import { sql } from 'drizzle-orm'
import { check, index, integer, primaryKey, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'

export const organizations = sqliteTable(
  'organizations',
  {
    id: text('id').primaryKey(),
    name: text('name').notNull(),
    single: integer('single').notNull().default(1).unique(),
    createdAt: integer('created_at').notNull(),
  },
  () => [check('organizations_one_row', sql`single = 1`)],
)

/** totp_*: the second factor. The secret is sealed; it counts since `totp_since`; `totp_step`: the last one that was used. */
export const users = sqliteTable('users', {
  id: text('id').primaryKey(),
  email: text('email').notNull().unique(),
  name: text('name').notNull(),
  role: text('role', { enum: ['owner', 'admin', 'operator', 'auditor', 'member'] }).notNull(),
  status: text('status', { enum: ['active', 'disabled'] }).notNull(),
  passwordHash: text('password_hash'),
  totpSecret: text('totp_secret'),
  totpSince: integer('totp_since'),
  totpStep: integer('totp_step').notNull().default(0),
  createdAt: integer('created_at').notNull(),
  version: integer('version').notNull().default(1),
})

export const teams = sqliteTable('teams', {
  id: text('id').primaryKey(),
  name: text('name').notNull().unique(),
  createdAt: integer('created_at').notNull(),
  version: integer('version').notNull().default(1),
})

export const memberships = sqliteTable(
  'memberships',
  {
    teamId: text('team_id')
      .notNull()
      .references(() => teams.id),
    userId: text('user_id')
      .notNull()
      .references(() => users.id),
    createdAt: integer('created_at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.teamId, table.userId] }), index('memberships_user').on(table.userId)],
)

/** An OpenID provider. `config` is JSON (identity-provider-resource.ts); the client secret is among the sealed secrets. */
export const identityProviders = sqliteTable('identity_providers', {
  id: text('id').primaryKey(),
  name: text('name').notNull().unique(),
  issuer: text('issuer').notNull().unique(),
  clientId: text('client_id').notNull(),
  config: text('config').notNull(),
  enabled: integer('enabled').notNull().default(1),
  createdAt: integer('created_at').notNull(),
  version: integer('version').notNull().default(1),
})

/**
 * A person as a provider names them: by issuer and subject, never by e-mail address. A session of this identity lives
 * only until `vouched_until`. `check_at`: when the provider is asked again; null: it cannot be asked. `external_id`: how
 * SCIM names the same person, as the last sign-in told.
 */
export const userIdentities = sqliteTable(
  'user_identities',
  {
    id: text('id').primaryKey(),
    userId: text('user_id')
      .notNull()
      .references(() => users.id),
    issuer: text('issuer').notNull(),
    subject: text('subject').notNull(),
    externalId: text('external_id'),
    refreshToken: text('refresh_token'),
    vouchedUntil: integer('vouched_until').notNull(),
    checkAt: integer('check_at'),
    lostAt: integer('lost_at'),
    createdAt: integer('created_at').notNull(),
    lastSignInAt: integer('last_sign_in_at').notNull(),
  },
  (table) => [
    uniqueIndex('user_identities_subject').on(table.issuer, table.subject),
    index('user_identities_user').on(table.userId),
    index('user_identities_check').on(table.checkAt),
  ],
)

/** kind: browser (a cookie) or program (a Bearer credential that `program` was given). */
export const userSessions = sqliteTable(
  'user_sessions',
  {
    id: text('id').primaryKey(),
    hash: text('hash').notNull().unique(),
    userId: text('user_id')
      .notNull()
      .references(() => users.id),
    kind: text('kind', { enum: ['browser', 'program'] }).notNull(),
    program: text('program'),
    identityId: text('identity_id').references(() => userIdentities.id),
    createdAt: integer('created_at').notNull(),
    lastUsedAt: integer('last_used_at').notNull(),
    expiresAt: integer('expires_at').notNull(),
  },
  (table) => [index('user_sessions_user').on(table.userId), index('user_sessions_expires').on(table.expiresAt)],
)

/** A row stays for a while after its use, so that a second use can end what the first one gave. */
export const programCodes = sqliteTable(
  'program_codes',
  {
    hash: text('hash').primaryKey(),
    userId: text('user_id')
      .notNull()
      .references(() => users.id),
    clientId: text('client_id').notNull(),
    redirectUri: text('redirect_uri').notNull(),
    codeChallenge: text('code_challenge').notNull(),
    tokenName: text('token_name'),
    identityId: text('identity_id').references(() => userIdentities.id),
    expiresAt: integer('expires_at').notNull(),
    usedAt: integer('used_at'),
    issuedKind: text('issued_kind', { enum: ['session', 'token'] }),
    issuedId: text('issued_id'),
    replayedAt: integer('replayed_at'),
  },
  (table) => [index('program_codes_expires').on(table.expiresAt)],
)

/** key: `account:` or `address:` and a SHA-256. */
export const signInAttempts = sqliteTable(
  'sign_in_attempts',
  {
    key: text('key').primaryKey(),
    attempts: integer('attempts').notNull(),
    blockedUntil: integer('blocked_until').notNull(),
    lastAt: integer('last_at').notNull(),
  },
  (table) => [index('sign_in_attempts_last').on(table.lastAt)],
)

export const setupLinks = sqliteTable('setup_links', {
  hash: text('hash').primaryKey(),
  userId: text('user_id')
    .notNull()
    .references(() => users.id),
  kind: text('kind', { enum: ['setup', 'invitation'] })
    .notNull()
    .default('setup'),
  expiresAt: integer('expires_at').notNull(),
  usedAt: integer('used_at'),
})
