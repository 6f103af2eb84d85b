CREATE TABLE `doctor_report` (
	`id` integer PRIMARY KEY NOT NULL,
	`claimed_at` integer NOT NULL,
	`examined_at` integer,
	`findings` text NOT NULL,
	CONSTRAINT "doctor_report_one_row" CHECK(id = 1)
);
--> statement-breakpoint
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
CREATE UNIQUE INDEX `sinks_name_unique` ON `sinks` (`name`);