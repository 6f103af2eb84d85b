/** Events by query: GET /v1/events (events/README.md). */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../api/conventions.ts'
import { pageLimit } from '../api/page.ts'
import type { Principal } from '../identity/principal.ts'
import { describedEventSchema } from './details.ts'
import { exportAnswer, exportFormats, lastPosition } from './export/export.ts'
import type { ExportDependencies } from './export/export-job.ts'
import { exportJobRoutes } from './export/export-job-routes.ts'
import type { ExportRunner } from './export/export-runner.ts'
import { eventFilters } from './query/filters.ts'
import { readEventPage, visibilityFor } from './query/query.ts'
import { requireUntilAfter, sinceInstant, sinceSchema } from './query/since.ts'
import { seriesRoute } from './rollups/series-route.ts'

export function eventRoutes(deps: ExportDependencies & { exports: Pick<ExportRunner, 'start' | 'fileOf'> }) {
  const { ledger, clock } = deps
  const visible = (principal: Principal) => visibilityFor(ledger, principal)
  return new Elysia({ name: 'events' })
    .use(conventions)
    .get(
      '/v1/events',
      async ({ principal, query }) => {
        const { limit, cursor, ...filters } = query
        const since = sinceInstant(query.since, clock.now())
        requireUntilAfter(since, query.until)
        const visibility = await visible(principal)
        return await readEventPage(ledger, { filters, since, limit, cursor, visibility })
      },
      {
        access: 'events:read',
        query: z.strictObject({
          since: sinceSchema,
          limit: pageLimit,
          cursor: z
            .string()
            .min(1)
            .max(2048)
            .optional()
            .describe('next_cursor of the page before, with the same filters'),
          ...eventFilters,
        }),
        response: z.object({ events: z.array(describedEventSchema), next_cursor: z.string().nullable() }),
        detail: { tags: ['Events'], summary: 'Lists events, newest first' },
      },
    )
    .get(
      '/v1/events/export',
      async ({ principal, query, request: { signal } }) => {
        const since = sinceInstant(query.since, clock.now())
        const visibility = await visible(principal)
        const window = { since, until: null, lastPosition: await lastPosition(ledger), visibility, signal }
        return await exportAnswer(ledger, window, query.format)
      },
      {
        access: 'events:export',
        query: z.strictObject({ since: sinceSchema, format: z.enum(exportFormats) }),
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
    .use(exportJobRoutes({ ...deps, visible }))
}
