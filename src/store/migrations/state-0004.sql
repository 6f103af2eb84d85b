-- Limits beside a token's own: budgets, consumer groups, access policies. Their names are the ledger's.
create table budgets (
  id text primary key,
  max_budget integer not null,
  window text not null,
  scope_kind text not null,
  scope_id text,
  version integer not null,
  deleted integer not null default 0
);
create index budgets_version on budgets (version);

create table consumer_groups (
  id text primary key,
  requests_per_minute integer,
  tokens_per_minute integer,
  members text not null,
  version integer not null,
  deleted integer not null default 0
);
create index consumer_groups_version on consumer_groups (version);

create table access_policies (
  id text primary key,
  requests_per_minute integer,
  tokens_per_minute integer,
  models text,
  providers text,
  version integer not null,
  deleted integer not null default 0
);
create index access_policies_version on access_policies (version);
