/** Alerts: what is watched, where notices go, what has fired, and which notices are on their way (alerts/README.md). */
import { sql } from 'drizzle-orm'
import { index, integer, real, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'

/** `config` is JSON of what the condition takes beside its defaults. */
export const alerts = sqliteTable('alerts', {
  id: text('id').primaryKey(),
  name: text('name').notNull().unique(),
  condition: text('condition').notNull(),
  enabled: integer('enabled').notNull().default(1),
  config: text('config').notNull(),
  createdAt: integer('created_at').notNull(),
  version: integer('version').notNull().default(1),
})

/**
 * Where notices go. Address and secrets are sealed in `secrets`. One control plane sends to a channel at a time:
 * `claimed_by`, until `claimed_until`. `failing_since` to `last_error` are how it went last; all in the time of the
 * database.
 */
export const alertChannels = sqliteTable('alert_channels', {
  id: text('id').primaryKey(),
  name: text('name').notNull().unique(),
  kind: text('kind', { enum: ['webhook', 'slack', 'teams', 'pagerduty', 'email'] }).notNull(),
  enabled: integer('enabled').notNull().default(1),
  config: text('config').notNull(),
  createdAt: integer('created_at').notNull(),
  version: integer('version').notNull().default(1),
  claimedBy: text('claimed_by'),
  claimedUntil: integer('claimed_until').notNull().default(0),
  failures: integer('failures').notNull().default(0),
  failingSince: integer('failing_since'),
  retryAt: integer('retry_at').notNull().default(0),
  lastError: text('last_error'),
  lastSentAt: integer('last_sent_at'),
})

/**
 * What an alert found. `subject` is what it is about, with the window where there is one; `announced` is 0 where a
 * higher threshold was reached at the same time, and only that is told. The index of open firings is what makes each
 * fire once, however many control planes look.
 */
export const alertFirings = sqliteTable(
  'alert_firings',
  {
    id: text('id').primaryKey(),
    alertId: text('alert_id').notNull(),
    subject: text('subject').notNull(),
    threshold: real('threshold').notNull(),
    value: real('value').notNull(),
    severity: text('severity').notNull(),
    about: text('about').notNull(),
    announced: integer('announced').notNull(),
    firedAt: integer('fired_at').notNull(),
    resolvedAt: integer('resolved_at'),
  },
  (table) => [
    uniqueIndex('alert_firings_open').on(table.alertId, table.subject, table.threshold).where(sql`resolved_at is null`),
    index('alert_firings_subject').on(table.alertId, table.subject, table.threshold, table.firedAt),
    index('alert_firings_time').on(table.firedAt),
  ],
)

/** Notices on their way to channels, and those that arrived. The id is the idempotency key that receivers get. */
export const alertDeliveries = sqliteTable(
  'alert_deliveries',
  {
    id: text('id').primaryKey(),
    firingId: text('firing_id').notNull(),
    channelId: text('channel_id').notNull(),
    kind: text('kind', { enum: ['fired', 'resolved'] }).notNull(),
    state: text('state', { enum: ['pending', 'sent', 'failed'] }).notNull(),
    attempts: integer('attempts').notNull().default(0),
    error: text('error'),
    createdAt: integer('created_at').notNull(),
    sentAt: integer('sent_at'),
  },
  (table) => [
    index('alert_deliveries_pending').on(table.channelId).where(sql`state = 'pending'`),
    uniqueIndex('alert_deliveries_firing').on(table.firingId, table.channelId, table.kind),
  ],
)

/** One row: which control plane evaluates the alerts, until when in the time of the database. */
export const alertLease = sqliteTable('alert_lease', {
  id: integer('id').primaryKey(),
  holder: text('holder').notNull(),
  until: integer('until').notNull(),
})
