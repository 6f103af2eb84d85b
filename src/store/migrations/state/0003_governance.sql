ALTER TABLE `access_policies` ADD `name` text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE `budgets` ADD `name` text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE `consumer_groups` ADD `name` text DEFAULT '' NOT NULL;