-- A list of tokens is filtered and newest first: a filter that few of very many tokens pass must not read them all.
create index tokens_purpose on tokens (purpose, id);
create index tokens_key_class on tokens (key_class, id);
