-- What people call policies, and requests that wait for a person, and what was decided.
create table policies (
  id text primary key,
  name text not null,
  created_at integer not null,
  created_by text not null,
  version integer not null,
  deleted_at integer
);
create unique index policies_name on policies (name) where deleted_at is null;

-- Escalations as gateways' events told of them, in the transaction that took the event in; taken from here once each.
create table escalation_arrivals (
  event_id text primary key,
  body text not null,
  received_at integer not null
);

-- Times are milliseconds since the epoch. What has expired is computed when read, from queued_at.
create table escalations (
  id text primary key,
  state text not null,
  token_id text not null,
  user_id text,
  team_id text,
  gateway_id text,
  policy_id text not null,
  reason_code text not null,
  digest text not null,
  request text not null,
  attempts integer not null,
  queued_at integer not null,
  expires_at integer not null,
  last_attempt_at integer not null,
  claimed_by text,
  claimed_at integer,
  resolution text,
  note text,
  resolved_by text,
  resolved_at integer,
  grant_id text,
  grant_expires_at integer,
  version integer not null
);
create index escalations_state on escalations (state, id);
create index escalations_digest on escalations (token_id, digest);
create index escalations_team on escalations (team_id, id);

-- Each attempt was told an id; all attempts of one waiting request are one record.
create table escalation_attempts (
  id text primary key,
  escalation_id text not null
);
