/** Sums of what requests did, for charts: GET /v1/events/series. */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import type { Principal } from '../../identity/principal.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Database } from '../../store/open.ts'
import { verdicts } from '../event.ts'
import { sinceInstant, sinceSchema, untilSchema } from '../query/since.ts'
import { requireDeclared } from '../report/declared-dimensions.ts'
import { namesOf } from '../report/names-of.ts'
import type { Visibility } from '../visibility.ts'
import { foldRollups } from './fold.ts'
import { readSeries, seriesGroupSchema } from './series.ts'

const quantilesSchema = z
  .object({ p50: z.number(), p95: z.number(), p99: z.number() })
  .nullable()
  .describe('Within 5 % of the true value; null where nothing was measured, and for reasons and dimensions')

/** How many rounds a reader waits for. A backlog after an outage is left to the background work. */
const turnsBeforeReading = 20

const measures = {
  requests: z.number().int(),
  input_tokens: z.number().int(),
  output_tokens: z.number().int(),
  cost: z.number().describe('USD'),
  latency_ms: quantilesSchema,
  first_token_ms: quantilesSchema,
}
const key = z.string().nullable().describe('Null where there is none, as without `by`')
const rest = z.boolean().describe('Whether this, whose key is `other`, sums up all that are not shown')

const query = z.strictObject({
  since: sinceSchema,
  until: untilSchema.optional().describe('RFC 3339, exclusive; now where it is left out'),
  step: z
    .enum(['minute', 'hour', 'day'])
    .optional()
    .describe('Left out: minutes up to 6 hours, hours up to 14 days, else days; coarser where it would be too much'),
  by: seriesGroupSchema.optional(),
  gateway_id: z.uuid().optional(),
  team_id: z.uuid().optional(),
  token_id: z.uuid().optional(),
  model: z.string().min(1).max(200).optional(),
  verdict: z.enum(verdicts).optional(),
  answered: z
    .literal('true')
    .optional()
    .describe('true: only requests that were answered, so that refusals do not make latencies shorter'),
})

export const seriesRoute = (
  { state, ledger, clock }: { state: Database; ledger: Database; clock: Clock },
  visible: (principal: Principal) => Promise<Visibility>,
) =>
  new Elysia({ name: 'series' }).use(conventions).get(
    '/v1/events/series',
    async ({ principal, query }) => {
      await requireDeclared(state, [query.by ?? ''])
      const now = clock.now()
      const since = sinceInstant(query.since, now)
      const until = query.until === undefined ? now + 1 : Date.parse(query.until)
      const visibility = await visible(principal)
      await foldRollups(ledger, turnsBeforeReading)
      const read = await readSeries(ledger, {
        query: { ...query, answered: query.answered === 'true', since, until },
        visibility,
        now,
      })
      const names = await namesOf(
        ledger,
        query.by ?? '',
        read.totals.flatMap(({ key }) => key ?? []),
      )
      return { ...read, totals: read.totals.map((total) => ({ ...total, name: names.get(total.key ?? '') ?? null })) }
    },
    {
      access: 'events:read',
      query: query,
      response: z.object({
        since: z.iso.datetime().describe('Where the first bucket begins'),
        until: z.iso.datetime(),
        step: z.enum(['minute', 'hour', 'day']),
        by: seriesGroupSchema.nullable(),
        series: z
          .array(z.object({ key, rest, points: z.array(z.object({ at: z.iso.datetime(), ...measures })) }))
          .describe('Most requests first; a bucket in which nothing happened is left out'),
        totals: z.array(
          z.object({
            ...{ key, rest, ...measures },
            name: z.string().nullable().describe('What the team, token or gateway is called; null for other keys'),
          }),
        ),
      }),
      detail: {
        tags: ['Events'],
        summary: 'Returns requests, tokens, cost and latency by minute, hour or day, from stored sums of all requests',
      },
    },
  )
