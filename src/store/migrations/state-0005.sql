-- The accounts of tokens: which limits a request draws on (usage/lease/README.md rule 1). An account has the id of the
-- token it was made with; a rotation keeps it, a clone draws on its source's beside its own. No row: no limit.
create table accounts (
  id text primary key,
  max_requests integer,
  max_budget integer,
  rate_limit_rpm integer,
  rate_limit_tpm integer,
  version integer not null,
  deleted integer not null default 0
);
create index accounts_version on accounts (version);

-- Where several tokens share an account, what the newest says holds: a limit is only ever lowered.
insert into accounts (id, max_requests, max_budget, rate_limit_rpm, rate_limit_tpm, version)
select account, min(max_requests), min(max_budget), min(rate_limit_rpm), min(rate_limit_tpm), max(version)
from (
  select account_ids ->> '$[0]' as account, max_requests, max_budget, rate_limit_rpm, rate_limit_tpm, version
  from tokens where coalesce(max_requests, max_budget, rate_limit_rpm, rate_limit_tpm) is not null
)
where account is not null
group by account;
