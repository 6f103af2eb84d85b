-- The call that asked for an export: the events of its later steps name it.
alter table export_jobs add column request_id text;
