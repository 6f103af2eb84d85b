CREATE TABLE `record_labels` (
	`path` text NOT NULL,
	`record_id` text NOT NULL,
	`label` text NOT NULL,
	PRIMARY KEY(`path`, `record_id`)
);
--> statement-breakpoint
CREATE INDEX `record_labels_label` ON `record_labels` (`label`,`path`);