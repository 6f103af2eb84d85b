/**
 * The `ledger` database as code sees it: people, records, sessions, events; never replicated. The migrations make the
 * tables; a test holds these definitions against them. Times are milliseconds since the epoch, money integer nano-units.
 * Longer than most, because it lists every table.
 */
import { integer, primaryKey, real, sqliteTable, text } from 'drizzle-orm/sqlite-core'

export const organizations = sqliteTable('organizations', {
  id: text('id').primaryKey(),
  name: text('name').notNull(),
  single: integer('single').notNull().default(1).unique(),
  createdAt: integer('created_at').notNull(),
})

export const users = sqliteTable('users', {
  id: text('id').primaryKey(),
  email: text('email').notNull().unique(),
  name: text('name').notNull(),
  role: text('role').notNull(),
  status: text('status').notNull(),
  passwordHash: text('password_hash'),
  createdAt: integer('created_at').notNull(),
  version: integer('version').notNull().default(1),
})

export const teams = sqliteTable('teams', {
  id: text('id').primaryKey(),
  name: text('name').notNull().unique(),
  createdAt: integer('created_at').notNull(),
  version: integer('version').notNull().default(1),
})

export const memberships = sqliteTable(
  'memberships',
  {
    teamId: text('team_id').notNull(),
    userId: text('user_id').notNull(),
    createdAt: integer('created_at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.teamId, table.userId] })],
)

export const tokens = sqliteTable('tokens', {
  id: text('id').primaryKey(),
  name: text('name').notNull(),
  tokenPrefix: text('token_prefix').notNull(),
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
  metadata: text('metadata').notNull(),
  ownerKind: text('owner_kind').notNull(),
  ownerId: text('owner_id').notNull(),
  maxBudget: integer('max_budget'),
  maxRequests: integer('max_requests'),
  rateLimitRpm: integer('rate_limit_rpm'),
  rateLimitTpm: integer('rate_limit_tpm'),
  expiresAt: integer('expires_at'),
  rotatedAt: integer('rotated_at'),
  revokedAt: integer('revoked_at'),
  revocation: text('revocation'),
  rotatedFrom: text('rotated_from'),
  rotatedToId: text('rotated_to_id'),
  sourceTokenId: text('source_token_id'),
  createdAt: integer('created_at').notNull(),
  createdBy: text('created_by'),
  lastUsedAt: integer('last_used_at'),
  version: integer('version').notNull(),
  accountId: text('account_id'),
})

/** Kept by triggers on `tokens`; no team is ''. */
export const tokenCounts = sqliteTable(
  'token_counts',
  {
    purpose: text('purpose').notNull(),
    keyClass: text('key_class').notNull(),
    teamId: text('team_id').notNull(),
    count: integer('count').notNull(),
  },
  (table) => [primaryKey({ columns: [table.purpose, table.keyClass, table.teamId] })],
)

export const pendingChanges = sqliteTable('pending_changes', {
  eventId: text('event_id').primaryKey(),
  statements: text('statements').notNull(),
  event: text('event').notNull(),
  createdAt: integer('created_at').notNull(),
})

export const events = sqliteTable('events', {
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
})

export const chains = sqliteTable('chains', {
  chain: text('chain').primaryKey(),
  seq: integer('seq').notNull(),
  digest: text('digest').notNull(),
  updatedAt: integer('updated_at').notNull(),
})

export const checkpointKeys = sqliteTable('checkpoint_keys', {
  id: text('id').primaryKey(),
  publicKey: text('public_key').notNull(),
  createdAt: integer('created_at').notNull(),
})

export const checkpoints = sqliteTable('checkpoints', {
  number: integer('number').primaryKey(),
  at: integer('at').notNull(),
  keyId: text('key_id').notNull(),
  signature: text('signature').notNull(),
  body: text('body').notNull(),
})

export const chainFloors = sqliteTable('chain_floors', {
  chain: text('chain').primaryKey(),
  seq: integer('seq').notNull(),
  keyId: text('key_id').notNull(),
  signature: text('signature').notNull(),
  body: text('body').notNull(),
})

export const guards = sqliteTable('guards', {
  holds: integer('holds').notNull(),
})

export const runtimeSessions = sqliteTable('runtime_sessions', {
  hash: text('hash').primaryKey(),
  tokenId: text('token_id').notNull(),
  gatewayId: text('gateway_id').notNull(),
  instanceId: text('instance_id').notNull(),
  expiresAt: integer('expires_at').notNull(),
  gatewayVersion: text('gateway_version').notNull().default(''),
})

export const workers = sqliteTable('workers', {
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
  hello: integer('hello').notNull().default(0),
  lostAt: integer('lost_at'),
  releasedAt: integer('released_at'),
  greetedAt: integer('greeted_at').notNull().default(0),
  awaited: integer('awaited').notNull().default(0),
  leftAt: integer('left_at'),
  holder: text('holder').notNull().default(''),
  staleAfterMs: integer('stale_after_ms'),
})

export const ledgerMarks = sqliteTable('ledger_marks', {
  writer: text('writer').primaryKey(),
  written: integer('written').notNull(),
  at: integer('at').notNull(),
})

export const peers = sqliteTable('peers', {
  id: text('id').primaryKey(),
  address: text('address').notNull(),
  seenAt: integer('seen_at').notNull(),
})

export const instances = sqliteTable('instances', {
  instanceId: text('instance_id').primaryKey(),
  gatewayId: text('gateway_id').notNull(),
  enrolledAt: integer('enrolled_at').notNull(),
})

export const gatewayBounds = sqliteTable('gateway_bounds', {
  gatewayId: text('gateway_id').primaryKey(),
  maxInstances: integer('max_instances'),
  addresses: text('addresses'),
})

export const stateSeen = sqliteTable('state_seen', {
  id: integer('id').primaryKey(),
  version: integer('version').notNull(),
  nonce: text('nonce').notNull(),
  history: text('history').notNull(),
})

export const cuts = sqliteTable('cuts', {
  eventId: text('event_id').primaryKey(),
  hashes: text('hashes').notNull(),
  at: integer('at').notNull(),
})

export const usageAnswers = sqliteTable(
  'usage_answers',
  {
    account: text('account').notNull(),
    worker: text('worker').notNull(),
    rounds: integer('rounds').notNull(),
    granted: integer('granted').notNull(),
    returned: integer('returned').notNull(),
    settled: integer('settled').notNull(),
    open: integer('open').notNull(),
    told: integer('told').notNull(),
  },
  (table) => [primaryKey({ columns: [table.account, table.worker] })],
)

export const usageCells = sqliteTable(
  'usage_cells',
  {
    account: text('account').notNull(),
    worker: text('worker').notNull(),
    granted: integer('granted').notNull().default(0),
    returned: integer('returned').notNull().default(0),
    settled: integer('settled').notNull().default(0),
    rounds: integer('rounds').notNull().default(0),
  },
  (table) => [primaryKey({ columns: [table.account, table.worker] })],
)

export const sourceAccounts = sqliteTable(
  'source_accounts',
  {
    tokenId: text('token_id').notNull(),
    accountId: text('account_id').notNull(),
  },
  (table) => [primaryKey({ columns: [table.tokenId, table.accountId] })],
)

export const usageAccounts = sqliteTable('usage_accounts', {
  account: text('account').primaryKey(),
  ownerId: text('owner_id'),
  kind: text('kind').notNull(),
  settled: integer('settled').notNull().default(0),
  exhaustedAt: integer('exhausted_at'),
  refused: integer('refused').notNull().default(0),
  refusedTold: integer('refused_told').notNull().default(0),
})

export const usageTotals = sqliteTable('usage_totals', {
  accountId: text('account_id').primaryKey(),
  requests: integer('requests').notNull(),
  spend: integer('spend').notNull(),
})

export const usageExcesses = sqliteTable(
  'usage_excesses',
  {
    providerId: text('provider_id').notNull(),
    model: text('model').notNull(),
    amount: integer('amount').notNull(),
    told: integer('told').notNull().default(0),
    tokenId: text('token_id'),
    at: integer('at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.providerId, table.model] })],
)

export const secrets = sqliteTable('secrets', {
  name: text('name').primaryKey(),
  sealed: text('sealed').notNull(),
  createdAt: integer('created_at').notNull(),
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
  (table) => [primaryKey({ columns: [table.principal, table.idempotencyKey] })],
)

export const userSessions = sqliteTable('user_sessions', {
  id: text('id').primaryKey(),
  hash: text('hash').notNull().unique(),
  userId: text('user_id').notNull(),
  kind: text('kind').notNull(),
  program: text('program'),
  createdAt: integer('created_at').notNull(),
  lastUsedAt: integer('last_used_at').notNull(),
  expiresAt: integer('expires_at').notNull(),
})

export const programCodes = sqliteTable('program_codes', {
  hash: text('hash').primaryKey(),
  userId: text('user_id').notNull(),
  clientId: text('client_id').notNull(),
  redirectUri: text('redirect_uri').notNull(),
  codeChallenge: text('code_challenge').notNull(),
  tokenName: text('token_name'),
  expiresAt: integer('expires_at').notNull(),
  usedAt: integer('used_at'),
  gaveKind: text('gave_kind'),
  gaveId: text('gave_id'),
  replayedAt: integer('replayed_at'),
})

export const signInAttempts = sqliteTable('sign_in_attempts', {
  key: text('key').primaryKey(),
  attempts: integer('attempts').notNull(),
  blockedUntil: integer('blocked_until').notNull(),
  lastAt: integer('last_at').notNull(),
})

export const setupLinks = sqliteTable('setup_links', {
  hash: text('hash').primaryKey(),
  userId: text('user_id').notNull(),
  expiresAt: integer('expires_at').notNull(),
  usedAt: integer('used_at'),
})

export const limitNames = sqliteTable('limit_names', {
  id: text('id').primaryKey(),
  kind: text('kind').notNull(),
  name: text('name').notNull(),
  createdAt: integer('created_at').notNull(),
})

export const gatewayNames = sqliteTable('gateway_names', {
  id: text('id').primaryKey(),
  name: text('name').notNull(),
})

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
  (table) => [primaryKey({ columns: [table.account, table.worker] })],
)
export const policies = sqliteTable('policies', {
  id: text('id').primaryKey(),
  name: text('name').notNull(),
  createdAt: integer('created_at').notNull(),
  createdBy: text('created_by').notNull(),
  version: integer('version').notNull(),
  deletedAt: integer('deleted_at'),
})

export const escalationArrivals = sqliteTable('escalation_arrivals', {
  eventId: text('event_id').primaryKey(),
  body: text('body').notNull(),
  receivedAt: integer('received_at').notNull(),
})

export const escalations = sqliteTable('escalations', {
  id: text('id').primaryKey(),
  state: text('state').notNull(),
  tokenId: text('token_id').notNull(),
  userId: text('user_id'),
  teamId: text('team_id'),
  gatewayId: text('gateway_id'),
  policyId: text('policy_id').notNull(),
  reasonCode: text('reason_code').notNull(),
  digest: text('digest').notNull(),
  request: text('request').notNull(),
  attempts: integer('attempts').notNull(),
  queuedAt: integer('queued_at').notNull(),
  expiresAt: integer('expires_at').notNull(),
  lastAttemptAt: integer('last_attempt_at').notNull(),
  claimedBy: text('claimed_by'),
  claimedAt: integer('claimed_at'),
  resolution: text('resolution'),
  note: text('note'),
  resolvedBy: text('resolved_by'),
  resolvedAt: integer('resolved_at'),
  grantId: text('grant_id'),
  grantExpiresAt: integer('grant_expires_at'),
  version: integer('version').notNull(),
})

export const escalationAttempts = sqliteTable('escalation_attempts', {
  id: text('id').primaryKey(),
  escalationId: text('escalation_id').notNull(),
})

export const eventRollupArrivals = sqliteTable('event_rollup_arrivals', {
  id: integer('id').primaryKey({ autoIncrement: true }),
  stage: integer('stage').notNull().default(0),
  receivedAt: integer('received_at').notNull(),
  outcomes: text('outcomes').notNull(),
})

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
  (table) => [primaryKey({ columns: [table.kind, table.step, table.scope, table.at, table.key, table.verdict] })],
)

export const exportJobs = sqliteTable('export_jobs', {
  id: text('id').primaryKey(),
  state: text('state').notNull(),
  format: text('format').notNull(),
  since: integer('since').notNull(),
  until: integer('until'),
  sees: text('sees').notNull(),
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
})

export const oauthClients = sqliteTable('oauth_clients', {
  id: text('id').primaryKey(),
  name: text('name').notNull(),
  redirectUris: text('redirect_uris').notNull(),
  scope: text('scope').notNull(),
  createdAt: integer('created_at').notNull(),
  createdBy: text('created_by').notNull(),
  deactivatedAt: integer('deactivated_at'),
  version: integer('version').notNull().default(1),
})

export const oauthGrants = sqliteTable('oauth_grants', {
  id: text('id').primaryKey(),
  clientId: text('client_id').notNull(),
  userId: text('user_id').notNull(),
  scope: text('scope').notNull(),
  resources: text('resources').notNull(),
  codeHash: text('code_hash').notNull().unique(),
  redirectUri: text('redirect_uri').notNull(),
  codeChallenge: text('code_challenge').notNull(),
  codeExpiresAt: integer('code_expires_at').notNull(),
  codeUsedAt: integer('code_used_at'),
  createdAt: integer('created_at').notNull(),
  expiresAt: integer('expires_at').notNull(),
  revokedAt: integer('revoked_at'),
  endedAt: integer('ended_at'),
})

export const oauthRefreshTokens = sqliteTable('oauth_refresh_tokens', {
  hash: text('hash').primaryKey(),
  grantId: text('grant_id').notNull(),
  expiresAt: integer('expires_at').notNull(),
  usedAt: integer('used_at'),
})

export const oauthFollowups = sqliteTable('oauth_followups', {
  userId: text('user_id').primaryKey(),
  marks: integer('marks').notNull().default(1),
  markedAt: integer('marked_at').notNull(),
})

export const mcpOffers = sqliteTable('mcp_offers', {
  id: integer('id').primaryKey(),
  serverId: text('server_id').notNull(),
  kind: text('kind').notNull(),
  name: text('name').notNull(),
  digest: text('digest').notNull(),
  definition: text('definition').notNull(),
  gatewayId: text('gateway_id'),
  firstSeenAt: integer('first_seen_at').notNull(),
})
