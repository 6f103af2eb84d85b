-- What a start made the provider from: 'simulator', or the environment variable with its key; null where a person made it.
-- It outlives a new name and a deletion, so that a later start finds the record again.
alter table providers add column origin text;
update providers set origin = 'simulator'
  where id = (select id from providers where kind = 'simulator' order by position limit 1);
update providers set origin = upper(kind) || '_API_KEY'
  where name = kind and kind in ('openai', 'anthropic', 'gemini') and not exists
    (select 1 from providers o where o.name = providers.name and o.kind = o.name
      and (o.deleted, o.position) < (providers.deleted, providers.position));
create unique index providers_origin on providers (origin) where origin is not null;
