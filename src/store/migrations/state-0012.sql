-- Whose rates an access policy bounds: `token`, each that names it by itself; `shared`, all of them together, as before.
alter table access_policies add column scope text not null default 'shared';
