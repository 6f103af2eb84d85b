-- What gateways are called; `state`, which every host has, holds a digest of it alone.
create table gateway_names (
  id text primary key,
  name text not null
);
