-- For how long a worker serves without news, at most: what it said itself, or more that it may have been told since.
alter table workers add column stale_after_ms integer;
