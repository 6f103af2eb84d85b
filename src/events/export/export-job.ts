/**
 * Background exports in the ledger: queued → processing → completed or failed. A completed one expires with its file.
 * Each step is a change with its event, guarded by the former state, so that only one of several control planes makes
 * it.
 */
import { z } from 'zod'
import { anonymous } from '../../identity/principal.ts'
import { type Clock, timestamp } from '../../lib/clock.ts'
import type { NewId } from '../../lib/ids.ts'
import type { Log } from '../../lib/log/log.ts'
import type { Database } from '../../store/open.ts'
import { query, textCondition } from '../../store/query.ts'
import { exportJobs } from '../../store/schema/ledger/events.ts'
import type { Statement } from '../../store/statement.ts'
import { controlPlaneEvent, versionNow } from '../control-plane-event.ts'
import type { Event } from '../event.ts'
import type { EventType } from '../event-types.ts'
import type { Recorder } from '../recorder.ts'
import type { Visibility } from '../visibility.ts'
import { exportFormats } from './export.ts'

export const exportStates = ['queued', 'processing', 'completed', 'failed', 'expired'] as const
type ExportState = (typeof exportStates)[number]

export interface ExportDependencies {
  state: Database
  ledger: Database
  recorder: Recorder
  clock: Clock
  newId: NewId
  log: Log
}

export type ExportJob = typeof exportJobs.$inferSelect

export const exportJobSchema = z.object({
  id: z.uuid(),
  status: z.enum(exportStates),
  format: z.enum(exportFormats),
  since: z.iso.datetime(),
  until: z.iso.datetime().nullable().describe('Exclusive; null: all there was when it was made'),
  progress: z.number().min(0).max(1),
  events: z.number().int().describe('Written so far'),
  bytes: z.number().int().describe('Written so far'),
  error: z.string().nullable().describe('Why it failed'),
  created_at: z.iso.datetime(),
  created_by: z.string(),
  finished_at: z.iso.datetime().nullable(),
  expires_at: z.iso.datetime().nullable().describe('When the file of a completed one is removed'),
})

const instant = (milliseconds: number | null): string | null => (milliseconds === null ? null : timestamp(milliseconds))

/** Which events its creator could see when it was made. */
export const visibilityOfJob = ({ visibility }: ExportJob): Visibility => JSON.parse(visibility)

/**
 * The condition that a job has a status. It counts as expired from that instant on, even before its file is removed.
 */
export function exportSummary(status: ExportState, now: number): Statement {
  if (status === 'expired')
    return { sql: "(state = 'expired' or (state = 'completed' and expires_at <= ?))", args: [now] }
  if (status === 'completed') return { sql: `state = 'completed' and expires_at > ?`, args: [now] }
  return { sql: 'state = ?', args: [status] }
}

function statusOf({ state, expiresAt }: ExportJob, now: number): ExportState {
  if (state === 'completed' && expiresAt !== null && expiresAt <= now) return 'expired'
  return exportStates.find((known) => known === state) ?? 'failed'
}

/** A job as the API shows it at an instant. */
export const publicJob = (job: ExportJob, now: number): z.infer<typeof exportJobSchema> => ({
  id: job.id,
  status: statusOf(job, now),
  format: exportFormats.find((format) => format === job.format) ?? 'json',
  since: timestamp(job.since),
  until: instant(job.until),
  progress: job.progress,
  events: job.events,
  bytes: job.bytes,
  error: job.error,
  created_at: timestamp(job.createdAt),
  created_by: job.createdBy,
  finished_at: instant(job.finishedAt),
  expires_at: instant(job.expiresAt),
})

/** Jobs that meet a condition, in order of creation. */
export async function readJobs(ledger: Database, condition: Statement, limit: number): Promise<ExportJob[]> {
  const which = textCondition(condition)
  return await query(ledger).select().from(exportJobs).where(which).orderBy(exportJobs.id).limit(limit)
}

/** A change of a job that holds only while the condition does. Otherwise its transaction fails. */
export const changeJob = (id: string, set: Statement, whileTrue: Statement): Statement[] => [
  {
    sql: `insert into guards (holds) select 0 where not exists (
      select 1 from export_jobs where id = ? and ${whileTrue.sql})`,
    args: [id, ...whileTrue.args],
  },
  { sql: `update export_jobs set ${set.sql} where id = ?`, args: [...set.args, id] },
]

/** The event of a step of a job. Its request id is that of the call that created the job. */
export async function jobEvent(
  { state, clock, newId }: ExportDependencies,
  job: ExportJob,
  told: { type: EventType; reason?: string; details?: Record<string, unknown> },
): Promise<Event> {
  const event = controlPlaneEvent({
    type: told.type,
    verdict: told.reason === undefined ? 'allow' : 'error',
    reason: told.reason ?? 'ok',
    principal: { ...anonymous, name: 'exports', teamId: job.teamId },
    requestId: '',
    details: { job_id: job.id, format: job.format, created_by: job.createdBy, ...told.details },
    configVersion: await versionNow(state),
    clock,
    newId,
  })
  return { ...event, request_id: job.requestId }
}
