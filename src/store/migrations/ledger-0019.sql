-- The gateway process that took a worker last.
alter table workers add column holder text not null default '';

-- How many transactions each control plane has made that others rest on: what a copy from before one of them lacks.
create table ledger_marks (
  writer text primary key,
  written integer not null,
  at integer not null
);
