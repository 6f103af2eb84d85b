-- What a provider charged beyond what its worker had been granted is granted afterwards: a cell holds all that was spent,
-- and no account is closed any more.
insert into usage_cells (account, worker, granted, settled)
  select account, '*', excess, excess from usage_accounts where excess > 0
  on conflict (account, worker) do update set granted = granted + excluded.granted, settled = settled + excluded.settled;
update usage_accounts set settled = min(settled + excess, 9000000000000000);
alter table usage_accounts drop column excess;
alter table usage_accounts drop column closed_at;

-- The most, in nano-dollars, that a provider has charged for one request beyond the bound of its list price; `told` is
-- what the state and an event say of it. The token is the one whose request it was.
create table usage_excesses (
  provider_id text not null,
  model text not null,
  amount integer not null,
  told integer not null default 0,
  token_id text,
  at integer not null,
  primary key (provider_id, model)
);
create index usage_excesses_token on usage_excesses (token_id);
