/** The limits that requests draw on. Gateways name them in errors; lists are read from the names in the ledger. */
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { versioned, versionIndex } from './versioned.ts'

/**
 * The accounts of tokens: which limits a request draws on (usage/lease/README.md rule 1). An account has the id of the
 * token it was made with. A rotation keeps it; a clone draws on the account of its source beside its own. A token whose
 * account has no row has no limit.
 */
export const accounts = sqliteTable(
  'accounts',
  {
    id: text('id').primaryKey(),
    maxRequests: integer('max_requests'),
    maxBudget: integer('max_budget'),
    rateLimitRpm: integer('rate_limit_rpm'),
    rateLimitTpm: integer('rate_limit_tpm'),
    ...versioned,
  },
  (table) => [versionIndex('accounts', table.version)],
)

export const budgets = sqliteTable(
  'budgets',
  {
    id: text('id').primaryKey(),
    maxBudget: integer('max_budget').notNull(),
    window: text('window').notNull(),
    scopeKind: text('scope_kind').notNull(),
    scopeId: text('scope_id'),
    ...versioned,
    name: text('name').notNull().default(''),
    per: text('per'),
  },
  (table) => [versionIndex('budgets', table.version)],
)

export const consumerGroups = sqliteTable(
  'consumer_groups',
  {
    id: text('id').primaryKey(),
    requestsPerMinute: integer('requests_per_minute'),
    tokensPerMinute: integer('tokens_per_minute'),
    members: text('members').notNull(),
    ...versioned,
    name: text('name').notNull().default(''),
    per: text('per'),
  },
  (table) => [versionIndex('consumer_groups', table.version)],
)

/** `scope`: the rates hold for each token that names the policy (`token`), or for all of them together (`shared`). */
export const accessPolicies = sqliteTable(
  'access_policies',
  {
    id: text('id').primaryKey(),
    requestsPerMinute: integer('requests_per_minute'),
    tokensPerMinute: integer('tokens_per_minute'),
    models: text('models'),
    providers: text('providers'),
    ...versioned,
    scope: text('scope').notNull().default('shared'),
    name: text('name').notNull().default(''),
    per: text('per'),
  },
  (table) => [versionIndex('access_policies', table.version)],
)

/**
 * The most, in nano-dollars, that a provider has charged for one request beyond the bound of its list price. Gateways
 * add it to later bounds of the same provider and model. The id is the provider's id, a slash, and the provider's
 * name of the model; `*` stands for every model of the provider that has no row of its own.
 */
export const excesses = sqliteTable(
  'excesses',
  {
    id: text('id').primaryKey(),
    providerId: text('provider_id').notNull(),
    model: text('model').notNull(),
    amount: integer('amount').notNull(),
    ...versioned,
  },
  (table) => [versionIndex('excesses', table.version)],
)

/**
 * What spend is attributed to beside tokens, teams and people (usage/README.md, Attribution). `source_key` is a name in
 * metadata, of a header or of a claim. `allowed_values` is a JSON list; null allows every value. `per` of a budget, a
 * consumer group or an access policy is the name of one.
 */
export const attributionDimensions = sqliteTable(
  'attribution_dimensions',
  {
    id: text('id').primaryKey(),
    name: text('name').notNull(),
    sourceKind: text('source_kind').notNull(),
    sourceKey: text('source_key').notNull(),
    allowedValues: text('allowed_values'),
    maxValues: integer('max_values').notNull(),
    required: integer('required').notNull(),
    ...versioned,
  },
  (table) => [versionIndex('attribution_dimensions', table.version)],
)
