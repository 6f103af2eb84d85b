/** What the control plane finds out about its own installation. */
import { sql } from 'drizzle-orm'
import { check, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/** What doctor found when it last looked by itself: one row, which the control plane that looks claims first. */
export const doctorReport = sqliteTable(
  'doctor_report',
  {
    id: integer('id').primaryKey(),
    claimedAt: integer('claimed_at').notNull(),
    /** Null before the first look has ended. */
    examinedAt: integer('examined_at'),
    /** JSON (operation/doctor-report.ts). */
    findings: text('findings').notNull(),
  },
  () => [check('doctor_report_one_row', sql`id = 1`)],
)

/** What verifications of the event log found: one row, which the control plane that verifies claims first. */
export const verifyReport = sqliteTable(
  'verify_report',
  {
    id: integer('id').primaryKey(),
    claimedAt: integer('claimed_at').notNull(),
    /** Null before the first verification has ended. */
    examinedAt: integer('examined_at'),
    /** The time of the checkpoint that verifications by itself have come to. */
    coveredUntil: integer('covered_until'),
    /** JSON (events/verify/background.ts). */
    findings: text('findings').notNull(),
  },
  () => [check('verify_report_one_row', sql`id = 1`)],
)

/** What the last connection test of each provider came to. A provider that was never tested has no row. */
export const providerTests = sqliteTable('provider_tests', {
  providerId: text('provider_id').primaryKey(),
  ok: integer('ok').notNull(),
  at: integer('at').notNull(),
})
