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
	`external_id` text,
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
CREATE TABLE `oauth_device_codes` (
	`hash` text PRIMARY KEY NOT NULL,
	`user_code_hash` text NOT NULL,
	`client_id` text NOT NULL,
	`scope` text NOT NULL,
	`resources` text NOT NULL,
	`address_key` text NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	`interval_seconds` integer NOT NULL,
	`polled_at` integer,
	`decision` text,
	FOREIGN KEY (`client_id`) REFERENCES `oauth_clients`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE UNIQUE INDEX `oauth_device_codes_user_code_hash_unique` ON `oauth_device_codes` (`user_code_hash`);--> statement-breakpoint
CREATE INDEX `oauth_device_codes_address` ON `oauth_device_codes` (`address_key`,`created_at`);--> statement-breakpoint
CREATE INDEX `oauth_device_codes_expiry` ON `oauth_device_codes` (`expires_at`);--> statement-breakpoint
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
CREATE TABLE `event_sessions` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`session_id` text NOT NULL,
	`token_id` text NOT NULL,
	`team_id` text,
	`user_id` text,
	`client` text,
	`first_at` integer NOT NULL,
	`last_at` integer NOT NULL,
	`requests` integer NOT NULL,
	`errors` integer NOT NULL,
	`findings` integer NOT NULL,
	`input_tokens` integer NOT NULL,
	`output_tokens` integer NOT NULL,
	`cost` integer NOT NULL,
	`models` text NOT NULL,
	`tools` text NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `event_sessions_name` ON `event_sessions` (`session_id`,`token_id`);--> statement-breakpoint
CREATE INDEX `event_sessions_all` ON `event_sessions` (`last_at`,`id`);--> statement-breakpoint
CREATE INDEX `event_sessions_team` ON `event_sessions` (`team_id`,`last_at`,`id`);--> statement-breakpoint
CREATE INDEX `event_sessions_user` ON `event_sessions` (`user_id`,`last_at`,`id`);--> statement-breakpoint
CREATE INDEX `event_sessions_token` ON `event_sessions` (`token_id`,`last_at`,`id`);--> statement-breakpoint
CREATE INDEX `event_sessions_client` ON `event_sessions` (`client`,`last_at`,`id`);--> statement-breakpoint
CREATE TABLE `batch_holds` (
	`id` text PRIMARY KEY NOT NULL,
	`gateway_id` text NOT NULL,
	`token_id` text,
	`attribution` text NOT NULL,
	`request_id` text,
	`batch` text NOT NULL,
	`held` text NOT NULL,
	`created_at` integer NOT NULL,
	`claimed_by` text DEFAULT '' NOT NULL,
	`claimed_until` integer DEFAULT 0 NOT NULL,
	`settled_at` integer
);
--> statement-breakpoint
CREATE INDEX `batch_holds_open` ON `batch_holds` (`gateway_id`,`created_at`) WHERE settled_at is null;--> statement-breakpoint
CREATE INDEX `batch_holds_settled` ON `batch_holds` (`settled_at`) WHERE settled_at is not null;--> statement-breakpoint
CREATE TABLE `batch_objects` (
	`id` text PRIMARY KEY NOT NULL,
	`owner` text NOT NULL,
	`kind` text NOT NULL,
	`place` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `batch_objects_owner` ON `batch_objects` (`owner`,`kind`,`id`);--> statement-breakpoint
CREATE INDEX `batch_objects_created_at` ON `batch_objects` (`created_at`);--> statement-breakpoint
CREATE TABLE `batch_returns` (
	`account` text PRIMARY KEY NOT NULL,
	`amount` integer NOT NULL
);
--> statement-breakpoint
ALTER TABLE `program_codes` ADD `identity_id` text REFERENCES user_identities(id);--> statement-breakpoint
ALTER TABLE `setup_links` ADD `kind` text DEFAULT 'setup' NOT NULL;--> statement-breakpoint
ALTER TABLE `user_sessions` ADD `identity_id` text REFERENCES user_identities(id);--> statement-breakpoint
ALTER TABLE `users` ADD `totp_secret` text;--> statement-breakpoint
ALTER TABLE `users` ADD `totp_since` integer;--> statement-breakpoint
ALTER TABLE `users` ADD `totp_step` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `oauth_clients` ADD `grant_types` text DEFAULT '["authorization_code","refresh_token"]' NOT NULL;