/**
 * What doctor found when it last looked by itself, in one row of the ledger that all control planes share. SQL text: a
 * conditional upsert in the time of the database cannot be built.
 */
import { z } from 'zod'
import { type Database, databaseTime, type Reader } from '../store/open.ts'

const findingSchema = z.object({
  check: z.string(),
  level: z.enum(['warn', 'fail']),
  what: z.string(),
  todo: z.string(),
  /** The same for as long as it is the same finding: its figures may change meanwhile. */
  subject: z.string(),
  /** Milliseconds since the epoch. */
  since: z.number().int(),
})
export type ReportedFinding = z.infer<typeof findingSchema>

export interface DoctorReport {
  /** Milliseconds since the epoch; null before the first look. */
  examinedAt: number | null
  findings: ReportedFinding[]
}

/** Whether this control plane is to look now: no other has begun to within `everyMs`. */
export async function claimLook(ledger: Database, everyMs: number): Promise<boolean> {
  const claimed = await ledger.writeAndRead([
    {
      sql: `insert into doctor_report (id, claimed_at, findings) values (1, ${databaseTime}, '[]')
        on conflict (id) do update set claimed_at = excluded.claimed_at
        where claimed_at <= excluded.claimed_at - ? or claimed_at > excluded.claimed_at
        returning 1`,
      args: [everyMs],
    },
  ])
  return claimed.length === 1
}

/** Keeps what was found. A finding that was there before keeps its `since`. */
export async function writeReport(
  ledger: Database,
  found: readonly Pick<ReportedFinding, 'check' | 'level' | 'what' | 'todo'>[],
  now: number,
): Promise<void> {
  const before = new Map((await readReport(ledger)).findings.map(({ subject, since }) => [subject, since]))
  const findings: ReportedFinding[] = found.map((finding) => {
    const subject = `${finding.check}: ${finding.what.replaceAll(/\d+/g, '#')}`
    return { ...finding, subject, since: before.get(subject) ?? now }
  })
  await ledger.write([
    {
      sql: 'update doctor_report set examined_at = ?, findings = ? where id = 1',
      args: [now, JSON.stringify(findings)],
    },
  ])
}

export async function readReport(ledger: Reader): Promise<DoctorReport> {
  const [row] = await ledger.read<{ examined_at: number | null; findings: string }>(
    'select examined_at, findings from doctor_report',
  )
  if (row === undefined) return { examinedAt: null, findings: [] }
  return { examinedAt: row.examined_at, findings: z.array(findingSchema).parse(JSON.parse(row.findings)) }
}
