/**
 * Writes the files of background exports, one at a time on each control plane, at constant memory. A file is written
 * under another name and renamed when complete. What a dead process began is started again, by the same control plane
 * when it is back, or by another one after a minute without a sign of life.
 *
 * All files together take at most `export_limit_bytes`. Each is removed after `export_keep_hours`.
 */
import { mkdirSync, readdirSync, statSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Failure } from '../../failure.ts'
import { readOrMake } from '../../lib/made-once.ts'
import { conditionsOfAll } from '../query/filters.ts'
import { exportFormats, exportText } from './export.ts'
import {
  changeJob,
  type ExportDependencies,
  type ExportJob,
  jobEvent,
  readJobs,
  visibilityOfJob,
} from './export-job.ts'

interface ExportRunnerOptions extends ExportDependencies {
  /** The directory of the files in the data directory. */
  directory: string
  /** The address of this control plane, for others that are asked for its files. */
  address(): string
  settings: { export_keep_hours: number; export_limit_bytes: number }
}

export interface ExportRunner {
  /** Starts waiting jobs in the background, unless one is running. */
  start(): void
  /** Removes what has expired and resumes what was left. Call every few seconds. */
  tend(): Promise<void>
  /** The file of a completed job. Throws `export_elsewhere` if another control plane has it. */
  fileOf(job: ExportJob): string
  /** Stops writing. Incomplete files are started again at the next start. */
  stop(): Promise<void>
}

const abandonedAfterMilliseconds = 60_000
const heartbeatMilliseconds = 1000
/** How long rows of jobs are kept after their file is gone. */
const forgottenAfterMilliseconds = 90 * 86_400_000

export function createExportRunner(options: ExportRunnerOptions): ExportRunner {
  const { directory, ledger, clock, log } = options
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const owner = ownName(directory)
  const stopping = new AbortController()
  let running: Promise<void> | null = null
  const start = () => {
    if (running !== null || stopping.signal.aborted) return
    running = runAll(options, owner, stopping.signal)
      .catch((error: unknown) =>
        log.error({ error: String(error) }, 'Exports could not be made and will be tried again'),
      )
      .finally(() => {
        running = null
      })
  }
  return {
    start,
    async tend() {
      const now = clock.now()
      // What this control plane left unfinished is its own to start again.
      const left = { sql: "state = 'processing' and (heartbeat_at < ? or (owner = ? and ?))", args: [] }
      const abandoned = [now - abandonedAfterMilliseconds, owner, running === null ? 1 : 0]
      for (const job of await readJobs(ledger, { ...left, args: abandoned }, 100)) await requeue(options, job)
      await expire(options, owner)
      await ledger.write([
        { sql: 'delete from export_jobs where finished_at < ?', args: [now - forgottenAfterMilliseconds] },
      ])
      start()
    },
    fileOf(job) {
      if (job.owner === owner) return fileName(directory, job)
      throw new Failure('export_elsewhere', {
        message: `The control plane at ${job.ownerAddress} made this export and has its file: ask there`,
      })
    },
    async stop() {
      stopping.abort()
      await running
    },
  }
}

const fileName = (directory: string, { id, format }: ExportJob): string => join(directory, `${id}.${format}`)

/** A permanent id of this data directory, to tell it from those of other control planes. */
const ownName = (directory: string): string => readOrMake(join(directory, 'owner'), () => Bun.randomUUIDv7())

async function runAll(options: ExportRunnerOptions, owner: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const [job] = await readJobs(options.ledger, { sql: "state = 'queued'", args: [] }, 1)
    if (job === undefined) return
    if (await claim(options, job, owner)) await run(options, { ...job, owner }, signal)
  }
}

async function claim({ ledger, clock, address }: ExportRunnerOptions, job: ExportJob, owner: string): Promise<boolean> {
  const taken = {
    sql: "state = 'processing', owner = ?, owner_address = ?, heartbeat_at = ?, progress = 0, events = 0, bytes = 0",
    args: [owner, address(), clock.now()],
  }
  try {
    await ledger.write(changeJob(job.id, taken, { sql: "state = 'queued'", args: [] }))
    return true
  } catch (error) {
    const [again] = await readJobs(ledger, { sql: 'id = ?', args: [job.id] }, 1)
    if (again?.state === 'queued') throw error
    return false
  }
}

const requeue = ({ ledger }: ExportRunnerOptions, job: ExportJob): Promise<void> =>
  ledger.write([
    {
      sql: "update export_jobs set state = 'queued' where id = ? and state = 'processing' and heartbeat_at = ?",
      args: [job.id, job.heartbeatAt],
    },
  ])

async function run(options: ExportRunnerOptions, job: ExportJob, signal: AbortSignal): Promise<void> {
  const file = fileName(options.directory, job)
  try {
    const written = await writeFile(options, job, signal)
    if (written === null) return
    await rename(`${file}.part`, file)
    await complete(options, job, written)
  } catch (error) {
    await rm(`${file}.part`, { force: true })
    if (error instanceof Failure && error.code === 'conflict') return
    await fail(options, job, error)
  }
}

interface Written {
  events: number
  bytes: number
  /** When the first of them happened. Retention has removed earlier ones of the window. */
  firstEventAt: string | null
}

