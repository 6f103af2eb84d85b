-- Usage: what each worker was granted, returned and settled of each account (usage/lease/README.md). Counters only
-- grow. That a worker's cell never settles more than it was granted is held here, whatever the code does.
create table usage_cells (
  account text not null,
  worker text not null,
  granted integer not null default 0 check (granted >= 0),
  returned integer not null default 0 check (returned >= 0),
  settled integer not null default 0 check (settled >= 0),
  primary key (account, worker),
  check (returned + settled <= granted)
);
create index usage_cells_worker on usage_cells (worker);

-- The sum of an account's cells, and what has been said of it. `owner_id` is the token account's own id. With less left
-- than the least that a request of it can cost, the account is used up, for good. `refused` is what workers claimed beyond
-- what they had been granted.
create table usage_accounts (
  account text primary key,
  owner_id text,
  kind text not null,
  settled integer not null default 0,
  exhausted_at integer,
  refused integer not null default 0,
  refused_told integer not null default 0,
  closed_at integer
);
create index usage_accounts_owner on usage_accounts (owner_id);
create index usage_accounts_exhausted on usage_accounts (kind, owner_id) where exhausted_at is not null;

-- The process of a worker that last said hello, and its hello's number; when the worker was given up for lost; when an
-- operator released it.
alter table workers add column process text not null default '';
alter table workers add column hello integer not null default 0;
alter table workers add column lost_at integer;
alter table workers add column released_at integer;

-- The account of a token: its own, or that of the token it was rotated from.
alter table tokens add column account_id text;
update tokens set account_id = (
  with recursive former (id, rotated_from) as (
    select t.id, t.rotated_from from tokens t where t.id = tokens.id
    union all
    select t.id, t.rotated_from from former join tokens t on t.id = former.rotated_from
  )
  select id from former where rotated_from is null
);
create index tokens_account on tokens (account_id);

-- The accounts that a clone draws on beside its own: those of its source, and of that one's. A rotation keeps them.
create table source_accounts (
  token_id text not null,
  account_id text not null,
  primary key (token_id, account_id)
);
create index source_accounts_account on source_accounts (account_id, token_id);
insert into source_accounts
with recursive lineage (token_id, former_id) as (
  select id, coalesce(rotated_from, source_token_id) from tokens where coalesce(rotated_from, source_token_id) is not null
  union
  select l.token_id, coalesce(t.rotated_from, t.source_token_id) from lineage l join tokens t on t.id = l.former_id
  where coalesce(t.rotated_from, t.source_token_id) is not null
)
select distinct l.token_id, former.account_id
from lineage l join tokens t on t.id = l.token_id join tokens former on former.id = l.former_id
where former.account_id <> t.account_id;
