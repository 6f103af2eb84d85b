/** The names of policies, requests that wait for a person, and what MCP servers offer. */
import { sql } from 'drizzle-orm'
import { index, integer, sqliteTable, text, unique, uniqueIndex } from 'drizzle-orm/sqlite-core'

export const policies = sqliteTable(
  'policies',
  {
    id: text('id').primaryKey(),
    name: text('name').notNull(),
    createdAt: integer('created_at').notNull(),
    createdBy: text('created_by').notNull(),
    version: integer('version').notNull(),
    deletedAt: integer('deleted_at'),
  },
  (table) => [uniqueIndex('policies_name').on(table.name).where(sql`deleted_at is null`)],
)

/** Escalations from gateways' events, written in the transaction that took the event in; each is read from here once. */
export const pendingEscalationEvents = sqliteTable('pending_escalation_events', {
  eventId: text('event_id').primaryKey(),
  body: text('body').notNull(),
  receivedAt: integer('received_at').notNull(),
})

/**
 * Whether one has expired is computed from `queued_at` when it is read. Of one in the states `deciding` and `applying`,
 * `resolved_at` is when its decision takes effect, and `grant_expires_at` stands for a grant that is not given yet.
 */
export const escalations = sqliteTable(
  'escalations',
  {
    id: text('id').primaryKey(),
    state: text('state', { enum: ['queued', 'claimed', 'deciding', 'applying', 'resolved', 'expired'] }).notNull(),
    tokenId: text('token_id').notNull(),
    userId: text('user_id'),
    teamId: text('team_id'),
    gatewayId: text('gateway_id'),
    policyId: text('policy_id').notNull(),
    reasonCode: text('reason_code').notNull(),
    digest: text('digest').notNull(),
    request: text('request').notNull(),
    attempts: integer('attempts').notNull(),
    queuedAt: integer('queued_at').notNull(),
    expiresAt: integer('expires_at').notNull(),
    lastAttemptAt: integer('last_attempt_at').notNull(),
    claimedBy: text('claimed_by'),
    claimedAt: integer('claimed_at'),
    resolution: text('resolution', { enum: ['allow', 'block'] }),
    note: text('note'),
    resolvedBy: text('resolved_by'),
    resolvedAt: integer('resolved_at'),
    grantId: text('grant_id'),
    grantExpiresAt: integer('grant_expires_at'),
    version: integer('version').notNull(),
  },
  (table) => [
    index('escalations_state').on(table.state, table.id),
    index('escalations_digest').on(table.tokenId, table.digest),
    index('escalations_team').on(table.teamId, table.id),
  ],
)

/** Each attempt has its own id; all attempts of one waiting request are one escalation. */
export const escalationAttempts = sqliteTable('escalation_attempts', {
  id: text('id').primaryKey(),
  escalationId: text('escalation_id').notNull(),
})

/** What MCP servers were seen to offer, each definition whole, so that a person can compare before approving. */
export const mcpOffers = sqliteTable(
  'mcp_offers',
  {
    id: integer('id').primaryKey(),
    serverId: text('server_id').notNull(),
    kind: text('kind').notNull(),
    name: text('name').notNull(),
    digest: text('digest').notNull(),
    definition: text('definition').notNull(),
    gatewayId: text('gateway_id'),
    firstSeenAt: integer('first_seen_at').notNull(),
    dismissedAt: integer('dismissed_at'),
    dismissedBy: text('dismissed_by'),
  },
  (table) => [
    unique('mcp_offers_digest').on(table.serverId, table.digest),
    index('mcp_offers_name').on(table.serverId, table.kind, table.name),
  ],
)
