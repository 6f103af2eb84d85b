-- What limits are called.
create table limit_names (
  id text primary key,
  kind text not null,
  name text not null,
  created_at integer not null
);
create index limit_names_kind on limit_names (kind, id);
create index limit_names_name on limit_names (kind, name);

-- Requests or tokens a minute as slots (usage/rate/README.md): what each worker was granted and has returned of
-- each limit, in counters that only grow, when it last said so, and the last call for slots that it has followed. A worker
-- that is not heard of loses what it holds.
create table rate_holdings (
  account text not null,
  worker text not null,
  granted integer not null,
  returned integer not null,
  heartbeat_at integer not null,
  recalled_at integer not null default 0,
  process text not null,
  primary key (account, worker),
  check (returned <= granted)
);
create index rate_holdings_heartbeat_at on rate_holdings (heartbeat_at);
