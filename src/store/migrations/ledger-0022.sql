-- What each token account has used since this table was made, with a limit or without: requests that were sent on, and
-- nano-dollars.
create table usage_totals (
  account_id text primary key,
  requests integer not null,
  spend integer not null
);
