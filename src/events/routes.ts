/** Events by query: GET /v1/events (events/README.md). */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../api/conventions.ts'
import { pageLimit } from '../api/page.ts'
import { Failure } from '../failure.ts'
import type { Principal } from '../identity/principal.ts'
import { describedEventSchema } from './details.ts'
import { extraColumnNames, readColumns } from './export/csv.ts'
import { exportAnswer, exportFormats } from './export/export.ts'
import type { ExportDependencies } from './export/export-job.ts'
import { exportJobRoutes } from './export/export-job-routes.ts'
import type { ExportRunner } from './export/export-runner.ts'
import { readLogHead } from './log/segment-rows.ts'
import { conditionsOf, type EventFilters, eventFilters } from './query/filters.ts'
import { requireKnownValues } from './query/known-values.ts'
import { mentionedNameSchema, namesIn } from './query/mentioned-names.ts'
import { orders, readEventPage } from './query/query.ts'
import { requireUntilAfter, sinceInstant, sinceSchema } from './query/since.ts'
import { visibilityFor } from './query/visibility-filter.ts'
import { requireEverDeclared } from './report/declared-dimensions.ts'
import { reportRoute } from './report/report-route.ts'
import { dimensionPrefix } from './rollups/rollup.ts'
import { seriesRoute } from './rollups/series-route.ts'
import { sessionRoute } from './sessions/session-route.ts'

/** Of CSV only: JSON has all of an event. */
const columnsSchema = z
  .string()
  .refine((text) => readColumns(text) !== null, {
    message: `Name one or more of ${extraColumnNames.join(',')}, with commas and without blanks between them`,
  })
  .transform((text) => readColumns(text) ?? [])
  .optional()
  .meta({ type: 'string', description: `More columns of CSV, of ${extraColumnNames.join(',')}` })

const onlyColumnsSchema = z
  .enum(['true', 'false'])
  .optional()
  .describe('true: CSV with the columns that are asked for and no other, in their order')

export function eventRoutes(deps: ExportDependencies & { exports: Pick<ExportRunner, 'start' | 'fileOf'> }) {
  const { state, ledger, clock } = deps
  const visible = (principal: Principal) => visibilityFor(ledger, principal)
  /** `isFirst`: not a later page, whose filters were looked at with the first. */
  const window = async (principal: Principal, filters: EventFilters & { since: string }, isFirst = true) => {
    const since = sinceInstant(filters.since, clock.now())
    requireUntilAfter(since, filters.until)
    const caller = { principal, visibility: await visible(principal) }
    const dimension = filters.dimension?.split('=', 1) ?? []
    await requireEverDeclared(
      state,
      dimension.map((name) => `${dimensionPrefix}${name}`),
      'dimension',
    )
    // Others do not learn which names there are.
    if (isFirst && caller.visibility.teams === 'every') await requireKnownValues({ state, ledger, clock }, filters)
    return { since, caller, conditions: await conditionsOf(ledger, filters, caller) }
  }
  return new Elysia({ name: 'events' })
    .use(conventions)
    .get(
      '/v1/events',
      async ({ principal, query }) => {
        const { limit, cursor, order, names, ...filters } = query
        const { caller, ...asked } = await window(principal, filters, cursor === undefined)
        const page = await readEventPage(ledger, { ...asked, filters, order, limit, cursor, clock })
        return names === undefined ? page : { ...page, names: await namesIn(ledger, caller, page.events) }
      },
      {
        access: 'events:read',
        query: z.strictObject({
          since: sinceSchema,
          order: z.enum(orders).default('newest').describe('By timestamp'),
          limit: pageLimit,
          cursor: z
            .string()
            .min(1)
            .max(2048)
            .optional()
            .describe('next_cursor or follow of the answer before, with the same filters'),
          names: z
            .literal('true')
            .optional()
            .describe('true: the answer says what the tokens, teams, people and policies of its events are called'),
          ...eventFilters,
        }),
        response: z.object({
          events: z.array(describedEventSchema),
          next_cursor: z
            .string()
            .nullable()
            .describe('Null at the end; a page that found little in a second ends early and has one'),
          follow: z.string().describe('A cursor for what arrives after the first page, in the order of arrival'),
          names: z
            .array(mentionedNameSchema)
            .optional()
            .describe('With names=true; of people only those whom the caller may read'),
        }),
        detail: { tags: ['Events'], summary: 'Lists events by time, or those that arrived since an answer' },
      },
    )
    .get(
      '/v1/events/export',
      async ({ principal, query, request: { signal } }) => {
        const { format, columns: asked = [], only_columns, ...filters } = query
        if (format === 'json' && query.columns !== undefined) {
          throw new Failure('invalid_parameter', {
            param: 'columns',
            message: 'JSON has all of an event: columns are for CSV',
          })
        }
        if (only_columns === 'true' && asked.length === 0) {
          throw new Failure('invalid_parameter', {
            param: 'only_columns',
            message: 'Name the columns in columns: without them there is nothing to export',
          })
        }
        const columns = { asked, alone: only_columns === 'true' }
        const { since, conditions } = await window(principal, filters)
        const until = filters.until === undefined ? null : Date.parse(filters.until)
        const { next: ceiling } = await readLogHead(ledger)
        return await exportAnswer(ledger, { since, until, ceiling, conditions, signal, columns }, format)
      },
      {
        access: 'events:export',
        query: z.strictObject({
          since: sinceSchema,
          format: z.enum(exportFormats),
          columns: columnsSchema,
          only_columns: onlyColumnsSchema,
          ...eventFilters,
        }),
        response: z.object({ events: z.array(describedEventSchema) }),
        answers: ['text/csv'],
        detail: {
          tags: ['Events'],
          summary:
            'All events from an instant to now, oldest first, in one answer: JSON as described, or CSV; x-service-first-event-at says where they begin',
        },
      },
    )
    .use(seriesRoute(deps, visible))
    .use(sessionRoute(deps, visible))
    .use(reportRoute(deps, window))
    .use(exportJobRoutes({ ...deps, visible }))
}
