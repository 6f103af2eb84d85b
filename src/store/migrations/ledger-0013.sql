-- Control planes that know of one another. What several hosts compare is told in this database's own time
-- (`databaseTime` in store/open.ts), so that their clocks need not agree.
create table peers (
  id text primary key,
  address text not null,
  seen_at integer not null
);

-- A worker that said goodbye holds nothing any more; one that comes back takes its row again.
alter table workers add column left_at integer;
-- Bootstrap and stream may be answered by different control planes.
alter table runtime_sessions add column gateway_version text not null default '';

-- Instances of gateways that have ever connected: the first time is an event.
create table instances (
  instance_id text primary key,
  gateway_id text not null,
  enrolled_at integer not null
);
insert into instances (instance_id, gateway_id, enrolled_at)
  select instance_id, min(gateway_id), min(connected_at) from workers group by instance_id;

-- How many instances a gateway may have, and from where: no gateway decides by it. `addresses` is JSON, null any.
create table gateway_bounds (
  gateway_id text primary key,
  max_instances integer,
  addresses text
);

-- Whose running requests a change ends, for a control plane that has missed its peer's word of the change.
create table cuts (
  event_id text primary key,
  hashes text not null,
  at integer not null
);

-- The newest head of the state that a control plane has seen: a state that does not know it was restored from an older
-- copy, or is another one.
create table state_seen (
  id integer primary key check (id = 1),
  version integer not null,
  nonce text not null,
  history text not null
);
