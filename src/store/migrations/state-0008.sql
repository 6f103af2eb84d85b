-- What sidecars go by: the newest change, by which they see whether another copy of the state goes on from theirs.
create index change_log_version on change_log (version);
