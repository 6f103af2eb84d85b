CREATE TABLE `doctor_report` (
	`id` integer PRIMARY KEY NOT NULL,
	`claimed_at` integer NOT NULL,
	`examined_at` integer,
	`findings` text NOT NULL,
	CONSTRAINT "doctor_report_one_row" CHECK(id = 1)
);
