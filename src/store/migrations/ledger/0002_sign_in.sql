CREATE TABLE `identity_providers` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`issuer` text NOT NULL,
	`client_id` text NOT NULL,
	`config` text NOT NULL,
	`enabled` integer DEFAULT 1 NOT NULL,
	`created_at` integer NOT NULL,
	`version` integer DEFAULT 1 NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `identity_providers_name_unique` ON `identity_providers` (`name`);--> statement-breakpoint
CREATE UNIQUE INDEX `identity_providers_issuer_unique` ON `identity_providers` (`issuer`);--> statement-breakpoint
CREATE TABLE `user_identities` (
	`id` text PRIMARY KEY NOT NULL,
	`user_id` text NOT NULL,
	`issuer` text NOT NULL,
	`subject` text NOT NULL,
	`refresh_token` text,
	`vouched_until` integer NOT NULL,
	`check_at` integer,
	`lost_at` integer,
	`created_at` integer NOT NULL,
	`last_sign_in_at` integer NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE UNIQUE INDEX `user_identities_subject` ON `user_identities` (`issuer`,`subject`);--> statement-breakpoint
CREATE INDEX `user_identities_user` ON `user_identities` (`user_id`);--> statement-breakpoint
CREATE INDEX `user_identities_check` ON `user_identities` (`check_at`);--> statement-breakpoint
ALTER TABLE `program_codes` ADD `identity_id` text REFERENCES user_identities(id);--> statement-breakpoint
ALTER TABLE `setup_links` ADD `kind` text DEFAULT 'setup' NOT NULL;--> statement-breakpoint
ALTER TABLE `user_sessions` ADD `identity_id` text REFERENCES user_identities(id);