CREATE TABLE `managed_settings` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`team_ids` text NOT NULL,
	`priority` integer NOT NULL,
	`settings` text NOT NULL,
	`checksum` text NOT NULL,
	`version` integer NOT NULL,
	`deleted` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE INDEX `managed_settings_version` ON `managed_settings` (`version`);