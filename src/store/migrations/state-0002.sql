-- The one row that every change raises. A new database is a new history: gateways that hold another one's state notice.
insert into state_head (id, version, nonce, history, reads_from, floor)
values (1, 0, lower(hex(randomblob(16))), lower(hex(randomblob(16))), '0.2.0', 0);
