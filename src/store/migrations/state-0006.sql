-- Signed heads of all chains, which every host thereby witnesses: one row, heads and signature only. Number 0 is none yet.
create table checkpoints (
  id integer primary key check (id = 1),
  number integer not null,
  key_id text not null,
  signature text not null,
  body text not null,
  version integer not null,
  deleted integer not null default 0
);
insert into checkpoints (id, number, key_id, signature, body, version) values (1, 0, '', '', '', 0);
