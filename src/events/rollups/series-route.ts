/**
 * Sums of what requests did: GET /v1/events/series for one chart, /v1/events/summary for what the overview shows of a
 * time, /v1/events/recent for whether something is wrong now.
 */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import type { Principal } from '../../identity/principal.ts'
import { type Clock, timestamp } from '../../lib/clock.ts'
import type { Database } from '../../store/open.ts'
import { verdicts } from '../event.ts'
import { requireUntilAfter, sinceInstant, sinceSchema, untilSchema } from '../query/since.ts'
import { requireDeclared } from '../report/declared-dimensions.ts'
import { namesOf } from '../report/names-of.ts'
import type { Visibility } from '../visibility.ts'
import { foldRollups } from './fold.ts'
import { readRecent, recentReply } from './recent.ts'
import { readSeries, type SeriesQuery, seriesGroupSchema } from './series.ts'
import { readTotals, type TotalsQuery } from './totals.ts'

const quantilesSchema = z
  .object({ p50: z.number(), p95: z.number(), p99: z.number() })
  .nullable()
  .describe('Within 5 % of the true value; null where nothing was measured, and for reasons and dimensions')

/** How many rounds a reader waits for. A backlog after an outage is left to the background work. */
const turnsBeforeReading = 20
/** What every open overview asks again and again waits for a few at most, which is enough where there is no backlog. */
const turnsBeforeOverview = 4

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

const windowQuery = {
  since: sinceSchema,
  until: untilSchema.optional().describe('RFC 3339, exclusive; now where it is left out'),
}

const query = z.strictObject({
  ...windowQuery,
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

const seriesReply = z.object({
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
})

const totalsSchema = z.object({
  since: z.iso.datetime().describe('Where the first bucket begins'),
  rows: z.array(
    z.object({
      key: z.string().describe('Empty for what has none'),
      name: z.string().nullable().describe('What the team or token is called; null for other keys'),
      requests: measures.requests,
      cost: measures.cost,
    }),
  ),
})

export type TotalsReply = z.infer<typeof totalsSchema>

const summaryReply = z.object({
  since: z.iso.datetime(),
  until: z.iso.datetime(),
  verdicts: seriesReply.describe('By verdict, without latencies'),
  answered: seriesReply.describe('Of answered requests only'),
  models: seriesReply.describe('By model, without latencies'),
  top: z
    .object({ models: totalsSchema, teams: totalsSchema, reasons: totalsSchema })
    .describe('The dearest models and teams, and the most frequent reasons, of the time of `verdicts`'),
})
export type SummaryReply = z.infer<typeof summaryReply>

/** What the overview shows of each. */
const topAtMost = 10

interface SeriesDependencies {
  state: Database
  ledger: Database
  clock: Clock
}

export const seriesRoute = (
  { state, ledger, clock }: SeriesDependencies,
  visible: (principal: Principal) => Promise<Visibility>,
) =>
  new Elysia({ name: 'series' })
    .use(conventions)
    .get(
      '/v1/events/series',
      async ({ principal, query }) => {
        await requireDeclared(state, [query.by ?? ''])
        const { since, until, now } = windowOf(query, clock)
        const visibility = await visible(principal)
        await foldRollups(ledger, turnsBeforeReading)
        const asked = { ...query, answered: query.answered === 'true', since, until }
        return await namedSeries(ledger, asked, visibility, now)
      },
      {
        access: 'events:read',
        query: query,
        response: seriesReply,
        detail: {
          tags: ['Events'],
          summary:
            'Returns requests, tokens, cost and latency by minute, hour or day, from stored sums of all requests',
        },
      },
    )
    .get(
      '/v1/events/summary',
      async ({ principal, query }) => {
        const window = windowOf(query, clock)
        const visibility = await visible(principal)
        await foldRollups(ledger, turnsBeforeOverview)
        return await summaryOf(ledger, window, visibility)
      },
      {
        access: 'events:read',
        query: z.strictObject(windowQuery),
        response: summaryReply,
        detail: {
          tags: ['Events'],
          summary:
            'Returns what a time came to: by verdict and model over time, with the top models, teams and reasons',
        },
      },
    )
    .get(
      '/v1/events/summary/tokens',
      async ({ principal, query }) => {
        const { since, until } = windowOf(query, clock)
        const asked = { by: 'token', order: 'cost', step: 'hour', since, until, limit: topAtMost } as const
        return await namedTotals(ledger, asked, await visible(principal))
      },
      {
        access: 'events:read',
        query: z.strictObject(windowQuery),
        response: totalsSchema,
        detail: {
          tags: ['Events'],
          summary: 'Returns the dearest tokens of a time, by whole hours',
        },
      },
    )
    .get(
      '/v1/events/recent',
      async ({ principal }) => {
        const visibility = await visible(principal)
        await foldRollups(ledger, turnsBeforeOverview)
        return await readRecent(ledger, { visibility, now: clock.now() })
      },
      {
        access: 'events:read',
        query: z.strictObject({}),
        response: recentReply,
        detail: {
          tags: ['Events'],
          summary: 'Says what the requests of the last minutes came to, and which providers and models fail',
        },
      },
    )

interface TimeWindow {
  since: number
  until: number
  now: number
}

function windowOf({ since, until }: { since: string; until?: string | undefined }, clock: Clock): TimeWindow {
  const now = clock.now()
  requireUntilAfter(sinceInstant(since, now), until)
  return { since: sinceInstant(since, now), until: until === undefined ? now + 1 : Date.parse(until), now }
}

async function namedSeries(ledger: Database, query: SeriesQuery, visibility: Visibility, now: number) {
  const read = await readSeries(ledger, { query, visibility, now })
  const keys = read.totals.flatMap(({ key }) => key ?? [])
  const names = await namesOf(ledger, query.by ?? '', keys)
  return { ...read, totals: read.totals.map((total) => ({ ...total, name: names.get(total.key ?? '') ?? null })) }
}

/**
 * All of one time and one reading, so that its figures, charts and tables agree. Tokens have far more rows, and are read
 * by themselves.
 */
async function summaryOf(ledger: Database, window: TimeWindow, visibility: Visibility): Promise<SummaryReply> {
  const { since, until, now } = window
  const series = (query: Pick<SeriesQuery, 'by' | 'answered' | 'withoutLatencies'>) =>
    namedSeries(ledger, { ...query, since, until }, visibility, now)
  const verdicts = await series({ by: 'verdict', withoutLatencies: true })
  const top = (by: TotalsQuery['by'], order: TotalsQuery['order']) =>
    namedTotals(ledger, { by, order, since, until, step: verdicts.step, limit: topAtMost }, visibility)
  return {
    since: timestamp(since),
    until: timestamp(until),
    verdicts,
    answered: await series({ answered: true }),
    models: await series({ by: 'model', withoutLatencies: true }),
    top: {
      models: await top('model', 'cost'),
      teams: await top('team', 'cost'),
      reasons: await top('reason', 'requests'),
    },
  }
}

async function namedTotals(ledger: Database, query: TotalsQuery, visibility: Visibility): Promise<TotalsReply> {
  const totals = await readTotals(ledger, { query, visibility })
  const keys = totals.rows.map(({ key }) => key)
  const names = await namesOf(ledger, query.by, keys)
  return { ...totals, rows: totals.rows.map((row) => ({ ...row, name: names.get(row.key) ?? null })) }
}
