-- The one row that every change raises. A new database is a new history.
INSERT INTO state_head (id, version, nonce, history, reads_from, deletions_kept_from)
VALUES (1, 0, lower(hex(randomblob(16))), lower(hex(randomblob(16))), '0.2.0', 0);
--> statement-breakpoint
INSERT INTO checkpoints (id, number, key_id, signature, body, version) VALUES (1, 0, '', '', '', 0);
