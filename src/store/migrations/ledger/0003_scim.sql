CREATE TABLE `scim_groups` (
	`team_id` text PRIMARY KEY NOT NULL,
	`issuer` text NOT NULL,
	`external_id` text,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	`version` integer DEFAULT 1 NOT NULL,
	FOREIGN KEY (`team_id`) REFERENCES `teams`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE UNIQUE INDEX `scim_groups_external` ON `scim_groups` (`issuer`,`external_id`);--> statement-breakpoint
CREATE TABLE `scim_tokens` (
	`id` text PRIMARY KEY NOT NULL,
	`identity_provider_id` text NOT NULL,
	`name` text NOT NULL,
	`hash` text NOT NULL,
	`hint` text NOT NULL,
	`created_at` integer NOT NULL,
	`last_used_at` integer,
	`revoked_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `scim_tokens_hash_unique` ON `scim_tokens` (`hash`);--> statement-breakpoint
CREATE INDEX `scim_tokens_provider` ON `scim_tokens` (`identity_provider_id`);--> statement-breakpoint
CREATE TABLE `scim_users` (
	`user_id` text PRIMARY KEY NOT NULL,
	`issuer` text NOT NULL,
	`user_name` text NOT NULL,
	`user_name_key` text NOT NULL,
	`external_id` text,
	`attributes` text NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE UNIQUE INDEX `scim_users_name` ON `scim_users` (`issuer`,`user_name_key`);--> statement-breakpoint
CREATE UNIQUE INDEX `scim_users_external` ON `scim_users` (`issuer`,`external_id`);--> statement-breakpoint
ALTER TABLE `user_identities` ADD `external_id` text;