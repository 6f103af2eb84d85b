CREATE TABLE `attribution_dimensions` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`source_kind` text NOT NULL,
	`source_key` text NOT NULL,
	`allowed_values` text,
	`max_values` integer NOT NULL,
	`required` integer NOT NULL,
	`version` integer NOT NULL,
	`deleted` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE INDEX `attribution_dimensions_version` ON `attribution_dimensions` (`version`);--> statement-breakpoint
ALTER TABLE `access_policies` ADD `per` text;--> statement-breakpoint
ALTER TABLE `budgets` ADD `per` text;--> statement-breakpoint
ALTER TABLE `consumer_groups` ADD `per` text;--> statement-breakpoint
ALTER TABLE `tokens` ADD `metadata` text DEFAULT '{}' NOT NULL;