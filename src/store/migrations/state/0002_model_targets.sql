ALTER TABLE `models` ADD `strategy` text;--> statement-breakpoint
ALTER TABLE `models` ADD `targets` text;