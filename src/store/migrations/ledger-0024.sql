-- Slots of limits a minute that a worker returned while they were in use, and until when they rest: a restart then costs
-- what was used, not what was held. `holder` is the worker, `run` grows with each of its processes.
alter table rate_holdings add column kind text not null default 'held';
alter table rate_holdings add column holder text not null default '';
alter table rate_holdings add column run integer not null default 0;
alter table rate_holdings add column free_at integer not null default 0;
-- Of a former release: free when every slot can be cold.
update rate_holdings set holder = worker, free_at = heartbeat_at + 90900;
update rate_holdings set kind = 'lost' where worker like '%#%';
create index rate_holdings_free_at on rate_holdings (free_at) where kind <> 'held';
