-- How people sign in: sessions, codes for programs, links for a first sign-in, and what slows guessing down. Secrets are
-- here only as SHA-256.
alter table users add column version integer not null default 1;
alter table teams add column version integer not null default 1;

-- kind: browser (a cookie) or program (a Bearer credential that `program` was given).
create table user_sessions (
  id text primary key,
  hash text not null unique,
  user_id text not null references users (id),
  kind text not null,
  program text,
  created_at integer not null,
  last_used_at integer not null,
  expires_at integer not null
);
create index user_sessions_user on user_sessions (user_id);
create index user_sessions_expires on user_sessions (expires_at);

-- A row stays for a while after its use, so that a second use can end what the first one gave.
create table program_codes (
  hash text primary key,
  user_id text not null references users (id),
  client_id text not null,
  redirect_uri text not null,
  code_challenge text not null,
  token_name text,
  expires_at integer not null,
  used_at integer,
  gave_kind text,
  gave_id text,
  replayed_at integer
);
create index program_codes_expires on program_codes (expires_at);

-- key: `account:` or `address:` and a SHA-256.
create table sign_in_attempts (
  key text primary key,
  attempts integer not null,
  blocked_until integer not null,
  last_at integer not null
);
create index sign_in_attempts_last on sign_in_attempts (last_at);

create table setup_links (
  hash text primary key,
  user_id text not null references users (id),
  expires_at integer not null,
  used_at integer
);
