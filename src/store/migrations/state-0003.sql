-- What policies hold: gateways decide by them. What a person calls a policy is in the ledger.
create table policies (
  id text primary key,
  kind text not null,
  stages text not null,
  config text not null,
  condition text,
  targets text not null,
  position integer not null,
  mode text not null,
  when_broken text not null,
  enabled integer not null,
  version integer not null,
  deleted integer not null default 0
);
create index policies_version on policies (version);

-- A reviewer's leave for one token to send one request once: an account of limit 1 named grant/<id> counts it.
create table grants (
  id text primary key,
  token_id text not null,
  digest text not null,
  expires_at integer not null,
  version integer not null,
  deleted integer not null default 0
);
create index grants_version on grants (version);
create index grants_token on grants (token_id, digest);
