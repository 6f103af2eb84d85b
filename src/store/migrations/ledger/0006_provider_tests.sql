CREATE TABLE `provider_tests` (
	`provider_id` text PRIMARY KEY NOT NULL,
	`ok` integer NOT NULL,
	`at` integer NOT NULL
);
