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
CREATE INDEX `event_sessions_client` ON `event_sessions` (`client`,`last_at`,`id`);