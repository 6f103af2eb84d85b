-- What a lane answered when another control plane than its own called an account back: whoever waits for it reads it
-- here. `told` grows with each answer.
create table usage_answers (
  account text not null,
  lane text not null,
  rounds integer not null,
  granted integer not null,
  returned integer not null,
  settled integer not null,
  open integer not null,
  told integer not null,
  primary key (account, lane)
);

-- When a lane last said hello; and, of a ledger that was restored from a copy, whether its hello is waited for before
-- anything is granted to anybody.
alter table lanes add column greeted_at integer not null default 0;
alter table lanes add column awaited integer not null default 0;
create index lanes_awaited on lanes (lane) where awaited = 1;

-- When the slots of a holding that are in use can be used again: a list of [milliseconds since the epoch, slots].
alter table rate_holdings add column cooling text not null default '[]';
