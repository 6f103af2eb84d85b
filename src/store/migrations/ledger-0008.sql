-- What limits are called.
create table limit_names (
  id text primary key,
  kind text not null,
  name text not null,
  created_at integer not null
);
create index limit_names_kind on limit_names (kind, id);
create index limit_names_name on limit_names (kind, name);

-- Requests or tokens a minute as slots: how many each lane holds of each limit, and how many came back from lanes that
-- are gone, each with the instant from which it may be used again (protocols section 2, rule 21).
create table rate_holdings (
  account text not null,
  lane text not null,
  slots integer not null,
  beat_at integer not null,
  primary key (account, lane)
);
create index rate_holdings_lane on rate_holdings (lane);
