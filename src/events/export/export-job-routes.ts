/**
 * Exports made in the background: POST and GET /v1/exports/jobs (events/README.md). Each sees those it made, and a
 * token those of the tokens it was rotated from; a file is given out while its caller sees all that it was made of.
 */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { cutPage, pageQuery, startOf } from '../../api/page.ts'
import { Failure } from '../../failure.ts'
import type { Principal } from '../../identity/principal.ts'
import type { Database } from '../../store/open.ts'
import { insert, statement } from '../../store/query.ts'
import { exportJobs } from '../../store/schema/ledger/events.ts'
import type { Statement } from '../../store/statement.ts'
import { controlPlaneEvent, versionNow } from '../control-plane-event.ts'
import { readLogHead } from '../log/segment-rows.ts'
import { requireUntilAfter, sinceInstant, sinceSchema, untilSchema } from '../query/since.ts'
import { covers, type Visibility } from '../visibility.ts'
import { contentTypes, exportFormats } from './export.ts'
import {
  type ExportDependencies,
  type ExportJob,
  exportJobSchema,
  exportStates,
  exportSummary,
  publicJob,
  readJobs,
  visibilityOfJob,
} from './export-job.ts'
import type { ExportRunner } from './export-runner.ts'

interface RouteDependencies extends ExportDependencies {
  exports: Pick<ExportRunner, 'start' | 'fileOf'>
  visible(principal: Principal): Promise<Visibility>
}

/** So many may wait or run, of all who ask. */
const unfinishedAtMost = 100

export const exportJobRoutes = (deps: RouteDependencies) =>
  new Elysia({ name: 'export-job' })
    .use(conventions)
    .post(
      '/v1/exports/jobs',
      async ({ principal, body, requestId, status }) => {
        const job = await createJob(deps, { principal, body, requestId })
        deps.exports.start()
        return status(202, publicJob(job, deps.clock.now()))
      },
      {
        access: 'events:export',
        body: z.strictObject({
          since: sinceSchema,
          until: untilSchema.optional().describe('RFC 3339, exclusive; now where it is left out'),
          format: z.enum(exportFormats),
        }),
        response: { 202: exportJobSchema },
        detail: { tags: ['Events'], summary: 'Creates a file of all events of a time window, in the background' },
      },
    )
    .get(
      '/v1/exports/jobs',
      async ({ principal, query: { limit, cursor, status } }) => {
        const filters = { status }
        const now = deps.clock.now()
        const after = startOf(cursor, filters)
        const conditions: Statement[] = [
          await madeBy(deps.ledger, principal),
          ...(after === null ? [] : [{ sql: 'id > ?', args: [after] }]),
          ...(status === undefined ? [] : [exportSummary(status, now)]),
        ]
        const sql = conditions.map((each) => each.sql).join(' and ')
        const args = conditions.flatMap((each) => each.args)
        const { rows, next_cursor } = cutPage(await readJobs(deps.ledger, { sql, args }, limit + 1), limit, filters)
        return { jobs: rows.map((job) => publicJob(job, now)), next_cursor }
      },
      {
        access: 'events:export',
        query: z.strictObject({ ...pageQuery, status: z.enum(exportStates).optional() }),
        response: z.object({ jobs: z.array(exportJobSchema), next_cursor: z.string().nullable() }),
        detail: { tags: ['Events'], summary: "Lists the caller's exports, in the order they were created" },
      },
    )
    .get(
      '/v1/exports/jobs/:id',
      async ({ principal, params }) => publicJob(await ownJob(deps, principal, params.id), deps.clock.now()),
      {
        access: 'events:export',
        params: z.object({ id: z.uuid() }),
        response: exportJobSchema,
        detail: { tags: ['Events'], summary: 'Reads an export and its progress' },
      },
    )
    .get(
      '/v1/exports/jobs/:id/download',
      async ({ principal, params }) => {
        const job = await ownJob(deps, principal, params.id)
        if (!covers(await deps.visible(principal), visibilityOfJob(job))) {
          throw new Failure('not_found', { message: 'This export holds events that you no longer see: make a new one' })
        }
        return await download(deps, job)
      },
      {
        failures: [409, 410],
        access: 'events:export',
        params: z.object({ id: z.uuid() }),
        response: z.looseObject({ events: z.array(z.unknown()) }),
        answers: ['text/csv'],
        detail: { tags: ['Events'], summary: 'Downloads the file of a completed export' },
      },
    )

