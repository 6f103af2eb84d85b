-- Exports made in the background. `sees` is whose events its maker saw when it was made; `last_position` is where the
-- events ended then. The file lies with the control plane `owner`, in its data directory. Times are milliseconds since
-- the epoch; a job that is processing was last seen alive at `heartbeat_at`.
create table export_jobs (
  id text primary key,
  state text not null,
  format text not null,
  since integer not null,
  until integer,
  sees text not null,
  last_position integer not null,
  created_by text not null,
  team_id text,
  created_at integer not null,
  owner text,
  owner_address text,
  heartbeat_at integer,
  progress real not null default 0,
  events integer not null default 0,
  bytes integer not null default 0,
  error text,
  finished_at integer,
  expires_at integer
);
create index export_jobs_created_by on export_jobs (created_by, id);
create index export_jobs_state on export_jobs (state, id);
