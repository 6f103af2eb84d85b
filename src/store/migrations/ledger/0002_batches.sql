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
