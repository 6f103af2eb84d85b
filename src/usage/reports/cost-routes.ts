/** `/v1/usage/costs`: a month by one or two dimensions, with the month before and a forecast, as JSON, CSV or FOCUS. */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { csvLine } from '../../events/export/csv.ts'
import { visibilityFor } from '../../events/query/visibility-filter.ts'
import { requireEverDeclared } from '../../events/report/declared-dimensions.ts'
import { foldRollups } from '../../events/rollups/fold.ts'
import { dimensionPrefix } from '../../events/rollups/rollup.ts'
import { Failure } from '../../failure.ts'
import type { Principal } from '../../identity/principal.ts'
import { type Clock, timestamp } from '../../lib/clock.ts'
import { decimalOf, fromNano } from '../../lib/money.ts'
import type { Database } from '../../store/open.ts'
import { focusLines } from './focus.ts'
import {
  costliestFirst,
  isPlain,
  isReportDimension,
  type MonthReport,
  monthAt,
  monthReport,
  type ReportDimension,
  type ReportRow,
  type ReportSums,
  reportDimensions,
  requireBegun,
  windowsOf,
} from './month-report.ts'
import { type NamedDimension, type NameReader, namedDimensions, readRecordNames } from './names.ts'
import { readCosts } from './read-costs.ts'

interface CostDependencies {
  state: Database
  ledger: Database
  clock: Clock
}

/** How many rounds of arrivals are added to the sums before they are read. */
const turnsBeforeReading = 40
/** Rows that JSON shows, and that CSV names at once. */
const rowsShown = 500

export const monthSchema = z
  .string()
  .regex(/^20\d{2}-(0[1-9]|1[0-2])$/, 'Write a month, for example 2026-11')
  .describe('A month in UTC: 2026-11')

const bySchema = z
  .string()
  .max(100)
  .describe(
    `One or two of ${reportDimensions.join(', ')} and dimension:NAME, with a comma between them; team,model where it is left out`,
  )

const dollars = z.number().describe('US dollars')
const sums = {
  requests: z.number().int(),
  input_tokens: z.number().int(),
  output_tokens: z.number().int(),
  cost: dollars,
  previous_cost: dollars.describe('US dollars in the month before'),
  previous_cost_to_date: dollars.describe('US dollars in the month before, up to the same day'),
  forecast: dollars.describe(
    'US dollars at the end of the month, by the mean of the seven full days before today, or of those since the first cost',
  ),
}
const reportSchema = z.object({
  month: z.string(),
  by: z.array(z.union([z.enum(reportDimensions), z.templateLiteral([dimensionPrefix, z.string()])])),
  since: z.iso.datetime(),
  until: z.iso.datetime(),
  rows: z.array(
    z.object({
      group: z
        .record(z.string(), z.string().nullable())
        .describe('The value of each dimension; null where requests have none'),
      names: z.record(z.string(), z.string().nullable()).describe('What a person calls them'),
      rest: z
        .boolean()
        .describe('Whether the values of dimensions, here `other`, are all those beyond the sums that a day keeps'),
      ...sums,
    }),
  ),
  left_out: z.number().int().describe(`Of more than ${rowsShown} rows the cheapest are left out; CSV has all of them`),
  totals: z.object(sums).describe('Of all rows, those that are left out too'),
})
export type CostReport = z.infer<typeof reportSchema>

const costQuery = { month: monthSchema.optional(), by: bySchema.optional() }
const usualBy = 'team,model'

export const costRoutes = ({ state, ledger, clock }: CostDependencies) => {
  /** The month that is asked for, or this one. Throws `invalid_parameter` for one that has not begun. */
  const monthOf = (asked: string | undefined): string => {
    const month = asked ?? timestamp(clock.now()).slice(0, 7)
    requireBegun(month, clock.now())
    return month
  }
  const report = async (by: string, month: string, principal: Principal) => {
    const dimensions = dimensionsOf(by)
    await requireEverDeclared(state, dimensions)
    const visibility = await visibilityFor(ledger, principal)
    await foldRollups(ledger, turnsBeforeReading)
    const windows = windowsOf(month, clock.now())
    const window = { from: windows.before.from, until: windows.month.until, visibility }
    const withDimensions = dimensions.some((dimension) => !isPlain(dimension))
    const costs = readCosts(ledger, { ...window, withDimensions })
    return { ...(await monthReport({ by: dimensions, windows, costs })), dimensions }
  }
  return new Elysia({ name: 'costs' })
    .use(conventions)
    .get(
      '/v1/usage/costs',
      async ({ principal, query: { month: asked, by = usualBy } }) => {
        const month = monthOf(asked)
        const { dimensions, rows, totals, forecastOf } = await report(by, month, principal)
        const shown = await firstOf(costliestFirst(rows, rowsShown))
        const named = await naming(namesFor(ledger, principal), dimensions, shown)
        const { from, until } = monthAt(month)
        return {
          ...{ month, by: dimensions, since: timestamp(from), until: timestamp(until) },
          rows: shown.map((row) => ({
            group: Object.fromEntries(dimensions.map((dimension) => [dimension, row.group[dimension] || null])),
            names: Object.fromEntries(dimensions.map((dimension) => [dimension, named(dimension, row)])),
            rest: row.rest,
            ...shownSums(row, forecastOf, fromNano),
          })),
          left_out: Math.max(0, rows.length - rowsShown),
          totals: shownSums(totals, forecastOf, fromNano),
        }
      },
      {
        access: 'events:read',
        query: z.strictObject(costQuery),
        response: reportSchema,
        detail: {
          tags: ['Usage'],
          summary: 'Reports what a month costs by one or two dimensions, with the month before and a forecast',
        },
      },
    )
    .get(
      '/v1/usage/costs/export',
      async ({ principal, query: { month: asked, by, format } }) => {
        const month = monthOf(asked)
        if (format === 'csv') {
          const made = await report(by ?? usualBy, month, principal)
          return csvAnswer(`costs-${month}`, csvLines(namesFor(ledger, principal), made))
        }
        if (by !== undefined) throw new Failure('invalid_parameter', { param: 'by', message: focusHasAll })
        const visibility = await visibilityFor(ledger, principal)
        await foldRollups(ledger, turnsBeforeReading)
        return csvAnswer(`focus-${month}`, focusLines(namesFor(ledger, principal), { month, visibility }))
      },
      {
        access: 'events:read',
        query: z.strictObject({
          ...costQuery,
          format: z
            .enum(['csv', 'focus'])
            .default('csv')
            .describe('focus: the columns of FOCUS 1.2, every charge day by day, without `by`'),
        }),
        answers: ['text/csv'],
        detail: { tags: ['Usage'], summary: 'Gives the same report as CSV, with all rows; or every charge as FOCUS' },
      },
    )
}

