-- OAuth 2.0 (oauth/README.md): applications, what people approved for them, and refresh tokens. Codes and refresh
-- tokens are here as SHA-256 only; access tokens are in the state, where gateways find them.
create table oauth_clients (
  id text primary key,
  name text not null,
  -- JSON lists
  redirect_uris text not null,
  scope text not null,
  created_at integer not null,
  created_by text not null,
  deactivated_at integer,
  version integer not null default 1
);

-- One approval by one person: its code, and the family of all tokens that came of it.
create table oauth_grants (
  id text primary key,
  client_id text not null references oauth_clients (id),
  user_id text not null references users (id),
  scope text not null,
  -- JSON list of the resources it is for; empty for all
  resources text not null,
  code_hash text not null unique,
  redirect_uri text not null,
  code_challenge text not null,
  code_expires_at integer not null,
  code_used_at integer,
  created_at integer not null,
  -- The end of the whole family, however often it is refreshed.
  expires_at integer not null,
  revoked_at integer,
  -- Set when the access tokens in the state are revoked too.
  ended_at integer
);
create index oauth_grants_user on oauth_grants (user_id);
create index oauth_grants_expiry on oauth_grants (expires_at);
create index oauth_grants_ending on oauth_grants (revoked_at) where revoked_at is not null and ended_at is null;

create table oauth_refresh_tokens (
  hash text primary key,
  grant_id text not null references oauth_grants (id) on delete cascade,
  expires_at integer not null,
  used_at integer
);
create index oauth_refresh_tokens_grant on oauth_refresh_tokens (grant_id);

-- People whose rights have changed and whose access tokens in the state do not follow yet. `marks` counts the changes,
-- so that one which comes while the tokens are brought up to date is not forgotten with those before it.
create table oauth_followups (
  user_id text primary key,
  marks integer not null default 1,
  marked_at integer not null
);
