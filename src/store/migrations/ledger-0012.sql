-- Sums for charts: see events/rollup.ts for what kinds, scopes and keys there are. `at` is
-- where the minute, hour or day begins; cost is in nano-dollars; latency and first_token are sketches, as JSON.
create table event_rollups (
  kind text not null,
  step text not null,
  scope text not null,
  at integer not null,
  key text not null,
  verdict text not null,
  requests integer not null,
  input_tokens integer not null,
  output_tokens integer not null,
  cost integer not null,
  latency text,
  first_token text,
  primary key (kind, step, scope, at, key, verdict)
);
-- For what goes after a while. No chart uses them, so that none walks all kinds and scopes of a window.
create index event_rollups_minutes on event_rollups (at) where step = 'minute';
create index event_rollups_longer on event_rollups (at) where step <> 'minute';

-- What was written with its events and is to be added to the sums, as JSON; `stage` says of how many sums it is part.
create table event_rollup_arrivals (
  id integer primary key autoincrement,
  stage integer not null default 0,
  received_at integer not null,
  outcomes text not null
);
create index event_rollup_arrivals_stage on event_rollup_arrivals (stage, id);

-- One exchange, token, model or reason among very many events. What is kept without being understood may be no JSON.
alter table events add column exchange_id text generated always as
  (case when json_valid(body) then body ->> '$.exchange_id' end) virtual;
alter table events add column model text generated always as
  (case when json_valid(body) then body ->> '$.details.model' end) virtual;
create index events_exchange on events (exchange_id, position) where exchange_id is not null;
create index events_model on events (model, position) where model is not null;
create index events_token on events (token_id, position) where token_id is not null;
create index events_reason on events (reason_code, position) where reason_code <> 'ok';
