/**
 * The `state` database as code sees it: what gateways decide by, replicated to every host (src/README.md, The two
 * databases). The migrations make the tables; a test holds these definitions against them. JSON columns are text here
 * and parsed where they are read. Times are milliseconds since the epoch, money integer nano-units.
 */
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'

export const stateHead = sqliteTable('state_head', {
  id: integer('id').primaryKey(),
  version: integer('version').notNull(),
  nonce: text('nonce').notNull(),
  history: text('history').notNull(),
  readsFrom: text('reads_from').notNull(),
  floor: integer('floor').notNull(),
})

export const changeLog = sqliteTable('change_log', {
  eventId: text('event_id').notNull().unique(),
  version: integer('version').primaryKey(),
  applied: integer('applied').notNull(),
  at: integer('at').notNull(),
  guard: integer('guard').notNull(),
})

export const checkpoints = sqliteTable('checkpoints', {
  id: integer('id').primaryKey(),
  number: integer('number').notNull(),
  keyId: text('key_id').notNull(),
  signature: text('signature').notNull(),
  body: text('body').notNull(),
  version: integer('version').notNull(),
  deleted: integer('deleted').notNull().default(0),
})

export const tokens = sqliteTable('tokens', {
  id: text('id').primaryKey(),
  hash: text('hash').notNull().unique(),
  purpose: text('purpose').notNull(),
  principalType: text('principal_type').notNull(),
  keyClass: text('key_class').notNull(),
  gatewayId: text('gateway_id'),
  teamId: text('team_id'),
  userId: text('user_id'),
  provider: text('provider'),
  modelFilter: text('model_filter'),
  budgetId: text('budget_id'),
  roles: text('roles').notNull(),
  policyIds: text('policy_ids').notNull(),
  accessPolicyIds: text('access_policy_ids').notNull(),
  metadataTrust: text('metadata_trust').notNull(),
  ownerKind: text('owner_kind').notNull(),
  ownerId: text('owner_id').notNull(),
  eventTeamId: text('event_team_id'),
  accountIds: text('account_ids').notNull(),
  maxBudget: integer('max_budget'),
  maxRequests: integer('max_requests'),
  rateLimitRpm: integer('rate_limit_rpm'),
  rateLimitTpm: integer('rate_limit_tpm'),
  expiresAt: integer('expires_at'),
  rotatedAt: integer('rotated_at'),
  revokedAt: integer('revoked_at'),
  version: integer('version').notNull(),
  deleted: integer('deleted').notNull().default(0),
})

export const gateways = sqliteTable('gateways', {
  id: text('id').primaryKey(),
  name: text('name').notNull(),
  spendOwner: text('spend_owner'),
  promptCaching: integer('prompt_caching').notNull().default(0),
  providers: text('providers'),
  version: integer('version').notNull(),
  deleted: integer('deleted').notNull().default(0),
})

export const providers = sqliteTable('providers', {
  id: text('id').primaryKey(),
  name: text('name').notNull(),
  kind: text('kind').notNull(),
  baseUrl: text('base_url'),
  sealedCredentials: text('sealed_credentials'),
  allowUnlistedModels: integer('allow_unlisted_models').notNull().default(0),
  defaultPrice: text('default_price'),
  timeouts: text('timeouts'),
  position: integer('position').notNull(),
  version: integer('version').notNull(),
  deleted: integer('deleted').notNull().default(0),
  origin: text('origin'),
})

export const models = sqliteTable('models', {
  id: text('id').primaryKey(),
  providerId: text('provider_id').notNull(),
  upstreamModel: text('upstream_model'),
  families: text('families'),
  price: text('price'),
  maxOutputTokens: integer('max_output_tokens'),
  fallbacks: text('fallbacks'),
  createdAt: integer('created_at').notNull(),
  version: integer('version').notNull(),
  deleted: integer('deleted').notNull().default(0),
})

