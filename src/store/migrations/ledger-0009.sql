-- What a worker answered when another control plane than its own called an account back: whoever waits for it reads it
-- here. `told` grows with each answer.
create table usage_answers (
  account text not null,
  worker text not null,
  rounds integer not null,
  granted integer not null,
  returned integer not null,
  settled integer not null,
  open integer not null,
  told integer not null,
  primary key (account, worker)
);

-- When a worker last said hello; and, of a ledger that was restored from a copy, whether its hello is waited for before
-- anything is granted to anybody.
alter table workers add column greeted_at integer not null default 0;
alter table workers add column awaited integer not null default 0;
create index workers_awaited on workers (worker) where awaited = 1;

-- When the slots of a holding that are in use can be used again: a list of [milliseconds since the epoch, slots].
alter table rate_holdings add column cooling text not null default '[]';
