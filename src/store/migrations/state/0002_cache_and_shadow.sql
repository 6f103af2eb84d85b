CREATE TABLE `cache_clears` (
	`id` text PRIMARY KEY NOT NULL,
	`version` integer NOT NULL,
	`deleted` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE INDEX `cache_clears_version` ON `cache_clears` (`version`);--> statement-breakpoint
ALTER TABLE `models` ADD `shadow` text;