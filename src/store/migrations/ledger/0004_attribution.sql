CREATE TABLE `verify_report` (
	`id` integer PRIMARY KEY NOT NULL,
	`claimed_at` integer NOT NULL,
	`examined_at` integer,
	`covered_until` integer,
	`findings` text NOT NULL,
	CONSTRAINT "verify_report_one_row" CHECK(id = 1)
);
--> statement-breakpoint
DROP INDEX `record_labels_label`;--> statement-breakpoint
CREATE INDEX `record_labels_label` ON `record_labels` (`label`,`path`,`record_id`);--> statement-breakpoint
ALTER TABLE `usage_accounts` ADD `dimension_value` text;