/**
 * Gateways that are connected, and the control planes. Several hosts compare times in the time of this database
 * (`databaseTime` in store/open.ts), so that their clocks need not agree.
 */
import { sql } from 'drizzle-orm'
import { check, index, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'

export const runtimeSessions = sqliteTable('runtime_sessions', {
  hash: text('hash').primaryKey(),
  tokenId: text('token_id').notNull(),
  gatewayId: text('gateway_id').notNull(),
  instanceId: text('instance_id').notNull(),
  expiresAt: integer('expires_at').notNull(),
  gatewayVersion: text('gateway_version').notNull().default(''),
})

/**
 * `process` is the process of the worker that last registered, `hello` its number, `registered_at` its time, `holder`
 * the gateway process. `lost_at`: the control plane gave the worker up; `released_at`: an operator released it;
 * `left_at`: it deregistered and holds nothing. `pending_reconciliation`: the ledger was restored from a copy, and
 * grants nothing until this worker registers. `stale_after_ms`: how long it serves without a heartbeat at most.
 */
export const workers = sqliteTable(
  'workers',
  {
    worker: text('worker').primaryKey(),
    gatewayId: text('gateway_id').notNull(),
    instanceId: text('instance_id').notNull(),
    workerNumber: integer('worker_number').notNull(),
    streamId: text('stream_id').notNull(),
    gatewayVersion: text('gateway_version').notNull(),
    acknowledgedVersion: integer('acknowledged_version').notNull(),
    lastHeartbeatAt: integer('last_heartbeat_at').notNull(),
    connectedAt: integer('connected_at').notNull(),
    process: text('process').notNull().default(''),
    registrationNumber: integer('registration_number').notNull().default(0),
    lostAt: integer('lost_at'),
    releasedAt: integer('released_at'),
    registeredAt: integer('registered_at').notNull().default(0),
    pendingReconciliation: integer('pending_reconciliation').notNull().default(0),
    leftAt: integer('left_at'),
    holder: text('holder').notNull().default(''),
    staleAfterMs: integer('stale_after_ms'),
  },
  (table) => [index('workers_pending_reconciliation').on(table.worker).where(sql`pending_reconciliation = 1`)],
)

/** How many transactions that others rely on each control plane has made: a restored copy lacks the newest ones. */
export const ledgerEpoch = sqliteTable('ledger_epoch', {
  writer: text('writer').primaryKey(),
  written: integer('written').notNull(),
  at: integer('at').notNull(),
})

/** Control planes that know of one another. */
export const peers = sqliteTable('peers', {
  id: text('id').primaryKey(),
  address: text('address').notNull(),
  seenAt: integer('seen_at').notNull(),
})

/** Instances of gateways that have ever connected: the first time is an event. */
export const instances = sqliteTable('instances', {
  instanceId: text('instance_id').primaryKey(),
  gatewayId: text('gateway_id').notNull(),
  enrolledAt: integer('enrolled_at').notNull(),
})

/** How many instances a gateway may have, and from where. `addresses` is JSON; null means any. */
export const gatewayBounds = sqliteTable('gateway_bounds', {
  gatewayId: text('gateway_id').primaryKey(),
  maxInstances: integer('max_instances'),
  addresses: text('addresses'),
})

/** The names of gateways; the state, which every host has, holds only a digest of each. */
export const gatewayNames = sqliteTable('gateway_names', {
  id: text('id').primaryKey(),
  name: text('name').notNull(),
})

/**
 * The newest head of the state that a control plane has seen. A state that does not know it was restored from an older
 * copy, or is another one.
 */
export const knownStateHead = sqliteTable(
  'known_state_head',
  {
    id: integer('id').primaryKey(),
    version: integer('version').notNull(),
    nonce: text('nonce').notNull(),
    history: text('history').notNull(),
  },
  () => [check('known_state_head_one_row', sql`id = 1`)],
)
