/** What requests used in a time, by teams, models, tokens and more: GET /v1/usage/report. */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import type { Principal } from '../../identity/principal.ts'
import { type Clock, timestamp } from '../../lib/clock.ts'
import type { Database } from '../../store/open.ts'
import type { EventConditions, EventFilters } from '../query/filters.ts'
import { eventFilters } from '../query/filters.ts'
import { sinceSchema } from '../query/since.ts'
import { requireEverDeclared } from './declared-dimensions.ts'
import { namesOf } from './names-of.ts'
import { dimensionNames, readDimensions, readReport } from './read-report.ts'

const bySchema = z
  .string()
  .refine((text) => readDimensions(text) !== null, {
    message: `Name one or more of ${dimensionNames.join(', ')}, tag:KEY or dimension:NAME, with commas and without blanks between them`,
  })
  .transform((text) => readDimensions(text) ?? new Map())
  .meta({
    type: 'string',
    description: `What rows are for: one or more of ${dimensionNames.join(', ')}, tag:KEY, dimension:NAME`,
  })

const count = z.number().int()
const sums = {
  requests: count,
  refused: count.describe('Requests that a policy, a limit or a permission stopped'),
  errors: count.describe('Requests with the verdict error'),
  latency_ms: z.number().describe('What all requests took together, in milliseconds'),
  input_tokens: count,
  output_tokens: count,
  cached_input_tokens: count,
  cost: z.number().describe('USD; exact to the nano-dollar'),
  unpriced: count.describe('Requests to models without a price, which are not in the cost'),
}
const byDimension = z.record(z.string(), z.string().nullable())
const reportSchema = z.object({
  since: z.iso.datetime(),
  until: z.iso.datetime(),
  by: z.array(z.string()),
  rows: z
    .array(z.object({ group: byDimension, names: byDimension, ...sums }))
    .describe('The dearest first; group has ids where there are any, names what they are called'),
  totals: z.object(sums),
})
export type UsageReport = z.infer<typeof reportSchema>
const { event_type: _, ...filters } = eventFilters

export const reportRoute = (
  { state, ledger, clock }: { state: Database; ledger: Database; clock: Clock },
  window: (
    principal: Principal,
    filters: EventFilters & { since: string },
  ) => Promise<{ since: number; conditions: EventConditions | 'nothing' }>,
) =>
  new Elysia({ name: 'usage-report' }).use(conventions).get(
    '/v1/usage/report',
    async ({ principal, query: { by, ...query }, request: { signal } }) => {
      await requireEverDeclared(state, by.keys())
      const { since, conditions } = await window(principal, query)
      const until = query.until === undefined ? clock.now() + 1 : Date.parse(query.until)
      const { rows, totals } = await readReport(ledger, by, { since, until, conditions, signal })
      const seesPeople = principal.permissions.has('members:read')
      for (const dimension of by.keys()) {
        if (dimension === 'user' && !seesPeople) continue
        const names = await namesOf(
          ledger,
          dimension,
          rows.map(({ group }) => group[dimension] ?? ''),
        )
        for (const { group, names: own } of rows) own[dimension] = names.get(group[dimension] ?? '') ?? null
      }
      return { since: timestamp(since), until: timestamp(until), by: [...by.keys()], rows, totals }
    },
    {
      access: 'events:read',
      query: z.strictObject({ since: sinceSchema, by: bySchema, ...filters }),
      response: reportSchema,
      detail: {
        tags: ['Usage'],
        summary: 'Returns what requests used in a time, by teams, models, tokens and more, as exact sums of the events',
      },
    },
  )
