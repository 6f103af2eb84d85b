/** The event log, what proves it, its sums, and exports of it. */
import { sql } from 'drizzle-orm'
import { index, integer, primaryKey, real, sqliteTable, text, unique } from 'drizzle-orm/sqlite-core'

/**
 * Rows are never updated. `body` is the exact text its digest was taken over; the other columns are read from it. A
 * body that is kept without being understood may be no JSON. The partial indexes find one exchange, token, model or
 * reason among very many events, and what was refused of one model, token or team.
 */
export const events = sqliteTable(
  'events',
  {
    position: integer('position').primaryKey({ autoIncrement: true }),
    eventId: text('event_id').notNull().unique(),
    chain: text('chain').notNull(),
    seq: integer('seq').notNull(),
    digest: text('digest').notNull(),
    body: text('body').notNull(),
    eventType: text('event_type').notNull(),
    timestamp: integer('timestamp').notNull(),
    requestId: text('request_id'),
    verdict: text('verdict').notNull(),
    reasonCode: text('reason_code').notNull(),
    gatewayId: text('gateway_id'),
    teamId: text('team_id'),
    tokenId: text('token_id'),
    receivedAt: integer('received_at').notNull(),
    exchangeId: text('exchange_id').generatedAlwaysAs(
      sql`case when json_valid(body) then body ->> '$.exchange_id' end`,
      { mode: 'virtual' },
    ),
    model: text('model').generatedAlwaysAs(sql`case when json_valid(body) then body ->> '$.details.model' end`, {
      mode: 'virtual',
    }),
  },
  (table) => [
    unique('events_chain_seq').on(table.chain, table.seq),
    index('events_type').on(table.eventType, table.position),
    index('events_verdict').on(table.verdict, table.position),
    index('events_gateway').on(table.gatewayId, table.position),
    index('events_team').on(table.teamId, table.position),
    index('events_timestamp').on(table.timestamp),
    index('events_request').on(table.requestId),
    index('events_exchange').on(table.exchangeId, table.position).where(sql`exchange_id is not null`),
    index('events_model').on(table.model, table.position).where(sql`model is not null`),
    index('events_token').on(table.tokenId, table.position).where(sql`token_id is not null`),
    index('events_reason').on(table.reasonCode, table.position).where(sql`reason_code <> 'ok'`),
    index('events_refused_model')
      .on(table.model, table.verdict, table.position)
      .where(sql`verdict <> 'allow' and model is not null`),
    index('events_refused_token')
      .on(table.tokenId, table.verdict, table.position)
      .where(sql`verdict <> 'allow' and token_id is not null`),
    index('events_refused_team').on(table.teamId, table.verdict, table.position).where(sql`verdict <> 'allow'`),
  ],
)

export const chains = sqliteTable('chains', {
  chain: text('chain').primaryKey(),
  seq: integer('seq').notNull(),
  digest: text('digest').notNull(),
  updatedAt: integer('updated_at').notNull(),
})

/** The public keys of control planes, by the SHA-256 of each (events/proof/README.md). */
export const checkpointKeys = sqliteTable('checkpoint_keys', {
  id: text('id').primaryKey(),
  publicKey: text('public_key').notNull(),
  createdAt: integer('created_at').notNull(),
})

/** Signed heads of all chains. `body` is the exact text that was signed. */
export const checkpoints = sqliteTable('checkpoints', {
  number: integer('number').primaryKey(),
  at: integer('at').notNull(),
  keyId: text('key_id').notNull(),
  signature: text('signature').notNull(),
  body: text('body').notNull(),
})

/** Where a chain begins after retention removed its older events; signed in the same way. */
export const chainFloors = sqliteTable('chain_floors', {
  chain: text('chain').primaryKey(),
  seq: integer('seq').notNull(),
  keyId: text('key_id').notNull(),
  signature: text('signature').notNull(),
  body: text('body').notNull(),
})

/**
 * What was written with its events and is to be added to the sums, as JSON; `stage` says of how many sums it is part.
 */
export const pendingEventRollups = sqliteTable(
  'pending_event_rollups',
  {
    id: integer('id').primaryKey({ autoIncrement: true }),
    stage: integer('stage').notNull().default(0),
    receivedAt: integer('received_at').notNull(),
    outcomes: text('outcomes').notNull(),
  },
  (table) => [index('pending_event_rollups_stage').on(table.stage, table.id)],
)

/**
 * Sums for charts (events/rollups/rollup.ts has the kinds, scopes and keys). `at` is where the minute, hour or day
 * begins; cost is in nano-dollars; latency and first_token are sketches, as JSON. The two indexes serve retention: no
 * chart uses them, so that none reads all kinds and scopes of a window.
 */
export const eventRollups = sqliteTable(
  'event_rollups',
  {
    kind: text('kind').notNull(),
    step: text('step').notNull(),
    scope: text('scope').notNull(),
    at: integer('at').notNull(),
    key: text('key').notNull(),
    verdict: text('verdict').notNull(),
    requests: integer('requests').notNull(),
    inputTokens: integer('input_tokens').notNull(),
    outputTokens: integer('output_tokens').notNull(),
    cost: integer('cost').notNull(),
    latency: text('latency'),
    firstToken: text('first_token'),
  },
  (table) => [
    primaryKey({ columns: [table.kind, table.step, table.scope, table.at, table.key, table.verdict] }),
    index('event_rollups_minutes').on(table.at).where(sql`step = 'minute'`),
    index('event_rollups_longer').on(table.at).where(sql`step <> 'minute'`),
  ],
)

/**
 * Exports made in the background. `sees` says whose events the caller saw at that time; `last_position` is where the
 * events ended then. The file is in the data directory of the control plane `owner`. A job that is processing was last
 * seen alive at `heartbeat_at`. The events of its later steps name the call that asked for it, `request_id`.
 */
export const exportJobs = sqliteTable(
  'export_jobs',
  {
    id: text('id').primaryKey(),
    state: text('state').notNull(),
    format: text('format').notNull(),
    since: integer('since').notNull(),
    until: integer('until'),
    visibility: text('visibility').notNull(),
    lastPosition: integer('last_position').notNull(),
    createdBy: text('created_by').notNull(),
    teamId: text('team_id'),
    createdAt: integer('created_at').notNull(),
    owner: text('owner'),
    ownerAddress: text('owner_address'),
    heartbeatAt: integer('heartbeat_at'),
    progress: real('progress').notNull().default(0),
    events: integer('events').notNull().default(0),
    bytes: integer('bytes').notNull().default(0),
    error: text('error'),
    finishedAt: integer('finished_at'),
    expiresAt: integer('expires_at'),
    requestId: text('request_id'),
  },
  (table) => [
    index('export_jobs_created_by').on(table.createdBy, table.id),
    index('export_jobs_state').on(table.state, table.id),
  ],
)
