/** Gateways, providers, models and MCP servers, and the policies between them. */
import { sql } from 'drizzle-orm'
import { index, integer, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'
import { list } from '../token-columns.ts'
import { versioned, versionIndex } from './versioned.ts'

/** `name` is a digest: the ledger has the name itself (gateway-name.ts). */
export const gateways = sqliteTable(
  'gateways',
  {
    id: text('id').primaryKey(),
    name: text('name').notNull(),
    spendOwner: text('spend_owner'),
    promptCaching: integer('prompt_caching').notNull().default(0),
    providers: text('providers'),
    ...versioned,
  },
  (table) => [versionIndex('gateways', table.version)],
)

/**
 * `origin` is what a start made the provider from: 'simulator', or the environment variable with its key; null where a
 * person made it. A rename and a deletion keep it, so that a later start finds the record again.
 */
export const providers = sqliteTable(
  'providers',
  {
    id: text('id').primaryKey(),
    name: text('name').notNull(),
    kind: text('kind').notNull(),
    baseUrl: text('base_url'),
    sealedCredentials: text('sealed_credentials'),
    allowUnlistedModels: integer('allow_unlisted_models').notNull().default(0),
    defaultPrice: text('default_price'),
    timeouts: text('timeouts'),
    position: integer('position').notNull(),
    ...versioned,
    origin: text('origin'),
  },
  (table) => [
    versionIndex('providers', table.version),
    uniqueIndex('providers_origin').on(table.origin).where(sql`origin is not null`),
  ],
)

/** `targets` is JSON, null where `provider_id` and `upstream_model` are the only one; else they are the first one's. */
export const models = sqliteTable(
  'models',
  {
    id: text('id').primaryKey(),
    providerId: text('provider_id').notNull(),
    upstreamModel: text('upstream_model'),
    families: text('families'),
    price: text('price'),
    maxOutputTokens: integer('max_output_tokens'),
    fallbacks: text('fallbacks'),
    translation: text('translation'),
    shadow: text('shadow'),
    createdAt: integer('created_at').notNull(),
    ...versioned,
    strategy: text('strategy'),
    targets: text('targets'),
  },
  (table) => [versionIndex('models', table.version)],
)

/**
 * When answers that gateways keep were last cleared: its version says when. The id is a model's, or `*` for all of
 * them.
 */
export const cacheClears = sqliteTable('cache_clears', { id: text('id').primaryKey(), ...versioned }, (table) => [
  versionIndex('cache_clears', table.version),
])

/** What policies do. The ledger has their names. */
export const policies = sqliteTable(
  'policies',
  {
    id: text('id').primaryKey(),
    kind: text('kind').notNull(),
    stages: text('stages').notNull(),
    config: text('config').notNull(),
    condition: text('condition'),
    targets: text('targets').notNull(),
    position: integer('position').notNull(),
    mode: text('mode').notNull(),
    whenBroken: text('when_broken').notNull(),
    enabled: integer('enabled').notNull(),
    ...versioned,
  },
  (table) => [versionIndex('policies', table.version)],
)

/**
 * MCP servers (mcp/README.md). A server has `url`, or `command`, JSON {"program", "args"}. `sealed_credentials` is
 * seal(data key, JSON {"headers", "oauth", "environment"}, id), or null where nothing is secret. `tool_limits` is JSON
 * {tool: {"price_per_call", "requests_per_minute"}}; prices are nano-dollars.
 */
export const mcpServers = sqliteTable(
  'mcp_servers',
  {
    id: text('id').primaryKey(),
    name: text('name').notNull(),
    url: text('url'),
    command: text('command'),
    sealedCredentials: text('sealed_credentials'),
    timeouts: text('timeouts'),
    approval: text('approval').notNull(),
    enabled: integer('enabled').notNull().default(1),
    position: integer('position').notNull(),
    ...versioned,
    quarantined: integer('quarantined').notNull().default(0),
    tools: text('tools').notNull().default('listed'),
    pricePerCall: integer('price_per_call'),
    requestsPerMinute: integer('requests_per_minute'),
    toolLimits: text('tool_limits'),
  },
  (table) => [versionIndex('mcp_servers', table.version)],
)

/** The approved definition of each thing offered, by its digest. The id is a digest of server, kind and name. */
export const mcpApprovals = sqliteTable(
  'mcp_approvals',
  {
    id: text('id').primaryKey(),
    serverId: text('server_id').notNull(),
    digest: text('digest').notNull(),
    ...versioned,
  },
  (table) => [versionIndex('mcp_approvals', table.version), index('mcp_approvals_server').on(table.serverId)],
)

/** When a server's offers of a kind were first read: an offer that comes later is new. */
export const mcpBaselines = sqliteTable(
  'mcp_baselines',
  {
    id: text('id').primaryKey(),
    serverId: text('server_id').notNull(),
    kind: text('kind').notNull(),
    madeAt: integer('made_at').notNull(),
    ...versioned,
  },
  (table) => [versionIndex('mcp_baselines', table.version)],
)

/**
 * Settings that coding agents fetch from a gateway (managed-settings/README.md). `settings` is JSON with the members of
 * each object in order, `checksum` its SHA-256. No `team_ids` means everybody.
 */
export const managedSettings = sqliteTable(
  'managed_settings',
  {
    id: text('id').primaryKey(),
    name: text('name').notNull(),
    teamIds: list('team_ids').notNull(),
    priority: integer('priority').notNull(),
    settings: text('settings').notNull(),
    checksum: text('checksum').notNull(),
    ...versioned,
  },
  (table) => [versionIndex('managed_settings', table.version)],
)
