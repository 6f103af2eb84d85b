-- OAuth access tokens, by which gateways admit (oauth/README.md). `permissions` is the part of the scope that the
-- person holds, kept current with the person's role and standing; `team_ids` are the person's, the first of them the one
-- whose readers see the token's events. Lists are JSON; no resources means all.
create table oauth_tokens (
  id text primary key,
  hash text not null unique,
  grant_id text not null,
  client_id text not null,
  user_id text not null,
  scope text not null,
  permissions text not null,
  team_ids text not null,
  resources text not null,
  expires_at integer not null,
  revoked_at integer,
  version integer not null,
  deleted integer not null default 0
);
create index oauth_tokens_version on oauth_tokens (version);
create index oauth_tokens_grant on oauth_tokens (grant_id);
create index oauth_tokens_user on oauth_tokens (user_id);
create index oauth_tokens_expiry on oauth_tokens (expires_at);
