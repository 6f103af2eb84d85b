-- Everything that no gateway decides by: people, records, sessions, events. Never replicated.
create table organizations (
  id text primary key,
  name text not null,
  single integer not null default 1 unique check (single = 1),
  created_at integer not null
);

create table users (
  id text primary key,
  email text not null unique,
  name text not null,
  role text not null,
  status text not null,
  password_hash text,
  created_at integer not null
);

create table teams (
  id text primary key,
  name text not null unique,
  created_at integer not null
);

create table memberships (
  team_id text not null references teams (id),
  user_id text not null references users (id),
  created_at integer not null,
  primary key (team_id, user_id)
);
create index memberships_user on memberships (user_id);

-- The whole record of a token but its hash, which only the state database holds.
create table tokens (
  id text primary key,
  name text not null,
  token_prefix text not null,
  purpose text not null,
  principal_type text not null,
  key_class text not null,
  gateway_id text,
  team_id text,
  user_id text,
  provider text,
  model_filter text,
  budget_id text,
  roles text not null,
  policy_ids text not null,
  access_policy_ids text not null,
  metadata_trust text not null,
  metadata text not null,
  owner_kind text not null,
  owner_id text not null,
  max_budget integer,
  max_requests integer,
  rate_limit_rpm integer,
  rate_limit_tpm integer,
  expires_at integer,
  rotated_at integer,
  revoked_at integer,
  revocation text,
  rotated_from text,
  rotated_to_id text,
  source_token_id text,
  created_at integer not null,
  created_by text,
  last_used_at integer,
  version integer not null
);
create index tokens_team on tokens (team_id);
create index tokens_gateway on tokens (gateway_id);

-- A change that was announced here and not yet confirmed from the state database (events/README.md, A change and its
-- event).
create table pending_changes (
  event_id text primary key,
  statements text not null,
  event text not null,
  created_at integer not null
);

-- Rows are never updated. `body` is the exact text its digest was taken over; the columns are read from it.
create table events (
  position integer primary key autoincrement,
  event_id text not null unique,
  chain text not null,
  seq integer not null,
  digest text not null,
  body text not null,
  event_type text not null,
  timestamp integer not null,
  request_id text,
  verdict text not null,
  reason_code text not null,
  gateway_id text,
  team_id text,
  token_id text,
  received_at integer not null,
  unique (chain, seq)
);
create index events_type on events (event_type, position);
create index events_verdict on events (verdict, position);
create index events_gateway on events (gateway_id, position);
create index events_team on events (team_id, position);
create index events_timestamp on events (timestamp);
create index events_request on events (request_id);

create table chains (
  chain text primary key,
  seq integer not null,
  digest text not null,
  updated_at integer not null
);

-- Holds no row: an insert whose guard does not hold breaks the check and with it the transaction.
create table guards (holds integer not null check (holds = 1));

create table runtime_sessions (
  hash text primary key,
  token_id text not null,
  gateway_id text not null,
  instance_id text not null,
  expires_at integer not null
);

create table workers (
  worker text primary key,
  gateway_id text not null,
  instance_id text not null,
  worker_number integer not null,
  stream_id text not null,
  gateway_version text not null,
  acknowledged_version integer not null,
  last_heartbeat_at integer not null,
  connected_at integer not null
);

-- Values sealed under the master key: the gateway's runtime token, providers' data keys, the prompt-hash key.
create table secrets (
  name text primary key,
  sealed text not null,
  created_at integer not null
);

create table idempotency_keys (
  principal text not null,
  idempotency_key text not null,
  route text not null,
  body_hash text not null,
  status integer,
  answer text,
  secret_resource_id text,
  created_at integer not null,
  primary key (principal, idempotency_key)
);
create index idempotency_keys_created on idempotency_keys (created_at);
