CREATE TABLE `cache_clears` (
	`id` text PRIMARY KEY NOT NULL,
	`version` integer NOT NULL,
	`deleted` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE INDEX `cache_clears_version` ON `cache_clears` (`version`);--> statement-breakpoint
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
CREATE INDEX `managed_settings_version` ON `managed_settings` (`version`);--> statement-breakpoint
CREATE TABLE `workload_identities` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`issuer` text NOT NULL,
	`audience` text NOT NULL,
	`jwks_url` text,
	`keys` text NOT NULL,
	`keys_changed_at` integer NOT NULL,
	`condition` text,
	`attribution` text NOT NULL,
	`token_id` text NOT NULL,
	`token_hash` text NOT NULL,
	`longest_seconds` integer NOT NULL,
	`revoked` text NOT NULL,
	`enabled` integer DEFAULT 1 NOT NULL,
	`version` integer NOT NULL,
	`deleted` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE INDEX `workload_identities_version` ON `workload_identities` (`version`);--> statement-breakpoint
CREATE INDEX `workload_identities_token` ON `workload_identities` (`token_id`);--> statement-breakpoint
ALTER TABLE `models` ADD `shadow` text;--> statement-breakpoint
ALTER TABLE `models` ADD `strategy` text;--> statement-breakpoint
ALTER TABLE `models` ADD `targets` text;