export const budgets = sqliteTable('budgets', {
  id: text('id').primaryKey(),
  maxBudget: integer('max_budget').notNull(),
  window: text('window').notNull(),
  scopeKind: text('scope_kind').notNull(),
  scopeId: text('scope_id'),
  version: integer('version').notNull(),
  deleted: integer('deleted').notNull().default(0),
})

export const consumerGroups = sqliteTable('consumer_groups', {
  id: text('id').primaryKey(),
  requestsPerMinute: integer('requests_per_minute'),
  tokensPerMinute: integer('tokens_per_minute'),
  members: text('members').notNull(),
  version: integer('version').notNull(),
  deleted: integer('deleted').notNull().default(0),
})

export const accessPolicies = sqliteTable('access_policies', {
  id: text('id').primaryKey(),
  requestsPerMinute: integer('requests_per_minute'),
  tokensPerMinute: integer('tokens_per_minute'),
  models: text('models'),
  providers: text('providers'),
  version: integer('version').notNull(),
  deleted: integer('deleted').notNull().default(0),
  scope: text('scope').notNull().default('shared'),
})

export const policies = sqliteTable('policies', {
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
  version: integer('version').notNull(),
  deleted: integer('deleted').notNull().default(0),
})

export const grants = sqliteTable('grants', {
  id: text('id').primaryKey(),
  tokenId: text('token_id').notNull(),
  digest: text('digest').notNull(),
  expiresAt: integer('expires_at').notNull(),
  version: integer('version').notNull(),
  deleted: integer('deleted').notNull().default(0),
})

export const accounts = sqliteTable('accounts', {
  id: text('id').primaryKey(),
  maxRequests: integer('max_requests'),
  maxBudget: integer('max_budget'),
  rateLimitRpm: integer('rate_limit_rpm'),
  rateLimitTpm: integer('rate_limit_tpm'),
  version: integer('version').notNull(),
  deleted: integer('deleted').notNull().default(0),
})

export const oauthTokens = sqliteTable('oauth_tokens', {
  id: text('id').primaryKey(),
  hash: text('hash').notNull().unique(),
  grantId: text('grant_id').notNull(),
  clientId: text('client_id').notNull(),
  userId: text('user_id').notNull(),
  scope: text('scope').notNull(),
  permissions: text('permissions').notNull(),
  teamIds: text('team_ids').notNull(),
  resources: text('resources').notNull(),
  expiresAt: integer('expires_at').notNull(),
  revokedAt: integer('revoked_at'),
  version: integer('version').notNull(),
  deleted: integer('deleted').notNull().default(0),
})

export const mcpServers = sqliteTable('mcp_servers', {
  id: text('id').primaryKey(),
  name: text('name').notNull(),
  url: text('url'),
  command: text('command'),
  sealedCredentials: text('sealed_credentials'),
  timeouts: text('timeouts'),
  approval: text('approval').notNull(),
  enabled: integer('enabled').notNull().default(1),
  position: integer('position').notNull(),
  version: integer('version').notNull(),
  deleted: integer('deleted').notNull().default(0),
})

export const mcpApprovals = sqliteTable('mcp_approvals', {
  id: text('id').primaryKey(),
  serverId: text('server_id').notNull(),
  digest: text('digest').notNull(),
  version: integer('version').notNull(),
  deleted: integer('deleted').notNull().default(0),
})

export const mcpBaselines = sqliteTable('mcp_baselines', {
  id: text('id').primaryKey(),
  serverId: text('server_id').notNull(),
  kind: text('kind').notNull(),
  madeAt: integer('made_at').notNull(),
  version: integer('version').notNull(),
  deleted: integer('deleted').notNull().default(0),
})

export const excesses = sqliteTable('excesses', {
  id: text('id').primaryKey(),
  providerId: text('provider_id').notNull(),
  model: text('model').notNull(),
  amount: integer('amount').notNull(),
  version: integer('version').notNull(),
  deleted: integer('deleted').notNull().default(0),
})
