-- What gateways decide by. Copied to every host: no name, metadata, creator, prefix or last use belongs here
-- (fleet/README.md, Trust). Every row has the version that last changed it; a deletion is a row with deleted = 1.
create table state_head (
  id integer primary key check (id = 1),
  version integer not null,
  nonce text not null,
  history text not null,
  reads_from text not null,
  floor integer not null
);

-- Which change of the ledger made it here (events/README.md, A change and its event). A change whose guard does not
-- hold breaks the check and with it the transaction; a settled-as-lost change is a row with applied = 0, which its late
-- writer trips over.
create table change_log (
  event_id text primary key,
  version integer not null,
  applied integer not null,
  at integer not null,
  guard integer not null check (guard = 1)
);

create table tokens (
  id text primary key,
  hash text not null unique,
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
  owner_kind text not null,
  owner_id text not null,
  event_team_id text,
  account_ids text not null,
  max_budget integer,
  max_requests integer,
  rate_limit_rpm integer,
  rate_limit_tpm integer,
  expires_at integer,
  rotated_at integer,
  revoked_at integer,
  version integer not null,
  deleted integer not null default 0
);
create index tokens_version on tokens (version);

create table gateways (
  id text primary key,
  name text not null,
  spend_owner text,
  prompt_caching integer not null default 0,
  providers text,
  version integer not null,
  deleted integer not null default 0
);
create index gateways_version on gateways (version);

create table providers (
  id text primary key,
  name text not null,
  kind text not null,
  base_url text,
  sealed_credentials text,
  allow_unlisted_models integer not null default 0,
  default_price text,
  timeouts text,
  position integer not null,
  version integer not null,
  deleted integer not null default 0
);
create index providers_version on providers (version);

create table models (
  id text primary key,
  provider_id text not null,
  upstream_model text,
  families text,
  price text,
  max_output_tokens integer,
  fallbacks text,
  created_at integer not null,
  version integer not null,
  deleted integer not null default 0
);
create index models_version on models (version);
