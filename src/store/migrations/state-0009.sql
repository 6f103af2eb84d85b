-- MCP servers (mcp/README.md), with what of their offers may be shown.
create table mcp_servers (
  id text primary key,
  name text not null,
  -- One of the two: where it is reached, or JSON {"program", "args"} of what is started.
  url text,
  command text,
  -- seal(data key, JSON {"headers", "oauth", "environment"}, id); null where there is nothing secret
  sealed_credentials text,
  timeouts text,
  approval text not null,
  enabled integer not null default 1,
  position integer not null,
  version integer not null,
  deleted integer not null default 0
);
create index mcp_servers_version on mcp_servers (version);
-- One definition for each thing offered, by the digest of the whole of it. The id is a digest of server, kind and name.
create table mcp_approvals (
  id text primary key,
  server_id text not null,
  digest text not null,
  version integer not null,
  deleted integer not null default 0
);
create index mcp_approvals_version on mcp_approvals (version);
create index mcp_approvals_server on mcp_approvals (server_id);
-- Since when it is known what a server offers of a kind: what comes later is not there from the first.
create table mcp_baselines (
  id text primary key,
  server_id text not null,
  kind text not null,
  made_at integer not null,
  version integer not null,
  deleted integer not null default 0
);
create index mcp_baselines_version on mcp_baselines (version);
