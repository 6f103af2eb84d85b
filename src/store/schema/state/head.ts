/** The head of the state, the changes that made it, and the newest checkpoint of the events. */
import { sql } from 'drizzle-orm'
import { check, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { versioned } from './versioned.ts'

/**
 * One row, whose version every change raises. `history` is a new one in a new database: gateways that hold the state of
 * another one notice. `reads_from` is the oldest version of Gatehouse that reads this state. The rows of
 * deletions older than the version `deletions_kept_from` are gone: a reader that is older reads everything.
 */
export const stateHead = sqliteTable(
  'state_head',
  {
    id: integer('id').primaryKey(),
    version: integer('version').notNull(),
    nonce: text('nonce').notNull(),
    history: text('history').notNull(),
    readsFrom: text('reads_from').notNull(),
    deletionsKeptFrom: integer('deletions_kept_from').notNull(),
  },
  () => [check('state_head_one_row', sql`id = 1`)],
)

/**
 * Which changes of the ledger arrived here (events/README.md, A change and its event). A change whose guard does not
 * hold breaks the check and with it the transaction. A change that was settled as lost is a row with applied = 0,
 * which makes its late writer fail. A change writes a page of 4 KiB for each tree that it touches, and every replica
 * copies it: the version is the primary key because that needs no further index.
 */
export const changeLog = sqliteTable(
  'change_log',
  {
    eventId: text('event_id').notNull().unique(),
    version: integer('version').primaryKey(),
    applied: integer('applied').notNull(),
    at: integer('at').notNull(),
    guard: integer('guard').notNull(),
  },
  () => [check('change_log_guard_holds', sql`guard = 1`)],
)

/** The newest signed heads of all chains, in one row: every host holds a copy of it. Number 0 means none yet. */
export const checkpoints = sqliteTable(
  'checkpoints',
  {
    id: integer('id').primaryKey(),
    number: integer('number').notNull(),
    keyId: text('key_id').notNull(),
    signature: text('signature').notNull(),
    body: text('body').notNull(),
    ...versioned,
  },
  () => [check('checkpoints_one_row', sql`id = 1`)],
)