const focusHasAll = 'FOCUS has every charge by all dimensions, those of attribution in Tags: leave by out'

const namesFor = (ledger: Database, { permissions }: Principal): NameReader => ({
  ledger,
  seesPeople: permissions.has('members:read'),
})

/** Throws `invalid_parameter`. Whether a dimension is declared is another question. */
function dimensionsOf(text: string): ReportDimension[] {
  const names = text.split(',')
  const known = names.filter(isReportDimension)
  if (known.length === names.length && new Set(known).size === known.length && known.length <= 2) return known
  throw new Failure('invalid_parameter', {
    param: 'by',
    message: `Write one or two of ${reportDimensions.join(', ')} and dimension:NAME, with a comma between them`,
  })
}

const shownSums = <Money>(
  sums: ReportSums,
  forecastOf: (sums: ReportSums) => number,
  money: (nano: number) => Money,
) => ({
  ...{ requests: sums.requests, input_tokens: sums.input_tokens, output_tokens: sums.output_tokens },
  ...{ cost: money(sums.cost), previous_cost: money(sums.previous) },
  ...{ previous_cost_to_date: money(sums.previousToDate), forecast: money(forecastOf(sums)) },
})

type Naming = (dimension: ReportDimension, row: ReportRow) => string | null

const isNamed = (dimension: ReportDimension): dimension is NamedDimension =>
  namedDimensions.some((named) => named === dimension)

async function naming(
  names: NameReader,
  dimensions: readonly ReportDimension[],
  rows: readonly ReportRow[],
): Promise<Naming> {
  const known = new Map<ReportDimension, (id: string) => string>()
  for (const dimension of dimensions.filter(isNamed)) {
    const ids = rows.map(({ group }) => group[dimension] ?? '')
    known.set(dimension, await readRecordNames(names, dimension, ids))
  }
  return (dimension, { group, rest }) => {
    const value = group[dimension] ?? ''
    if (value === '') return null
    return rest && !isPlain(dimension) ? 'other values' : (known.get(dimension)?.(value) ?? value)
  }
}

async function firstOf(some: AsyncIterable<readonly ReportRow[]>): Promise<readonly ReportRow[]> {
  for await (const rows of some) return rows
  return []
}

interface ReportBy extends MonthReport {
  dimensions: readonly ReportDimension[]
}

async function* csvLines(names: NameReader, { dimensions, rows, forecastOf }: ReportBy) {
  const head = dimensions.flatMap((dimension) => (isNamed(dimension) ? [`${dimension}_id`, dimension] : [dimension]))
  // Rows by plain dimensions never are of other values.
  const hasRest = !dimensions.every(isPlain)
  yield csvLine([...head, ...Object.keys(sums), ...(hasRest ? ['rest'] : [])])
  for await (const some of costliestFirst(rows, rowsShown)) {
    const named = await naming(names, dimensions, some)
    const lines = some.map((row) => {
      const group = dimensions.flatMap((dimension) => [
        row.group[dimension] ?? '',
        ...(isNamed(dimension) ? [named(dimension, row)] : []),
      ])
      const rest = hasRest ? [String(row.rest)] : []
      return csvLine([...group, ...Object.values(shownSums(row, forecastOf, decimalOf)), ...rest])
    })
    yield lines.join('')
  }
}

/** Streams lines as a file to keep: the next ones are read when the caller has taken those before. */
function csvAnswer(name: string, lines: AsyncGenerator<string>): Response {
  const encoder = new TextEncoder()
  const source = (async function* () {
    for await (const line of lines) if (line !== '') yield encoder.encode(line)
  })()
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await source.next()
      if (done) controller.close()
      else controller.enqueue(value)
    },
    async cancel() {
      await source.return()
    },
  })
  return new Response(body, {
    headers: {
      'content-type': 'text/csv; charset=utf-8; header=present',
      'content-disposition': `attachment; filename="${name}.csv"`,
    },
  })
}
