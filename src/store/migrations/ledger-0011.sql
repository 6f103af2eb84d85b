-- What proves the events (events/proof/README.md). The public keys of control planes, by the SHA-256 of each.
create table checkpoint_keys (
  id text primary key,
  public_key text not null,
  created_at integer not null
);

-- Signed heads of all chains. `body` is the exact text that was signed.
create table checkpoints (
  number integer primary key,
  at integer not null,
  key_id text not null,
  signature text not null,
  body text not null
);

-- Where a chain begins now that retention has removed what was before, signed likewise.
create table chain_floors (
  chain text primary key,
  seq integer not null,
  key_id text not null,
  signature text not null,
  body text not null
);
