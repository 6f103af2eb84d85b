CREATE TABLE `memberships` (
	`team_id` text NOT NULL,
	`user_id` text NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`team_id`, `user_id`),
	FOREIGN KEY (`team_id`) REFERENCES `teams`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `memberships_user` ON `memberships` (`user_id`);--> statement-breakpoint
CREATE TABLE `organizations` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`single` integer DEFAULT 1 NOT NULL,
	`created_at` integer NOT NULL,
	CONSTRAINT "organizations_one_row" CHECK(single = 1)
);
--> statement-breakpoint
CREATE UNIQUE INDEX `organizations_single_unique` ON `organizations` (`single`);--> statement-breakpoint
CREATE TABLE `program_codes` (
	`hash` text PRIMARY KEY NOT NULL,
	`user_id` text NOT NULL,
	`client_id` text NOT NULL,
	`redirect_uri` text NOT NULL,
	`code_challenge` text NOT NULL,
	`token_name` text,
	`expires_at` integer NOT NULL,
	`used_at` integer,
	`issued_kind` text,
	`issued_id` text,
	`replayed_at` integer,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `program_codes_expires` ON `program_codes` (`expires_at`);--> statement-breakpoint
CREATE TABLE `setup_links` (
	`hash` text PRIMARY KEY NOT NULL,
	`user_id` text NOT NULL,
	`expires_at` integer NOT NULL,
	`used_at` integer,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE TABLE `sign_in_attempts` (
	`key` text PRIMARY KEY NOT NULL,
	`attempts` integer NOT NULL,
	`blocked_until` integer NOT NULL,
	`last_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `sign_in_attempts_last` ON `sign_in_attempts` (`last_at`);--> statement-breakpoint
CREATE TABLE `teams` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`created_at` integer NOT NULL,
	`version` integer DEFAULT 1 NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `teams_name_unique` ON `teams` (`name`);--> statement-breakpoint
CREATE TABLE `user_sessions` (
	`id` text PRIMARY KEY NOT NULL,
	`hash` text NOT NULL,
	`user_id` text NOT NULL,
	`kind` text NOT NULL,
	`program` text,
	`created_at` integer NOT NULL,
	`last_used_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE UNIQUE INDEX `user_sessions_hash_unique` ON `user_sessions` (`hash`);--> statement-breakpoint
CREATE INDEX `user_sessions_user` ON `user_sessions` (`user_id`);--> statement-breakpoint
CREATE INDEX `user_sessions_expires` ON `user_sessions` (`expires_at`);--> statement-breakpoint
CREATE TABLE `users` (
	`id` text PRIMARY KEY NOT NULL,
	`email` text NOT NULL,
	`name` text NOT NULL,
	`role` text NOT NULL,
	`status` text NOT NULL,
	`password_hash` text,
	`created_at` integer NOT NULL,
	`version` integer DEFAULT 1 NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `users_email_unique` ON `users` (`email`);--> statement-breakpoint
CREATE TABLE `oauth_clients` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`redirect_uris` text NOT NULL,
	`scope` text NOT NULL,
	`created_at` integer NOT NULL,
	`created_by` text NOT NULL,
	`deactivated_at` integer,
	`version` integer DEFAULT 1 NOT NULL
);
--> statement-breakpoint
CREATE TABLE `oauth_grants` (
	`id` text PRIMARY KEY NOT NULL,
	`client_id` text NOT NULL,
	`user_id` text NOT NULL,
	`scope` text NOT NULL,
	`resources` text NOT NULL,
	`code_hash` text NOT NULL,
	`redirect_uri` text NOT NULL,
	`code_challenge` text NOT NULL,
	`code_expires_at` integer NOT NULL,
	`code_used_at` integer,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	`revoked_at` integer,
	`ended_at` integer,
	FOREIGN KEY (`client_id`) REFERENCES `oauth_clients`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE UNIQUE INDEX `oauth_grants_code_hash_unique` ON `oauth_grants` (`code_hash`);--> statement-breakpoint
CREATE INDEX `oauth_grants_user` ON `oauth_grants` (`user_id`);--> statement-breakpoint
CREATE INDEX `oauth_grants_expiry` ON `oauth_grants` (`expires_at`);--> statement-breakpoint
CREATE INDEX `oauth_grants_ending` ON `oauth_grants` (`revoked_at`) WHERE revoked_at is not null and ended_at is null;--> statement-breakpoint
CREATE TABLE `oauth_refresh_tokens` (
	`hash` text PRIMARY KEY NOT NULL,
	`grant_id` text NOT NULL,
	`expires_at` integer NOT NULL,
	`used_at` integer,
	FOREIGN KEY (`grant_id`) REFERENCES `oauth_grants`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `oauth_refresh_tokens_grant` ON `oauth_refresh_tokens` (`grant_id`);--> statement-breakpoint
CREATE TABLE `pending_permission_updates` (
	`user_id` text PRIMARY KEY NOT NULL,
	`changes` integer DEFAULT 1 NOT NULL,
	`changed_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `gateway_bounds` (
	`gateway_id` text PRIMARY KEY NOT NULL,
	`max_instances` integer,
	`addresses` text
);
--> statement-breakpoint
CREATE TABLE `gateway_names` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `instances` (
	`instance_id` text PRIMARY KEY NOT NULL,
	`gateway_id` text NOT NULL,
	`enrolled_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `known_state_head` (
	`id` integer PRIMARY KEY NOT NULL,
	`version` integer NOT NULL,
	`nonce` text NOT NULL,
	`history` text NOT NULL,
	CONSTRAINT "known_state_head_one_row" CHECK(id = 1)
);
--> statement-breakpoint
CREATE TABLE `ledger_epoch` (
	`writer` text PRIMARY KEY NOT NULL,
	`written` integer NOT NULL,
	`at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `peers` (
	`id` text PRIMARY KEY NOT NULL,
	`address` text NOT NULL,
	`seen_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `runtime_sessions` (
	`hash` text PRIMARY KEY NOT NULL,
	`token_id` text NOT NULL,
	`gateway_id` text NOT NULL,
	`instance_id` text NOT NULL,
	`expires_at` integer NOT NULL,
	`gateway_version` text DEFAULT '' NOT NULL
);
--> statement-breakpoint
CREATE TABLE `workers` (
	`worker` text PRIMARY KEY NOT NULL,
	`gateway_id` text NOT NULL,
	`instance_id` text NOT NULL,
	`worker_number` integer NOT NULL,
	`stream_id` text NOT NULL,
	`gateway_version` text NOT NULL,
	`acknowledged_version` integer NOT NULL,
	`last_heartbeat_at` integer NOT NULL,
	`connected_at` integer NOT NULL,
	`process` text DEFAULT '' NOT NULL,
	`registration_number` integer DEFAULT 0 NOT NULL,
	`lost_at` integer,
	`released_at` integer,
	`registered_at` integer DEFAULT 0 NOT NULL,
	`pending_reconciliation` integer DEFAULT 0 NOT NULL,
	`left_at` integer,
	`holder` text DEFAULT '' NOT NULL,
	`stale_after_ms` integer
);
--> statement-breakpoint
CREATE INDEX `workers_pending_reconciliation` ON `workers` (`worker`) WHERE pending_reconciliation = 1;--> statement-breakpoint
CREATE TABLE `source_accounts` (
	`token_id` text NOT NULL,
	`account_id` text NOT NULL,
	PRIMARY KEY(`token_id`, `account_id`)
);
--> statement-breakpoint
CREATE INDEX `source_accounts_account` ON `source_accounts` (`account_id`,`token_id`);--> statement-breakpoint
CREATE TABLE `token_counts` (
	`purpose` text NOT NULL,
	`key_class` text NOT NULL,
	`team_id` text NOT NULL,
	`count` integer NOT NULL,
	PRIMARY KEY(`purpose`, `key_class`, `team_id`)
);
--> statement-breakpoint
CREATE TABLE `tokens` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`token_prefix` text NOT NULL,
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
	`metadata` text NOT NULL,
	`owner_kind` text NOT NULL,
	`owner_id` text NOT NULL,
	`max_budget` integer,
	`max_requests` integer,
	`rate_limit_rpm` integer,
	`rate_limit_tpm` integer,
	`expires_at` integer,
	`rotated_at` integer,
	`revoked_at` integer,
	`revocation` text,
	`rotated_from` text,
	`rotated_to_id` text,
	`source_token_id` text,
	`created_at` integer NOT NULL,
	`created_by` text,
	`last_used_at` integer,
	`version` integer NOT NULL,
	`account_id` text
);
--> statement-breakpoint
CREATE INDEX `tokens_purpose` ON `tokens` (`purpose`,`id`);--> statement-breakpoint
CREATE INDEX `tokens_key_class` ON `tokens` (`key_class`,`id`);--> statement-breakpoint
CREATE INDEX `tokens_account` ON `tokens` (`account_id`);--> statement-breakpoint
CREATE INDEX `tokens_team` ON `tokens` (`team_id`,`id`) WHERE team_id is not null;--> statement-breakpoint
CREATE INDEX `tokens_gateway` ON `tokens` (`gateway_id`,`id`) WHERE gateway_id is not null;--> statement-breakpoint
CREATE INDEX `tokens_user` ON `tokens` (`user_id`,`id`) WHERE user_id is not null;--> statement-breakpoint
CREATE INDEX `tokens_revoked` ON `tokens` (`id`) WHERE revoked_at is not null;--> statement-breakpoint
CREATE INDEX `tokens_rotated` ON `tokens` (`id`,`rotated_at`) WHERE rotated_at is not null and revoked_at is null;--> statement-breakpoint
CREATE INDEX `tokens_expiring` ON `tokens` (`id`,`expires_at`,`rotated_at`) WHERE expires_at is not null and revoked_at is null;--> statement-breakpoint
CREATE TABLE `chain_floors` (
	`chain` text PRIMARY KEY NOT NULL,
	`seq` integer NOT NULL,
	`key_id` text NOT NULL,
	`signature` text NOT NULL,
	`body` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `chains` (
	`chain` text PRIMARY KEY NOT NULL,
	`seq` integer NOT NULL,
	`digest` text NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `checkpoint_keys` (
	`id` text PRIMARY KEY NOT NULL,
	`public_key` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `checkpoints` (
	`number` integer PRIMARY KEY NOT NULL,
	`at` integer NOT NULL,
	`key_id` text NOT NULL,
	`signature` text NOT NULL,
	`body` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `event_blocks` (
	`first_position` integer PRIMARY KEY NOT NULL,
	`segment` integer NOT NULL,
	`ordinal` integer NOT NULL,
	`records` integer NOT NULL,
	`bytes` integer NOT NULL,
	`first_at` integer NOT NULL,
	`last_at` integer NOT NULL,
	`places` blob NOT NULL,
	`body` blob NOT NULL
);
--> statement-breakpoint
CREATE INDEX `event_blocks_segment` ON `event_blocks` (`segment`,`ordinal`);--> statement-breakpoint
CREATE INDEX `event_blocks_end` ON `event_blocks` (`last_at`,`first_position`);--> statement-breakpoint
CREATE INDEX `event_blocks_start` ON `event_blocks` (`first_at`,`first_position`);--> statement-breakpoint
CREATE TABLE `event_log` (
	`id` integer PRIMARY KEY NOT NULL,
	`next_position` integer NOT NULL,
	`merges` integer DEFAULT 0 NOT NULL,
	`removed_until` integer DEFAULT 0 NOT NULL,
	CONSTRAINT "event_log_one_row" CHECK(id = 1)
);
--> statement-breakpoint
CREATE TABLE `event_rollups` (
	`kind` text NOT NULL,
	`step` text NOT NULL,
	`scope` text NOT NULL,
	`at` integer NOT NULL,
	`key` text NOT NULL,
	`verdict` text NOT NULL,
	`requests` integer NOT NULL,
	`input_tokens` integer NOT NULL,
	`output_tokens` integer NOT NULL,
	`cost` integer NOT NULL,
	`latency` text,
	`first_token` text,
	PRIMARY KEY(`kind`, `step`, `scope`, `at`, `key`, `verdict`)
);
--> statement-breakpoint
CREATE INDEX `event_rollups_minutes` ON `event_rollups` (`at`) WHERE step = 'minute';--> statement-breakpoint
CREATE INDEX `event_rollups_longer` ON `event_rollups` (`at`) WHERE step <> 'minute';--> statement-breakpoint
CREATE TABLE `event_segments` (
	`first_position` integer PRIMARY KEY NOT NULL,
	`records` integer NOT NULL,
	`received_at` integer NOT NULL,
	`header` blob NOT NULL,
	`ids` blob NOT NULL
);
--> statement-breakpoint
CREATE TABLE `export_jobs` (
	`id` text PRIMARY KEY NOT NULL,
	`state` text NOT NULL,
	`format` text NOT NULL,
	`since` integer NOT NULL,
	`until` integer,
	`visibility` text NOT NULL,
	`last_position` integer NOT NULL,
	`created_by` text NOT NULL,
	`team_id` text,
	`created_at` integer NOT NULL,
	`owner` text,
	`owner_address` text,
	`heartbeat_at` integer,
	`progress` real DEFAULT 0 NOT NULL,
	`events` integer DEFAULT 0 NOT NULL,
	`bytes` integer DEFAULT 0 NOT NULL,
	`error` text,
	`finished_at` integer,
	`expires_at` integer,
	`request_id` text
);
--> statement-breakpoint
CREATE INDEX `export_jobs_created_by` ON `export_jobs` (`created_by`,`id`);--> statement-breakpoint
CREATE INDEX `export_jobs_state` ON `export_jobs` (`state`,`id`);--> statement-breakpoint
CREATE TABLE `pending_event_rollups` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`stage` integer DEFAULT 0 NOT NULL,
	`tallies` text NOT NULL
);
--> statement-breakpoint
CREATE INDEX `pending_event_rollups_stage` ON `pending_event_rollups` (`stage`,`id`);--> statement-breakpoint
CREATE TABLE `segment_chains` (
	`chain` text NOT NULL,
	`first_seq` integer NOT NULL,
	`last_seq` integer NOT NULL,
	`segment` integer NOT NULL,
	`digest_before` text NOT NULL,
	PRIMARY KEY(`chain`, `first_seq`)
);
--> statement-breakpoint
CREATE INDEX `segment_chains_segment` ON `segment_chains` (`segment`);--> statement-breakpoint
CREATE TABLE `segment_facets` (
	`facet` text NOT NULL,
	`value` text NOT NULL,
	`segment` integer NOT NULL,
	`events` integer NOT NULL,
	`blocks` integer NOT NULL,
	PRIMARY KEY(`facet`, `value`, `segment`)
);
--> statement-breakpoint
CREATE TABLE `lease_balances` (
	`account` text NOT NULL,
	`worker` text NOT NULL,
	`granted` integer DEFAULT 0 NOT NULL,
	`returned` integer DEFAULT 0 NOT NULL,
	`settled` integer DEFAULT 0 NOT NULL,
	`rounds` integer DEFAULT 0 NOT NULL,
	PRIMARY KEY(`account`, `worker`),
	CONSTRAINT "lease_balances_granted" CHECK(granted >= 0),
	CONSTRAINT "lease_balances_returned" CHECK(returned >= 0),
	CONSTRAINT "lease_balances_settled" CHECK(settled >= 0),
	CONSTRAINT "lease_balances_within_grant" CHECK(returned + settled <= granted)
);
--> statement-breakpoint
CREATE INDEX `lease_balances_worker` ON `lease_balances` (`worker`);--> statement-breakpoint
CREATE TABLE `limit_names` (
	`id` text PRIMARY KEY NOT NULL,
	`kind` text NOT NULL,
	`name` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `limit_names_kind` ON `limit_names` (`kind`,`id`);--> statement-breakpoint
CREATE INDEX `limit_names_name` ON `limit_names` (`kind`,`name`);--> statement-breakpoint
CREATE TABLE `price_excesses` (
	`provider_id` text NOT NULL,
	`model` text NOT NULL,
	`amount` integer NOT NULL,
	`published` integer DEFAULT 0 NOT NULL,
	`token_id` text,
	`at` integer NOT NULL,
	PRIMARY KEY(`provider_id`, `model`)
);
--> statement-breakpoint
CREATE INDEX `price_excesses_token` ON `price_excesses` (`token_id`);--> statement-breakpoint
CREATE TABLE `rate_holdings` (
	`account` text NOT NULL,
	`worker` text NOT NULL,
	`granted` integer NOT NULL,
	`returned` integer NOT NULL,
	`heartbeat_at` integer NOT NULL,
	`recalled_at` integer DEFAULT 0 NOT NULL,
	`process` text NOT NULL,
	`cooling` text DEFAULT '[]' NOT NULL,
	`kind` text DEFAULT 'held' NOT NULL,
	`holder` text DEFAULT '' NOT NULL,
	`run` integer DEFAULT 0 NOT NULL,
	`free_at` integer DEFAULT 0 NOT NULL,
	PRIMARY KEY(`account`, `worker`),
	CONSTRAINT "rate_holdings_within_grant" CHECK(returned <= granted)
);
--> statement-breakpoint
CREATE INDEX `rate_holdings_heartbeat_at` ON `rate_holdings` (`heartbeat_at`);--> statement-breakpoint
CREATE INDEX `rate_holdings_free_at` ON `rate_holdings` (`free_at`) WHERE kind <> 'held';--> statement-breakpoint
CREATE TABLE `recall_answers` (
	`account` text NOT NULL,
	`worker` text NOT NULL,
	`rounds` integer NOT NULL,
	`granted` integer NOT NULL,
	`returned` integer NOT NULL,
	`settled` integer NOT NULL,
	`open` integer NOT NULL,
	`answer_number` integer NOT NULL,
	PRIMARY KEY(`account`, `worker`)
);
--> statement-breakpoint
CREATE TABLE `usage_accounts` (
	`account` text PRIMARY KEY NOT NULL,
	`owner_id` text,
	`kind` text NOT NULL,
	`settled` integer DEFAULT 0 NOT NULL,
	`exhausted_at` integer,
	`refused` integer DEFAULT 0 NOT NULL,
	`refused_recorded` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE INDEX `usage_accounts_owner` ON `usage_accounts` (`owner_id`);--> statement-breakpoint
CREATE INDEX `usage_accounts_exhausted` ON `usage_accounts` (`kind`,`owner_id`) WHERE exhausted_at is not null;--> statement-breakpoint
CREATE TABLE `usage_totals` (
	`account_id` text PRIMARY KEY NOT NULL,
	`requests` integer NOT NULL,
	`spend` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `ended_requests` (
	`event_id` text PRIMARY KEY NOT NULL,
	`hashes` text NOT NULL,
	`at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `guards` (
	`holds` integer NOT NULL,
	CONSTRAINT "guards_hold" CHECK(holds = 1)
);
--> statement-breakpoint
CREATE TABLE `idempotency_keys` (
	`principal` text NOT NULL,
	`idempotency_key` text NOT NULL,
	`route` text NOT NULL,
	`body_hash` text NOT NULL,
	`status` integer,
	`answer` text,
	`secret_resource_id` text,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`principal`, `idempotency_key`)
);
--> statement-breakpoint
CREATE INDEX `idempotency_keys_created` ON `idempotency_keys` (`created_at`);--> statement-breakpoint
CREATE TABLE `pending_changes` (
	`event_id` text PRIMARY KEY NOT NULL,
	`statements` text NOT NULL,
	`event` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `secrets` (
	`name` text PRIMARY KEY NOT NULL,
	`sealed` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `escalation_attempts` (
	`id` text PRIMARY KEY NOT NULL,
	`escalation_id` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `escalations` (
	`id` text PRIMARY KEY NOT NULL,
	`state` text NOT NULL,
	`token_id` text NOT NULL,
	`user_id` text,
	`team_id` text,
	`gateway_id` text,
	`policy_id` text NOT NULL,
	`reason_code` text NOT NULL,
	`digest` text NOT NULL,
	`request` text NOT NULL,
	`attempts` integer NOT NULL,
	`queued_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	`last_attempt_at` integer NOT NULL,
	`claimed_by` text,
	`claimed_at` integer,
	`resolution` text,
	`note` text,
	`resolved_by` text,
	`resolved_at` integer,
	`grant_id` text,
	`grant_expires_at` integer,
	`version` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `escalations_state` ON `escalations` (`state`,`id`);--> statement-breakpoint
CREATE INDEX `escalations_digest` ON `escalations` (`token_id`,`digest`);--> statement-breakpoint
CREATE INDEX `escalations_team` ON `escalations` (`team_id`,`id`);--> statement-breakpoint
CREATE TABLE `mcp_offers` (
	`id` integer PRIMARY KEY NOT NULL,
	`server_id` text NOT NULL,
	`kind` text NOT NULL,
	`name` text NOT NULL,
	`digest` text NOT NULL,
	`definition` text NOT NULL,
	`gateway_id` text,
	`first_seen_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `mcp_offers_name` ON `mcp_offers` (`server_id`,`kind`,`name`);--> statement-breakpoint
CREATE UNIQUE INDEX `mcp_offers_digest` ON `mcp_offers` (`server_id`,`digest`);--> statement-breakpoint
CREATE TABLE `pending_escalation_events` (
	`event_id` text PRIMARY KEY NOT NULL,
	`body` text NOT NULL,
	`received_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `policies` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`created_at` integer NOT NULL,
	`created_by` text NOT NULL,
	`version` integer NOT NULL,
	`deleted_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `policies_name` ON `policies` (`name`) WHERE deleted_at is null;