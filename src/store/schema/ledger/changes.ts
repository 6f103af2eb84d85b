/** How control planes write: announced changes, guards, idempotent calls, and sealed secrets. */
import { sql } from 'drizzle-orm'
import { check, index, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/** A change that was announced here and not yet confirmed from the state (events/README.md, A change and its event). */
export const pendingChanges = sqliteTable('pending_changes', {
  eventId: text('event_id').primaryKey(),
  statements: text('statements').notNull(),
  event: text('event').notNull(),
  createdAt: integer('created_at').notNull(),
})

/** Holds no lasting row: an insert whose guard does not hold breaks the check and with it the transaction. */
export const guards = sqliteTable('guards', { holds: integer('holds').notNull() }, () => [
  check('guards_hold', sql`holds = 1`),
])

/** Whose in-flight requests a change ends, for a control plane that missed its peer's message of the change. */
export const endedRequests = sqliteTable('ended_requests', {
  eventId: text('event_id').primaryKey(),
  hashes: text('hashes').notNull(),
  at: integer('at').notNull(),
})

export const idempotencyKeys = sqliteTable(
  'idempotency_keys',
  {
    principal: text('principal').notNull(),
    idempotencyKey: text('idempotency_key').notNull(),
    route: text('route').notNull(),
    bodyHash: text('body_hash').notNull(),
    status: integer('status'),
    answer: text('answer'),
    secretResourceId: text('secret_resource_id'),
    createdAt: integer('created_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.principal, table.idempotencyKey] }),
    index('idempotency_keys_created').on(table.createdAt),
  ],
)

/** Values sealed under the master key: the gateway's runtime token, providers' data keys, the prompt-hash key. */
export const secrets = sqliteTable('secrets', {
  name: text('name').primaryKey(),
  sealed: text('sealed').notNull(),
  createdAt: integer('created_at').notNull(),
})
