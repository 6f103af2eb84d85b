-- Usage: what was granted and came back is taken off both counters, a round of 2^40 at a time, so that they stay exact
-- integers for ever; `rounds` says how often.
alter table usage_cells add column rounds integer not null default 0;
update usage_cells set rounds = returned / 1099511627776, granted = granted - returned / 1099511627776 * 1099511627776,
  returned = returned % 1099511627776 where returned >= 1099511627776;

-- What a provider charged beyond all that a worker had been granted: no cell can settle it, but it is spent.
alter table usage_accounts add column excess integer not null default 0;
