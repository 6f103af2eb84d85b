/** The event log, what proves it, its sums, and exports of it. */
import { sql } from 'drizzle-orm'
import { blob, check, index, integer, primaryKey, real, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'

/**
 * One row: the position of the next record, how often segments were merged (a reader that reads several times sees that
 * blocks have moved), and the newest receipt of all that retention has removed.
 */
export const eventLog = sqliteTable(
  'event_log',
  {
    id: integer('id').primaryKey(),
    nextPosition: integer('next_position').notNull(),
    merges: integer('merges').notNull().default(0),
    removedUntil: integer('removed_until').notNull().default(0),
  },
  () => [check('event_log_one_row', sql`id = 1`)],
)

/**
 * Stretches of the event log (events/log/README.md). Positions are contiguous over the whole table. `received_at` is the
 * newest receipt of its records. `header` and `ids` are the index of the segment, each with a checksum.
 */
export const eventSegments = sqliteTable('event_segments', {
  firstPosition: integer('first_position').primaryKey(),
  records: integer('records').notNull(),
  receivedAt: integer('received_at').notNull(),
  header: blob('header', { mode: 'buffer' }).notNull(),
  ids: blob('ids', { mode: 'buffer' }).notNull(),
})

/**
 * The records of a segment, compressed some at a time, with the times between which they happened; `bytes` is the length
 * of their text.
 */
export const eventBlocks = sqliteTable(
  'event_blocks',
  {
    firstPosition: integer('first_position').primaryKey(),
    segment: integer('segment').notNull(),
    ordinal: integer('ordinal').notNull(),
    records: integer('records').notNull(),
    bytes: integer('bytes').notNull(),
    firstAt: integer('first_at').notNull(),
    lastAt: integer('last_at').notNull(),
    places: blob('places', { mode: 'buffer' }).notNull(),
    body: blob('body', { mode: 'buffer' }).notNull(),
  },
  (table) => [
    index('event_blocks_segment').on(table.segment, table.ordinal),
    index('event_blocks_end').on(table.lastAt, table.firstPosition),
    index('event_blocks_start').on(table.firstAt, table.firstPosition),
  ],
)

/** Which segments, and in them which blocks, have events with a value: bit n for block n. */
export const segmentFacets = sqliteTable(
  'segment_facets',
  {
    facet: text('facet').notNull(),
    value: text('value').notNull(),
    segment: integer('segment').notNull(),
    events: integer('events').notNull(),
    blocks: integer('blocks').notNull(),
  },
  (table) => [primaryKey({ columns: [table.facet, table.value, table.segment] })],
)

/** Where the records of a chain are: its first and last number in each segment, and the digest before the first. */
export const segmentChains = sqliteTable(
  'segment_chains',
  {
    chain: text('chain').notNull(),
    firstSeq: integer('first_seq').notNull(),
    lastSeq: integer('last_seq').notNull(),
    segment: integer('segment').notNull(),
    digestBefore: text('digest_before').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.chain, table.firstSeq] }),
    index('segment_chains_segment').on(table.segment),
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
 * What was written with its events and is to be added to the sums, as JSON; `stage` says to how many sums it was added.
 */
export const pendingEventRollups = sqliteTable(
  'pending_event_rollups',
  {
    id: integer('id').primaryKey({ autoIncrement: true }),
    stage: integer('stage').notNull().default(0),
    tallies: text('tallies').notNull(),
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
 * Sums of each session: one row for what one token did under one session id. Times in milliseconds since the epoch, cost
 * in nano-dollars; `models` and `tools` are objects of names and how often each was used, as JSON. Each index after the
 * first serves one filter of the list, the newest first.
 */
export const eventSessions = sqliteTable(
  'event_sessions',
  {
    id: integer('id').primaryKey({ autoIncrement: true }),
    sessionId: text('session_id').notNull(),
    tokenId: text('token_id').notNull(),
    teamId: text('team_id'),
    userId: text('user_id'),
    client: text('client'),
    firstAt: integer('first_at').notNull(),
    lastAt: integer('last_at').notNull(),
    requests: integer('requests').notNull(),
    errors: integer('errors').notNull(),
    findings: integer('findings').notNull(),
    inputTokens: integer('input_tokens').notNull(),
    outputTokens: integer('output_tokens').notNull(),
    cost: integer('cost').notNull(),
    models: text('models').notNull(),
    tools: text('tools').notNull(),
  },
  (table) => [
    uniqueIndex('event_sessions_name').on(table.sessionId, table.tokenId),
    index('event_sessions_all').on(table.lastAt, table.id),
    index('event_sessions_team').on(table.teamId, table.lastAt, table.id),
    index('event_sessions_user').on(table.userId, table.lastAt, table.id),
    index('event_sessions_token').on(table.tokenId, table.lastAt, table.id),
    index('event_sessions_client').on(table.client, table.lastAt, table.id),
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
