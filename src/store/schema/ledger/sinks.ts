/** Where copies of the record go, and how far each has got. */
import { sql } from 'drizzle-orm'
import { check, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/**
 * A receiver of events. `config` is JSON (sinks/sink-resource.ts); `credential_names` is JSON, and the credentials are
 * among the sealed secrets.
 */
export const sinks = sqliteTable('sinks', {
  id: text('id').primaryKey(),
  name: text('name').notNull().unique(),
  kind: text('kind').notNull(),
  url: text('url').notNull(),
  format: text('format').notNull(),
  filter: text('filter'),
  config: text('config').notNull(),
  credentialNames: text('credential_names').notNull(),
  enabled: integer('enabled').notNull(),
  createdAt: integer('created_at').notNull(),
  version: integer('version').notNull().default(1),
})

/**
 * How far a sink has got. `position` is that of the first record which it has not; `planned_end` is where the batch
 * ends that is being sent, so that it is sent again as it was. `owner` delivers until `leased_until`. `failures` are
 * those in a row; `told` says whether an event has told of them. Counts are since the sink was made.
 */
export const sinkDeliveries = sqliteTable(
  'sink_deliveries',
  {
    sinkId: text('sink_id').primaryKey(),
    position: integer('position').notNull(),
    plannedEnd: integer('planned_end'),
    owner: text('owner'),
    leasedUntil: integer('leased_until').notNull().default(0),
    failures: integer('failures').notNull().default(0),
    retryAt: integer('retry_at').notNull().default(0),
    error: text('error'),
    told: integer('told').notNull().default(0),
    delivered: integer('delivered').notNull().default(0),
    refused: integer('refused').notNull().default(0),
    lost: integer('lost').notNull().default(0),
    deliveredAt: integer('delivered_at'),
  },
  (table) => [check('sink_position', sql`${table.position} >= 1`)],
)
