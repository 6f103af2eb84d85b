-- The most, in nano-dollars, that a provider has charged for one request beyond the bound of its list price. Gateways add
-- it to later bounds of the same provider and model. The id is the provider's, a slash, and the provider's name of the model; `*` is
-- every model of the provider that has no row of its own.
create table excesses (
  id text primary key,
  provider_id text not null,
  model text not null,
  amount integer not null,
  version integer not null,
  deleted integer not null default 0
);
create index excesses_version on excesses (version);
