-- A change writes one whole page of 4 KiB, to the database's log and to every replica, for each tree of each table that it
-- touches. Each change makes a version of its own: as the primary key that needs no index.
create table change_log_next (
  event_id text not null unique,
  version integer primary key,
  applied integer not null,
  at integer not null,
  guard integer not null check (guard = 1)
);
insert into change_log_next (event_id, version, applied, at, guard)
select event_id, version, applied, at, guard from change_log;
drop table change_log;
alter table change_log_next rename to change_log;
