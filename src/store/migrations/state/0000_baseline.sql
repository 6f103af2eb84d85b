CREATE TABLE `access_policies` (
	`id` text PRIMARY KEY NOT NULL,
	`requests_per_minute` integer,
	`tokens_per_minute` integer,
	`models` text,
	`providers` text,
	`version` integer NOT NULL,
	`deleted` integer DEFAULT 0 NOT NULL,
	`scope` text DEFAULT 'shared' NOT NULL
);
--> statement-breakpoint
CREATE INDEX `access_policies_version` ON `access_policies` (`version`);--> statement-breakpoint
CREATE TABLE `accounts` (
	`id` text PRIMARY KEY NOT NULL,
	`max_requests` integer,
	`max_budget` integer,
	`rate_limit_rpm` integer,
	`rate_limit_tpm` integer,
	`version` integer NOT NULL,
	`deleted` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE INDEX `accounts_version` ON `accounts` (`version`);--> statement-breakpoint
CREATE TABLE `budgets` (
	`id` text PRIMARY KEY NOT NULL,
	`max_budget` integer NOT NULL,
	`window` text NOT NULL,
	`scope_kind` text NOT NULL,
	`scope_id` text,
	`version` integer NOT NULL,
	`deleted` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE INDEX `budgets_version` ON `budgets` (`version`);--> statement-breakpoint
CREATE TABLE `consumer_groups` (
	`id` text PRIMARY KEY NOT NULL,
	`requests_per_minute` integer,
	`tokens_per_minute` integer,
	`members` text NOT NULL,
	`version` integer NOT NULL,
	`deleted` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE INDEX `consumer_groups_version` ON `consumer_groups` (`version`);--> statement-breakpoint
CREATE TABLE `excesses` (
	`id` text PRIMARY KEY NOT NULL,
	`provider_id` text NOT NULL,
	`model` text NOT NULL,
	`amount` integer NOT NULL,
	`version` integer NOT NULL,
	`deleted` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE INDEX `excesses_version` ON `excesses` (`version`);--> statement-breakpoint
CREATE TABLE `change_log` (
	`event_id` text NOT NULL,
	`version` integer PRIMARY KEY NOT NULL,
	`applied` integer NOT NULL,
	`at` integer NOT NULL,
	`guard` integer NOT NULL,
	CONSTRAINT "change_log_guard_holds" CHECK(guard = 1)
);
--> statement-breakpoint
CREATE UNIQUE INDEX `change_log_event_id_unique` ON `change_log` (`event_id`);--> statement-breakpoint
CREATE TABLE `checkpoints` (
	`id` integer PRIMARY KEY NOT NULL,
	`number` integer NOT NULL,
	`key_id` text NOT NULL,
	`signature` text NOT NULL,
	`body` text NOT NULL,
	`version` integer NOT NULL,
	`deleted` integer DEFAULT 0 NOT NULL,
	CONSTRAINT "checkpoints_one_row" CHECK(id = 1)
);
--> statement-breakpoint
CREATE TABLE `state_head` (
	`id` integer PRIMARY KEY NOT NULL,
	`version` integer NOT NULL,
	`nonce` text NOT NULL,
	`history` text NOT NULL,
	`reads_from` text NOT NULL,
	`deletions_kept_from` integer NOT NULL,
	CONSTRAINT "state_head_one_row" CHECK(id = 1)
);
--> statement-breakpoint
CREATE TABLE `gateways` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`spend_owner` text,
	`prompt_caching` integer DEFAULT 0 NOT NULL,
	`providers` text,
	`version` integer NOT NULL,
	`deleted` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE INDEX `gateways_version` ON `gateways` (`version`);--> statement-breakpoint
CREATE TABLE `mcp_approvals` (
	`id` text PRIMARY KEY NOT NULL,
	`server_id` text NOT NULL,
	`digest` text NOT NULL,
	`version` integer NOT NULL,
	`deleted` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE INDEX `mcp_approvals_version` ON `mcp_approvals` (`version`);--> statement-breakpoint
CREATE INDEX `mcp_approvals_server` ON `mcp_approvals` (`server_id`);--> statement-breakpoint
CREATE TABLE `mcp_baselines` (
	`id` text PRIMARY KEY NOT NULL,
	`server_id` text NOT NULL,
	`kind` text NOT NULL,
	`made_at` integer NOT NULL,
	`version` integer NOT NULL,
	`deleted` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE INDEX `mcp_baselines_version` ON `mcp_baselines` (`version`);--> statement-breakpoint
CREATE TABLE `mcp_servers` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`url` text,
	`command` text,
	`sealed_credentials` text,
	`timeouts` text,
	`approval` text NOT NULL,
	`enabled` integer DEFAULT 1 NOT NULL,
	`position` integer NOT NULL,
	`version` integer NOT NULL,
	`deleted` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE INDEX `mcp_servers_version` ON `mcp_servers` (`version`);--> statement-breakpoint
CREATE TABLE `models` (
	`id` text PRIMARY KEY NOT NULL,
	`provider_id` text NOT NULL,
	`upstream_model` text,
	`families` text,
	`price` text,
	`max_output_tokens` integer,
	`fallbacks` text,
	`translation` text,
	`created_at` integer NOT NULL,
	`version` integer NOT NULL,
	`deleted` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE INDEX `models_version` ON `models` (`version`);--> statement-breakpoint
CREATE TABLE `policies` (
	`id` text PRIMARY KEY NOT NULL,
	`kind` text NOT NULL,
	`stages` text NOT NULL,
	`config` text NOT NULL,
	`condition` text,
	`targets` text NOT NULL,
	`position` integer NOT NULL,
	`mode` text NOT NULL,
	`when_broken` text NOT NULL,
	`enabled` integer NOT NULL,
	`version` integer NOT NULL,
	`deleted` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE INDEX `policies_version` ON `policies` (`version`);--> statement-breakpoint
CREATE TABLE `providers` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`kind` text NOT NULL,
	`base_url` text,
	`sealed_credentials` text,
	`allow_unlisted_models` integer DEFAULT 0 NOT NULL,
	`default_price` text,
	`timeouts` text,
	`position` integer NOT NULL,
	`version` integer NOT NULL,
	`deleted` integer DEFAULT 0 NOT NULL,
	`origin` text
);
--> statement-breakpoint
CREATE INDEX `providers_version` ON `providers` (`version`);--> statement-breakpoint
CREATE UNIQUE INDEX `providers_origin` ON `providers` (`origin`) WHERE origin is not null;--> statement-breakpoint
CREATE TABLE `grants` (
	`id` text PRIMARY KEY NOT NULL,
	`token_id` text NOT NULL,
	`digest` text NOT NULL,
	`expires_at` integer NOT NULL,
	`version` integer NOT NULL,
	`deleted` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE INDEX `grants_version` ON `grants` (`version`);--> statement-breakpoint
CREATE INDEX `grants_token` ON `grants` (`token_id`,`digest`);--> statement-breakpoint
CREATE TABLE `oauth_tokens` (
	`id` text PRIMARY KEY NOT NULL,
	`hash` text NOT NULL,
	`grant_id` text NOT NULL,
	`client_id` text NOT NULL,
	`user_id` text NOT NULL,
	`scope` text NOT NULL,
	`permissions` text NOT NULL,
	`team_ids` text NOT NULL,
	`resources` text NOT NULL,
	`expires_at` integer NOT NULL,
	`revoked_at` integer,
	`version` integer NOT NULL,
	`deleted` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `oauth_tokens_hash_unique` ON `oauth_tokens` (`hash`);--> statement-breakpoint
CREATE INDEX `oauth_tokens_version` ON `oauth_tokens` (`version`);--> statement-breakpoint
CREATE INDEX `oauth_tokens_grant` ON `oauth_tokens` (`grant_id`);--> statement-breakpoint
CREATE INDEX `oauth_tokens_user` ON `oauth_tokens` (`user_id`);--> statement-breakpoint
CREATE INDEX `oauth_tokens_expiry` ON `oauth_tokens` (`expires_at`);--> statement-breakpoint
CREATE TABLE `tokens` (
	`id` text PRIMARY KEY NOT NULL,
	`hash` text NOT NULL,
	`purpose` text NOT NULL,
	`principal_type` text NOT NULL,
	`key_class` text NOT NULL,
	`gateway_id` text,
	`team_id` text,
	`user_id` text,
	`provider` text,
	`model_filter` text,
	`budget_id` text,
	`roles` text NOT NULL,
	`policy_ids` text NOT NULL,
	`access_policy_ids` text NOT NULL,
	`metadata_trust` text NOT NULL,
	`owner_kind` text NOT NULL,
	`owner_id` text NOT NULL,
	`event_team_id` text,
	`account_ids` text NOT NULL,
	`max_budget` integer,
	`max_requests` integer,
	`rate_limit_rpm` integer,
	`rate_limit_tpm` integer,
	`expires_at` integer,
	`rotated_at` integer,
	`revoked_at` integer,
	`version` integer NOT NULL,
	`deleted` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `tokens_hash_unique` ON `tokens` (`hash`);--> statement-breakpoint
CREATE INDEX `tokens_version` ON `tokens` (`version`);