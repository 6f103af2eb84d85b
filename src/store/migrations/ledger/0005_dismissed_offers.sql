ALTER TABLE `mcp_offers` ADD `dismissed_at` integer;--> statement-breakpoint
ALTER TABLE `mcp_offers` ADD `dismissed_by` text;