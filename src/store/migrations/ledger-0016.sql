-- What MCP servers were seen to offer, each definition whole, so that a person can compare before approving.
create table mcp_offers (
  id integer primary key,
  server_id text not null,
  kind text not null,
  name text not null,
  digest text not null,
  definition text not null,
  gateway_id text,
  first_seen_at integer not null,
  unique (server_id, digest)
);
create index mcp_offers_name on mcp_offers (server_id, kind, name);
