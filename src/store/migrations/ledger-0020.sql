-- For how long a lane serves without news, at most: what it said itself, or more that it may have been told since.
alter table lanes add column stale_after_ms integer;