/** Null where the signal fired first. */
async function writeFile(options: ExportRunnerOptions, job: ExportJob, signal: AbortSignal): Promise<Written | null> {
  const { ledger, clock, directory, settings } = options
  const format = exportFormats.find((known) => known === job.format) ?? 'json'
  const conditions = conditionsOfAll(visibilityOfJob(job))
  const window = { since: job.since, until: job.until, ceiling: job.lastPosition + 1, conditions, signal }
  const room = settings.export_limit_bytes - bytesOfOthers(directory, job)
  const handle = await open(`${fileName(directory, job)}.part`, 'w', 0o600)
  const written: Written = { events: 0, bytes: 0, firstEventAt: null }
  try {
    let heartbeatAt = clock.monotonic()
    for await (const piece of exportText(ledger, window, format)) {
      const { text, events, progress, firstEventAt } = piece
      if (signal.aborted) return null
      const bytes = Buffer.from(text)
      if (written.bytes + bytes.length > room) throw new Failure('export_too_large')
      await handle.writeFile(bytes)
      written.firstEventAt ??= firstEventAt ?? null
      written.events += events
      written.bytes += bytes.length
      if (clock.monotonic() - heartbeatAt < heartbeatMilliseconds) continue
      heartbeatAt = clock.monotonic()
      await heartbeat(options, job, { ...written, progress })
    }
    if (signal.aborted) return null
    await handle.sync()
    return written
  } finally {
    await handle.close()
  }
}

/** The size of all files except this job's. */
const bytesOfOthers = (directory: string, job: ExportJob): number =>
  readdirSync(directory)
    .filter((name) => !name.startsWith(job.id))
    .reduce((sum, name) => sum + statSync(join(directory, name)).size, 0)

const mine = ({ owner }: ExportJob) => ({ sql: "state = 'processing' and owner = ?", args: [owner] })

function heartbeat(
  { ledger, clock }: ExportRunnerOptions,
  job: ExportJob,
  { events, bytes, progress }: Written & { progress: number },
): Promise<void> {
  const set = {
    sql: 'heartbeat_at = ?, events = ?, bytes = ?, progress = ?',
    args: [clock.now(), events, bytes, Math.min(1, progress)],
  }
  return ledger.write(changeJob(job.id, set, mine(job)))
}

async function complete(options: ExportRunnerOptions, job: ExportJob, written: Written): Promise<void> {
  const { recorder, clock, settings, address } = options
  const now = clock.now()
  const set = {
    sql: `state = 'completed', progress = 1, events = ?, bytes = ?, owner_address = ?, finished_at = ?,
      expires_at = ?`,
    args: [written.events, written.bytes, address(), now, now + settings.export_keep_hours * 3_600_000],
  }
  const { events, bytes, firstEventAt } = written
  const details = { events, bytes, first_event_at: firstEventAt }
  const event = await jobEvent(options, job, { type: 'export.completed', details })
  await recorder.change({ event, state: [], ledger: changeJob(job.id, set, mine(job)) })
}

async function fail(options: ExportRunnerOptions, job: ExportJob, thrown: unknown): Promise<void> {
  const { recorder, clock, log } = options
  const failure = thrown instanceof Failure ? thrown : null
  log.error({ job_id: job.id, error: String(thrown) }, 'An export failed')
  const set = {
    sql: "state = 'failed', error = ?, finished_at = ?",
    args: [failure?.message ?? 'The file could not be written', clock.now()],
  }
  const event = await jobEvent(options, job, { type: 'export.failed', reason: failure?.code ?? 'export.not_written' })
  await recorder.change({ event, state: [], ledger: changeJob(job.id, set, mine(job)) })
}

/** Removes expired files: its own ones; for control planes that are gone only the state in the rows. */
async function expire(options: ExportRunnerOptions, owner: string): Promise<void> {
  const { ledger, recorder, clock, directory } = options
  const now = clock.now()
  const over = { sql: "state = 'completed' and expires_at <= ?", args: [now] }
  for (const job of await readJobs(ledger, over, 100)) {
    // Its owner comes first. Another control plane acts only if the owner does not.
    if (job.owner !== owner && now < (job.expiresAt ?? 0) + abandonedAfterMilliseconds) continue
    const event = await jobEvent(options, job, { type: 'export.expired' })
    const expired = changeJob(job.id, { sql: "state = 'expired'", args: [] }, over)
    await recorder.change({ event, state: [], ledger: expired })
  }
  await removeStray(ledger, directory)
}

/** Files of expired jobs, and files without a row. */
async function removeStray(ledger: ExportRunnerOptions['ledger'], directory: string): Promise<void> {
  const files = readdirSync(directory).filter((name) => name !== 'owner')
  if (files.length === 0) return
  const known = await ledger.read<{ id: string }>(
    "select id from export_jobs where state in ('processing', 'completed') and id in (select value from json_each(?))",
    [JSON.stringify(files.map((name) => name.split('.')[0]))],
  )
  const kept = new Set(known.map(({ id }) => id))
  for (const name of files) if (!kept.has(name.split('.')[0] ?? '')) await rm(join(directory, name), { force: true })
}
