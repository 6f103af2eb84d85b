CREATE TABLE `batch_objects` (
	`id` text PRIMARY KEY NOT NULL,
	`owner` text NOT NULL,
	`kind` text NOT NULL,
	`place` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `batch_objects_owner` ON `batch_objects` (`owner`,`kind`,`id`);--> statement-breakpoint
CREATE INDEX `batch_objects_created_at` ON `batch_objects` (`created_at`);