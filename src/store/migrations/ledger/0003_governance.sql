CREATE TABLE `mcp_connections` (
	`user_id` text NOT NULL,
	`server_id` text NOT NULL,
	`sealed` text NOT NULL,
	`issuer` text NOT NULL,
	`scope` text,
	`connected_at` integer NOT NULL,
	`expires_at` integer,
	`refreshed_at` integer,
	`refreshing_until` integer,
	`ended_at` integer,
	PRIMARY KEY(`user_id`, `server_id`),
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `mcp_connections_server` ON `mcp_connections` (`server_id`);--> statement-breakpoint
CREATE INDEX `mcp_connections_ended` ON `mcp_connections` (`ended_at`) WHERE ended_at is not null;--> statement-breakpoint
CREATE TABLE `doctor_report` (
	`id` integer PRIMARY KEY NOT NULL,
	`claimed_at` integer NOT NULL,
	`examined_at` integer,
	`findings` text NOT NULL,
	CONSTRAINT "doctor_report_one_row" CHECK(id = 1)
);
--> statement-breakpoint
CREATE TABLE `alert_channels` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`kind` text NOT NULL,
	`enabled` integer DEFAULT 1 NOT NULL,
	`config` text NOT NULL,
	`created_at` integer NOT NULL,
	`version` integer DEFAULT 1 NOT NULL,
	`claimed_by` text,
	`claimed_until` integer DEFAULT 0 NOT NULL,
	`failures` integer DEFAULT 0 NOT NULL,
	`failing_since` integer,
	`retry_at` integer DEFAULT 0 NOT NULL,
	`last_error` text,
	`last_sent_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `alert_channels_name_unique` ON `alert_channels` (`name`);--> statement-breakpoint
CREATE TABLE `alert_deliveries` (
	`id` text PRIMARY KEY NOT NULL,
	`firing_id` text NOT NULL,
	`channel_id` text NOT NULL,
	`kind` text NOT NULL,
	`state` text NOT NULL,
	`attempts` integer DEFAULT 0 NOT NULL,
	`error` text,
	`created_at` integer NOT NULL,
	`sent_at` integer
);
--> statement-breakpoint
CREATE INDEX `alert_deliveries_pending` ON `alert_deliveries` (`channel_id`) WHERE state = 'pending';--> statement-breakpoint
CREATE UNIQUE INDEX `alert_deliveries_firing` ON `alert_deliveries` (`firing_id`,`channel_id`,`kind`);--> statement-breakpoint
CREATE TABLE `alert_firings` (
	`id` text PRIMARY KEY NOT NULL,
	`alert_id` text NOT NULL,
	`subject` text NOT NULL,
	`threshold` real NOT NULL,
	`value` real NOT NULL,
	`severity` text NOT NULL,
	`about` text NOT NULL,
	`announced` integer NOT NULL,
	`fired_at` integer NOT NULL,
	`resolved_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `alert_firings_open` ON `alert_firings` (`alert_id`,`subject`,`threshold`) WHERE resolved_at is null;--> statement-breakpoint
CREATE INDEX `alert_firings_subject` ON `alert_firings` (`alert_id`,`subject`,`threshold`,`fired_at`);--> statement-breakpoint
CREATE INDEX `alert_firings_time` ON `alert_firings` (`fired_at`);--> statement-breakpoint
CREATE TABLE `alert_lease` (
	`id` integer PRIMARY KEY NOT NULL,
	`holder` text NOT NULL,
	`until` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `alerts` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`condition` text NOT NULL,
	`enabled` integer DEFAULT 1 NOT NULL,
	`config` text NOT NULL,
	`created_at` integer NOT NULL,
	`version` integer DEFAULT 1 NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `alerts_name_unique` ON `alerts` (`name`);--> statement-breakpoint
CREATE TABLE `sink_deliveries` (
	`sink_id` text PRIMARY KEY NOT NULL,
	`position` integer NOT NULL,
	`planned_end` integer,
	`owner` text,
	`leased_until` integer DEFAULT 0 NOT NULL,
	`failures` integer DEFAULT 0 NOT NULL,
	`retry_at` integer DEFAULT 0 NOT NULL,
	`error` text,
	`told` integer DEFAULT 0 NOT NULL,
	`delivered` integer DEFAULT 0 NOT NULL,
	`refused` integer DEFAULT 0 NOT NULL,
	`lost` integer DEFAULT 0 NOT NULL,
	`delivered_at` integer,
	CONSTRAINT "sink_position" CHECK("sink_deliveries"."position" >= 1)
);
--> statement-breakpoint
CREATE TABLE `sinks` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`kind` text NOT NULL,
	`url` text NOT NULL,
	`format` text NOT NULL,
	`filter` text,
	`config` text NOT NULL,
	`credential_names` text NOT NULL,
	`enabled` integer NOT NULL,
	`created_at` integer NOT NULL,
	`version` integer DEFAULT 1 NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `sinks_name_unique` ON `sinks` (`name`);--> statement-breakpoint
CREATE TABLE `record_labels` (
	`path` text NOT NULL,
	`record_id` text NOT NULL,
	`label` text NOT NULL,
	PRIMARY KEY(`path`, `record_id`)
);
--> statement-breakpoint
CREATE INDEX `record_labels_label` ON `record_labels` (`label`,`path`);--> statement-breakpoint
ALTER TABLE `tokens` ADD `mcp_tools` text DEFAULT 'listed' NOT NULL;
--> statement-breakpoint
INSERT INTO `alerts` (`id`, `name`, `condition`, `config`, `created_at`) VALUES
	('00000000-0000-7000-8000-000000000001', 'Many requests are refused', 'refusals', '{"severity":"critical"}', cast(unixepoch('subsec') * 1000 as integer)),
	('00000000-0000-7000-8000-000000000002', 'A provider fails', 'error_rate', '{"severity":"critical"}', cast(unixepoch('subsec') * 1000 as integer)),
	('00000000-0000-7000-8000-000000000003', 'A budget is being used up', 'budget_share', '{}', cast(unixepoch('subsec') * 1000 as integer)),
	('00000000-0000-7000-8000-000000000004', 'The spend is unusual', 'spend_rate', '{}', cast(unixepoch('subsec') * 1000 as integer)),
	('00000000-0000-7000-8000-000000000005', 'A provider charged more than its list price allows', 'bound_violated', '{}', cast(unixepoch('subsec') * 1000 as integer)),
	('00000000-0000-7000-8000-000000000006', 'A request waits for a person', 'escalation_waiting', '{}', cast(unixepoch('subsec') * 1000 as integer)),
	('00000000-0000-7000-8000-000000000007', 'A token expires soon', 'token_expiring', '{"quiet_minutes":1440}', cast(unixepoch('subsec') * 1000 as integer)),
	('00000000-0000-7000-8000-000000000008', 'A gateway sends no heartbeat', 'gateway_stale', '{}', cast(unixepoch('subsec') * 1000 as integer)),
	('00000000-0000-7000-8000-000000000009', 'A target is passed over', 'circuit_open', '{}', cast(unixepoch('subsec') * 1000 as integer)),
	('00000000-0000-7000-8000-000000000010', 'A sink lags behind', 'sink_lag', '{}', cast(unixepoch('subsec') * 1000 as integer)),
	('00000000-0000-7000-8000-000000000011', 'Doctor found a failure', 'doctor_finding', '{}', cast(unixepoch('subsec') * 1000 as integer)),
	('00000000-0000-7000-8000-000000000012', 'The record does not verify', 'verify_finding', '{"severity":"critical"}', cast(unixepoch('subsec') * 1000 as integer));
