-- The one row of the event log's head.
INSERT INTO event_log (id, next_position) VALUES (1, 1);
--> statement-breakpoint
-- Triggers, which drizzle cannot declare: they keep token_counts.
CREATE TRIGGER tokens_counted AFTER INSERT ON tokens BEGIN
  INSERT INTO token_counts VALUES (new.purpose, new.key_class, coalesce(new.team_id, ''), 1)
  ON CONFLICT DO UPDATE SET count = count + 1;
END;
--> statement-breakpoint
CREATE TRIGGER tokens_uncounted AFTER DELETE ON tokens BEGIN
  UPDATE token_counts SET count = count - 1
  WHERE purpose = old.purpose AND key_class = old.key_class AND team_id = coalesce(old.team_id, '');
END;
--> statement-breakpoint
CREATE TRIGGER tokens_recounted AFTER UPDATE OF purpose, key_class, team_id ON tokens BEGIN
  UPDATE token_counts SET count = count - 1
  WHERE purpose = old.purpose AND key_class = old.key_class AND team_id = coalesce(old.team_id, '');
  INSERT INTO token_counts VALUES (new.purpose, new.key_class, coalesce(new.team_id, ''), 1)
  ON CONFLICT DO UPDATE SET count = count + 1;
END;