async function createJob(
  { state, ledger, recorder, clock, newId, visible }: RouteDependencies,
  asked: {
    principal: Principal
    body: { since: string; until?: string | undefined; format: ExportJob['format'] }
    requestId: string
  },
): Promise<ExportJob> {
  const { principal, body, requestId } = asked
  const now = clock.now()
  const since = sinceInstant(body.since, now)
  requireUntilAfter(since, body.until)
  const id = newId()
  const row = statement(
    insert(exportJobs).values({
      id,
      state: 'queued',
      format: body.format,
      since,
      until: body.until === undefined ? null : Date.parse(body.until),
      visibility: JSON.stringify(await visible(principal)),
      lastPosition: (await readLogHead(ledger)).next - 1,
      createdBy: principal.name,
      teamId: principal.teamId,
      createdAt: now,
      requestId,
    }),
  )
  const room = {
    sql: `insert into guards (holds) select 0 where (
      select count(*) from export_jobs where state in ('queued', 'processing')) >= ${unfinishedAtMost}`,
    args: [],
  }
  const event = controlPlaneEvent({
    ...{ type: 'export.created', principal, requestId, clock, newId },
    details: { job_id: id, format: body.format, since: body.since, until: body.until ?? null },
    configVersion: await versionNow(state),
  })
  await recorder.change({ event, state: [], ledger: [room, row] }).catch((error: unknown) => {
    if (!(error instanceof Failure) || error.code !== 'conflict') throw error
    throw new Failure('conflict', { message: 'Too many exports wait: try again when some are done', cause: error })
  })
  const [job] = await readJobs(ledger, { sql: 'id = ?', args: [id] }, 1)
  if (job === undefined) throw new Failure('internal', { cause: new Error('A created export is missing') })
  return job
}

async function ownJob({ ledger }: RouteDependencies, principal: Principal, id: string): Promise<ExportJob> {
  const made = await madeBy(ledger, principal)
  const [job] = await readJobs(ledger, { sql: `id = ? and ${made.sql}`, args: [id, ...made.args] }, 1)
  if (job === undefined) throw new Failure('not_found', { message: 'There is no such export' })
  return job
}

/** The condition that an export is the caller's. */
async function madeBy(ledger: Database, { name, tokenId }: Principal): Promise<Statement> {
  const rows = await ledger.read<{ id: string }>(
    `with recursive former (id) as (
      select rotated_from from tokens where id = ? and rotated_from is not null
      union select tokens.rotated_from from tokens join former on tokens.id = former.id
        where tokens.rotated_from is not null)
    select id from former`,
    [tokenId],
  )
  const names = [name, ...rows.map(({ id }) => `token:${id}`)]
  return { sql: 'created_by in (select value from json_each(?))', args: [JSON.stringify(names)] }
}

async function download({ exports, clock }: RouteDependencies, job: ExportJob): Promise<Response> {
  const { status, format } = publicJob(job, clock.now())
  if (status === 'expired') throw new Failure('gone', { message: 'The file of this export has been removed' })
  if (status !== 'completed') {
    throw new Failure('conflict', { message: `The export is ${status}: there is no file to download` })
  }
  const file = Bun.file(exports.fileOf(job))
  if (!(await file.exists())) throw new Failure('gone', { message: 'The file of this export is no longer there' })
  const headers = {
    'content-type': contentTypes[format],
    'content-disposition': `attachment; filename="events-${job.id}.${format}"`,
  }
  return new Response(file, { headers })
}
