/** Usage: what workers were granted, have returned and settled. The names of limits. */
import { sql } from 'drizzle-orm'
import { check, index, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/**
 * What each worker was granted, returned and settled of each account (usage/lease/README.md). Counters only grow. The
 * checks hold, whatever the code does, that a worker never settles more than it was granted. What was granted and came
 * back is taken off both counters, 2^40 at a time, so that they stay exact integers; `rounds` counts how often.
 */
export const leaseBalances = sqliteTable(
  'lease_balances',
  {
    account: text('account').notNull(),
    worker: text('worker').notNull(),
    granted: integer('granted').notNull().default(0),
    returned: integer('returned').notNull().default(0),
    settled: integer('settled').notNull().default(0),
    rounds: integer('rounds').notNull().default(0),
  },
  (table) => [
    primaryKey({ columns: [table.account, table.worker] }),
    index('lease_balances_worker').on(table.worker),
    check('lease_balances_granted', sql`granted >= 0`),
    check('lease_balances_returned', sql`returned >= 0`),
    check('lease_balances_settled', sql`settled >= 0`),
    check('lease_balances_within_grant', sql`returned + settled <= granted`),
  ],
)

/**
 * The sum of an account's balances, and which part of it is recorded in events. `owner_id` is the token account's own
 * id. An account with less left than its cheapest request can cost is exhausted, for good. `refused` is what workers
 * claimed beyond what they had been granted. `dimension_value` is that of the dimension, for a budget for each value of one.
 */
export const usageAccounts = sqliteTable(
  'usage_accounts',
  {
    account: text('account').primaryKey(),
    ownerId: text('owner_id'),
    kind: text('kind').notNull(),
    settled: integer('settled').notNull().default(0),
    exhaustedAt: integer('exhausted_at'),
    refused: integer('refused').notNull().default(0),
    refusedRecorded: integer('refused_recorded').notNull().default(0),
    dimensionValue: text('dimension_value'),
  },
  (table) => [
    index('usage_accounts_owner').on(table.ownerId),
    index('usage_accounts_exhausted').on(table.kind, table.ownerId).where(sql`exhausted_at is not null`),
  ],
)

/**
 * What a worker answered when another control plane than its own called an account back: the caller reads it here.
 * `told` grows with each answer.
 */
export const recallAnswers = sqliteTable(
  'recall_answers',
  {
    account: text('account').notNull(),
    worker: text('worker').notNull(),
    rounds: integer('rounds').notNull(),
    granted: integer('granted').notNull(),
    returned: integer('returned').notNull(),
    settled: integer('settled').notNull(),
    open: integer('open').notNull(),
    answerNumber: integer('answer_number').notNull(),
  },
  (table) => [primaryKey({ columns: [table.account, table.worker] })],
)

/**
 * What batches hold (usage/batches/README.md): the limits were charged the most that a batch can cost when it was made,
 * and get the rest back when it is settled, once. `held` is a list of {account, amount}; `attribution` is that of the
 * request's event. A worker follows the batch until `claimed_until`.
 */
export const batchHolds = sqliteTable(
  'batch_holds',
  {
    id: text('id').primaryKey(),
    gatewayId: text('gateway_id').notNull(),
    tokenId: text('token_id'),
    attribution: text('attribution').notNull(),
    requestId: text('request_id'),
    batch: text('batch').notNull(),
    held: text('held').notNull(),
    createdAt: integer('created_at').notNull(),
    claimedBy: text('claimed_by').notNull().default(''),
    claimedUntil: integer('claimed_until').notNull().default(0),
    settledAt: integer('settled_at'),
  },
  (table) => [
    index('batch_holds_open').on(table.gatewayId, table.createdAt).where(sql`settled_at is null`),
    index('batch_holds_settled').on(table.settledAt).where(sql`settled_at is not null`),
  ],
)

/**
 * Files and batches that were made, so that their owner can list them (usage/batches/README.md): where they are, as
 * their sealed ids say it. `id` is that of the exchange that made it, so that it grows with time.
 */
export const batchObjects = sqliteTable(
  'batch_objects',
  {
    id: text('id').primaryKey(),
    owner: text('owner').notNull(),
    kind: text('kind').notNull(),
    place: text('place').notNull(),
    createdAt: integer('created_at').notNull(),
  },
  (table) => [
    index('batch_objects_owner').on(table.owner, table.kind, table.id),
    index('batch_objects_created_at').on(table.createdAt),
  ],
)

/** What settled batches gave back to an account, in all; less than nothing where they cost more than they held. */
export const batchReturns = sqliteTable('batch_returns', {
  account: text('account').primaryKey(),
  amount: integer('amount').notNull(),
})

/** What each token account has used, with a limit or without: requests that were sent on, and nano-dollars. */
export const usageTotals = sqliteTable('usage_totals', {
  accountId: text('account_id').primaryKey(),
  requests: integer('requests').notNull(),
  spend: integer('spend').notNull(),
})

/**
 * The most, in nano-dollars, that a provider has charged for one request beyond the bound of its list price; `told`
 * is the amount that the state and an event already have. The token is the one whose request it was.
 */
export const priceExcesses = sqliteTable(
  'price_excesses',
  {
    providerId: text('provider_id').notNull(),
    model: text('model').notNull(),
    amount: integer('amount').notNull(),
    published: integer('published').notNull().default(0),
    tokenId: text('token_id'),
    at: integer('at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.providerId, table.model] }),
    index('price_excesses_token').on(table.tokenId),
  ],
)

/**
 * Requests or tokens a minute as slots (usage/rate/README.md): what each worker was granted and has returned of each
 * limit, in counters that only grow, and the last recall of slots that it followed. A worker without a heartbeat loses
 * what it holds. `cooling`: when slots in use can be used again, a list of [milliseconds since the epoch, slots].
 * `kind` other than held: slots that a worker returned while they were in use, which rest until `free_at`, so that a
 * restart costs what was used and not what was held. `holder` is the worker; `run` grows with each of its processes.
 */
export const rateHoldings = sqliteTable(
  'rate_holdings',
  {
    account: text('account').notNull(),
    worker: text('worker').notNull(),
    granted: integer('granted').notNull(),
    returned: integer('returned').notNull(),
    heartbeatAt: integer('heartbeat_at').notNull(),
    recalledAt: integer('recalled_at').notNull().default(0),
    process: text('process').notNull(),
    cooling: text('cooling').notNull().default('[]'),
    kind: text('kind').notNull().default('held'),
    holder: text('holder').notNull().default(''),
    run: integer('run').notNull().default(0),
    freeAt: integer('free_at').notNull().default(0),
  },
  (table) => [
    primaryKey({ columns: [table.account, table.worker] }),
    index('rate_holdings_heartbeat_at').on(table.heartbeatAt),
    index('rate_holdings_free_at').on(table.freeAt).where(sql`kind <> 'held'`),
    check('rate_holdings_within_grant', sql`returned <= granted`),
  ],
)

export const limitNames = sqliteTable(
  'limit_names',
  {
    id: text('id').primaryKey(),
    kind: text('kind').notNull(),
    name: text('name').notNull(),
    createdAt: integer('created_at').notNull(),
  },
  (table) => [index('limit_names_kind').on(table.kind, table.id), index('limit_names_name').on(table.kind, table.name)],
)
