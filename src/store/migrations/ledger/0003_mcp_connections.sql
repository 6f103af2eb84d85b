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
CREATE INDEX `mcp_connections_ended` ON `mcp_connections` (`ended_at`) WHERE ended_at is not null;