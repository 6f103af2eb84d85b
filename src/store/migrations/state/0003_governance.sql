ALTER TABLE `access_policies` ADD `name` text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE `budgets` ADD `name` text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE `consumer_groups` ADD `name` text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE `mcp_servers` ADD `quarantined` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `mcp_servers` ADD `tools` text DEFAULT 'listed' NOT NULL;--> statement-breakpoint
ALTER TABLE `mcp_servers` ADD `price_per_call` integer;--> statement-breakpoint
ALTER TABLE `mcp_servers` ADD `requests_per_minute` integer;--> statement-breakpoint
ALTER TABLE `mcp_servers` ADD `tool_limits` text;--> statement-breakpoint
ALTER TABLE `tokens` ADD `mcp_tools` text DEFAULT 'listed' NOT NULL;