/**
 * `/v1/usage/costs`: a month by one or two dimensions, with the month before and a forecast, as JSON, CSV or FOCUS.
 * `/v1/usage/reconciliation`: a provider's invoice beside what was booked.
 */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { csvLine } from '../../events/export/csv.ts'
import { visibilityFor } from '../../events/query/visibility-filter.ts'
import { foldRollups } from '../../events/rollups/fold.ts'
import type { Visibility } from '../../events/visibility.ts'
import { Failure } from '../../failure.ts'
import type { Principal } from '../../identity/principal.ts'
import { type Clock, timestamp } from '../../lib/clock.ts'
import { fromNano } from '../../lib/money.ts'
import type { Database } from '../../store/open.ts'
import { query } from '../../store/query.ts'
import { organizations } from '../../store/schema/ledger/people.ts'
import { focusHeader, focusRow } from './focus.ts'
import {
  isPlain,
  monthAt,
  monthReport,
  type ReportDimension,
  type ReportRow,
  reportDimensions,
  totalsOf,
  windowsOf,
} from './month-report.ts'
import { type NamedDimension, type NameReader, namedDimensions, readRecordNames } from './names.ts'
import { costsByDay } from './read-costs.ts'

interface CostDependencies {
  ledger: Database
  clock: Clock
}

/** How many rounds of arrivals are added to the sums before they are read. */
const turnsBeforeReading = 40
const rowsShown = 500

export const monthSchema = z
  .string()
  .regex(/^20\d{2}-(0[1-9]|1[0-2])$/, 'Write a month, for example 2026-11')
  .describe('A month in UTC: 2026-11')

const bySchema = z
  .string()
  .max(50)
  .default('team,model')
  .describe(
    `One or two of ${reportDimensions.join(', ')}, with a comma between them; or dimension:NAME, alone or with team, which counts requests with a value only`,
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
  by: z.array(z.union([z.enum(reportDimensions), z.templateLiteral(['dimension:', z.string()])])),
  since: z.iso.datetime(),
  until: z.iso.datetime(),
  rows: z.array(
    z.object({
      group: z
        .record(z.string(), z.string().nullable())
        .describe('The value of each dimension; null where there is none'),
      names: z.record(z.string(), z.string().nullable()).describe('What a person calls them'),
      ...sums,
    }),
  ),
  left_out: z.number().int().describe(`Of more than ${rowsShown} rows the cheapest are left out; CSV has all of them`),
  totals: z.object(sums).describe('Of all rows, those that are left out too'),
})
export type CostReport = z.infer<typeof reportSchema>

const costQuery = { month: monthSchema.optional(), by: bySchema }

