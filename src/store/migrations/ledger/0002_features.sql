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
CREATE TABLE `batch_returns` (
	`account` text PRIMARY KEY NOT NULL,
	`amount` integer NOT NULL
);
--> statement-breakpoint
ALTER TABLE `oauth_clients` ADD `grant_types` text DEFAULT '["authorization_code","refresh_token"]' NOT NULL;