export const costRoutes = ({ ledger, clock }: CostDependencies) => {
  const thisMonth = () => timestamp(clock.now()).slice(0, 7)
  /** The rows of a report, with what is said of them. */
  const report = async (by: string, month: string, { principal, visibility }: Caller) => {
    const dimensions = dimensionsOf(by)
    const rows = await reportRows(ledger, { month, dimensions, visibility, now: clock.now() })
    return { dimensions, rows, named: await naming(namesFor(ledger, principal), dimensions, rows) }
  }
  return new Elysia({ name: 'costs' })
    .use(conventions)
    .get(
      '/v1/usage/costs',
      async ({ principal, query: { month = thisMonth(), by } }) => {
        await foldRollups(ledger, turnsBeforeReading)
        const { dimensions, rows, named } = await report(by, month, {
          principal,
          visibility: await visibilityFor(ledger, principal),
        })
        const { from, until } = monthAt(month)
        return {
          ...{ month, by: dimensions, since: timestamp(from), until: timestamp(until) },
          rows: rows.slice(0, rowsShown).map((row) => ({
            group: Object.fromEntries(dimensions.map((dimension) => [dimension, row.group[dimension] || null])),
            names: Object.fromEntries(dimensions.map((dimension) => [dimension, named(dimension, row)])),
            ...shownSums(row),
          })),
          left_out: Math.max(0, rows.length - rowsShown),
          totals: shownSums(totalsOf(rows)),
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
      async ({ principal, query: { month = thisMonth(), by, format } }) => {
        const visibility = await visibilityFor(ledger, principal)
        await foldRollups(ledger, turnsBeforeReading)
        if (format === 'focus') {
          return csvAnswer(`focus-${month}`, focusLines(ledger, month, { principal, visibility }))
        }
        const { dimensions, rows, named } = await report(by, month, { principal, visibility })
        return csvAnswer(`costs-${month}`, csvLines(dimensions, rows, named))
      },
      {
        access: 'events:read',
        query: z.strictObject({
          ...costQuery,
          format: z.enum(['csv', 'focus']).default('csv').describe('focus: the columns of FOCUS 1.2, day by day'),
        }),
        answers: ['text/csv'],
        detail: { tags: ['Usage'], summary: 'Gives the same report as CSV, with all rows; or every charge as FOCUS' },
      },
    )
}

interface Caller {
  principal: Principal
  visibility: Visibility
}

const namesFor = (ledger: Database, { permissions }: Principal): NameReader => ({
  ledger,
  seesPeople: permissions.has('members:read'),
})

function dimensionsOf(text: string): ReportDimension[] {
  const names = text.split(',')
  const known = names.flatMap(
    (name) => reportDimensions.find((dimension) => dimension === name) ?? declaredIn(name) ?? [],
  )
  const isKept = known.every(isPlain) || known.every((dimension) => dimension === 'team' || !isPlain(dimension))
  const declared = known.filter((dimension) => !isPlain(dimension)).length
  if (known.length === names.length && new Set(known).size === known.length && known.length <= 2) {
    if (isKept && declared <= 1) return known
  }
  throw new Failure('invalid_parameter', {
    param: 'by',
    message: `Write one or two of ${reportDimensions.join(', ')}, with a comma between them; or dimension:NAME, alone or with team`,
  })
}

/** `dimension:customer`; null for anything else. */
const declaredIn = (name: string): ReportDimension | null =>
  /^dimension:[a-z][a-z0-9_]{0,31}$/.test(name) ? `dimension:${name.slice('dimension:'.length)}` : null

interface Asked {
  month: string
  dimensions: readonly ReportDimension[]
  visibility: Visibility
  now: number
}

async function reportRows(ledger: Database, { month, dimensions, visibility, now }: Asked): Promise<ReportRow[]> {
  const windows = windowsOf(month, now)
  const declared = dimensions.find((each) => !isPlain(each))
  const dimension = declared === undefined ? null : declared.slice('dimension:'.length)
  const days = costsByDay(ledger, { from: windows.before.from, until: windows.month.until, visibility, dimension })
  return await monthReport({ by: dimensions, windows, days })
}

const shownSums = ({ requests, input_tokens, output_tokens, ...money }: Omit<ReportRow, 'group'>) => ({
  ...{ requests, input_tokens, output_tokens, cost: fromNano(money.cost) },
  ...{ previous_cost: fromNano(money.previous), previous_cost_to_date: fromNano(money.previousToDate) },
  forecast: fromNano(Math.round(money.forecast)),
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
  return (dimension, { group }) => {
    const value = group[dimension] ?? ''
    return value === '' ? null : (known.get(dimension)?.(value) ?? value)
  }
}

function* csvLines(dimensions: readonly ReportDimension[], rows: readonly ReportRow[], named: Naming) {
  const head = dimensions.flatMap((dimension) => (isNamed(dimension) ? [`${dimension}_id`, dimension] : [dimension]))
  yield csvLine([...head, ...Object.keys(sums)])
  for (const row of rows) {
    const group = dimensions.flatMap((dimension) =>
      isNamed(dimension) ? [row.group[dimension] ?? '', named(dimension, row)] : [named(dimension, row)],
    )
    yield csvLine([...group, ...Object.values(shownSums(row))])
  }
}

async function* focusLines(ledger: Database, text: string, { principal, visibility }: Caller): AsyncGenerator<string> {
  const names = namesFor(ledger, principal)
  const month = monthAt(text)
  const organization = await query(ledger)
    .select({ id: organizations.id, name: organizations.name })
    .from(organizations)
    .get()
  yield focusHeader()
  for await (const { at, rows } of costsByDay(ledger, { ...month, visibility, dimension: null })) {
    const named = {
      team: await readRecordNames(
        names,
        'team',
        rows.map(({ team_id }) => team_id),
      ),
      token: await readRecordNames(
        names,
        'token',
        rows.map(({ token_id }) => token_id),
      ),
      user: await readRecordNames(
        names,
        'user',
        rows.map(({ user_id }) => user_id),
      ),
    }
    const context = {
      ...{ organization: organization ?? { id: '', name: '' }, month, at },
      nameOf: (kind: keyof typeof named, id: string) => named[kind](id),
    }
    yield rows.map((row) => focusRow(row, context)).join('')
  }
}

/** Streams lines as a file to keep: the next ones are read when the caller has taken those before. */
function csvAnswer(name: string, lines: Iterable<string> | AsyncGenerator<string>): Response {
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
