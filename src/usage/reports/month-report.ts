/**
 * A month's cost by one or two dimensions, beside the month before, with what it will be at its end: what was spent, and
 * for each day that is left the mean of the seven full days before today, or of those since the first cost.
 */
import { type DimensionKind, dimensionPrefix, otherKey } from '../../events/rollups/rollup.ts'
import { Failure } from '../../failure.ts'
import { timestamp } from '../../lib/clock.ts'
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import { type CostRow, dimensionValue, shownValue } from './read-costs.ts'

export const reportDimensions = ['team', 'provider', 'model', 'token', 'gateway', 'user'] as const
type PlainDimension = (typeof reportDimensions)[number]
export type ReportDimension = PlainDimension | DimensionKind

const columnOf = {
  team: 'team_id',
  provider: 'provider',
  model: 'model',
  token: 'token_id',
  gateway: 'gateway_id',
  user: 'user_id',
} as const satisfies Record<PlainDimension, keyof CostRow>

export const isPlain = (dimension: ReportDimension): dimension is PlainDimension =>
  reportDimensions.some((plain) => plain === dimension)

export const isReportDimension = (name: string): name is ReportDimension =>
  reportDimensions.some((plain) => plain === name) || name.startsWith(dimensionPrefix)

export const dayMs = 86_400_000
/** Of the forecast. */
const trendDays = 7

export interface Month {
  from: number
  until: number
}

const isIn = ({ from, until }: Month, at: number): boolean => at >= from && at < until

/** `2026-11`, in UTC. */
export function monthAt(text: string, by = 0): Month {
  const [year = 0, month = 1] = text.split('-').map(Number)
  return { from: Date.UTC(year, month - 1 + by), until: Date.UTC(year, month + by) }
}

/** Throws `invalid_parameter` for a month that has not begun. */
export function requireBegun(month: string, now: number): void {
  const thisMonth = timestamp(now).slice(0, 7)
  if (month <= thisMonth) return
  throw new Failure('invalid_parameter', { param: 'month', message: `${month} has not begun: it is ${thisMonth}` })
}

/** The windows that a report reads. Those of the past have no trend. */
export function windowsOf(text: string, now: number) {
  const [month, before] = [monthAt(text), monthAt(text, -1)]
  const today = now - (now % dayMs)
  const isRunning = now >= month.from && now < month.until
  return {
    month,
    before,
    /** The month before up to the same day, that day included. */
    sameDays: isRunning
      ? { from: before.from, until: Math.min(before.until, before.from + today - month.from + dayMs) }
      : before,
    trend: isRunning ? { from: today - trendDays * dayMs, until: today } : null,
    daysLeft: isRunning ? (month.until - now) / dayMs : 0,
  }
}

/** Cost in nano-dollars. */
export interface ReportSums {
  requests: number
  input_tokens: number
  output_tokens: number
  cost: number
  /** Of the whole month before. */
  previous: number
  /** Of the month before, up to the same day. */
  previousToDate: number
  /** Of the days by which the forecast is made. */
  trend: number
}

export interface ReportRow extends ReportSums {
  /** Empty where requests have no value. */
  group: Partial<Record<ReportDimension, string>>
  /** Whether its values of dimensions are `other`: those beyond what a day keeps apart. */
  rest: boolean
}

export interface MonthReport {
  /** In no order; includes rows only the previous month has. */
  rows: ReportRow[]
  totals: ReportSums
  /** Nano-dollars at the end of the month. */
  forecastOf(sums: ReportSums): number
}

interface Sources {
  by: readonly ReportDimension[]
  windows: ReturnType<typeof windowsOf>
  /** Of the month and the month before. */
  costs: Iterable<readonly CostRow[]> | AsyncIterable<readonly CostRow[]>
}

const rowsAtMost = 100_000

/** Throws `invalid_parameter` where there are more than `rowsAtMost` rows: they are kept in memory. */
export async function monthReport({ by, windows, costs }: Sources): Promise<MonthReport> {
  const rows = new Map<string, ReportRow>()
  const totals = noSums()
  let first: number | null = null
  for await (const some of costs) {
    for (const each of some) {
      first = Math.min(first ?? each.at, each.at)
      addTo(totals, each, windows)
      addTo(rowOf(rows, by, each), each, windows)
    }
  }
  const { trend, daysLeft } = windows
  const trendOf = trend === null ? 1 : (trend.until - Math.max(trend.from, first ?? 0)) / dayMs
  return {
    rows: [...rows.values()],
    totals,
    // Without a full day since the first cost there is no trend.
    forecastOf: (sums) => sums.cost + (sums.trend === 0 ? 0 : Math.round((sums.trend / trendOf) * daysLeft)),
  }
}

/** Rows that are sorted without a pause, which takes a millisecond. */
const sortedAtOnce = 2000

const byCost = (left: ReportRow, right: ReportRow): number => right.cost - left.cost || right.previous - left.previous

/** The rows by their cost, highest first, `atOnce` at a time: who needs only the first does not sort all. */
export async function* costliestFirst(rows: readonly ReportRow[], atOnce: number): AsyncGenerator<ReportRow[]> {
  const runs: ReportRow[][] = []
  for (let from = 0; from < rows.length; from += sortedAtOnce) {
    runs.push(
      rows
        .slice(from, from + sortedAtOnce)
        .sort(byCost)
        .reverse(),
    )
    await yieldToEventLoop()
  }
  let some: ReportRow[] = []
  for (let row = takeCostliest(runs); row !== undefined; row = takeCostliest(runs)) {
    if (some.push(row) < atOnce) continue
    yield some
    some = []
    await yieldToEventLoop()
  }
  if (some.length > 0) yield some
}

/** Takes the row with the highest cost from runs whose last one is their highest. */
function takeCostliest(runs: readonly ReportRow[][]): ReportRow | undefined {
  let best: ReportRow[] = []
  for (const run of runs) {
    const row = run.at(-1)
    const known = best.at(-1)
    if (row !== undefined && (known === undefined || byCost(row, known) < 0)) best = run
  }
  return best.pop()
}

const noSums = (): ReportSums => ({
  ...{ requests: 0, input_tokens: 0, output_tokens: 0, cost: 0, previous: 0, previousToDate: 0, trend: 0 },
})

function rowOf(rows: Map<string, ReportRow>, by: readonly ReportDimension[], of: CostRow): ReportRow {
  const values = by.map((dimension) => columnValue(of, dimension))
  const name = JSON.stringify(values)
  const known = rows.get(name)
  if (known !== undefined) return known
  if (rows.size === rowsAtMost) {
    const message = `The report has more than ${rowsAtMost} rows: ask for one dimension, or take format=focus, which has every charge`
    throw new Failure('invalid_parameter', { param: 'by', message })
  }
  const group = Object.fromEntries(by.map((dimension, index) => [dimension, shownValue(values[index] ?? '')]))
  const made: ReportRow = { group, rest: values.includes(otherKey), ...noSums() }
  rows.set(name, made)
  return made
}

const columnValue = (row: CostRow, dimension: ReportDimension): string =>
  isPlain(dimension) ? row[columnOf[dimension]] : dimensionValue(row, dimension.slice(dimensionPrefix.length))

function addTo(sums: ReportSums, of: CostRow, { month, before, sameDays, trend }: Sources['windows']) {
  if (isIn(month, of.at)) {
    sums.requests += of.requests
    sums.input_tokens += of.input_tokens
    sums.output_tokens += of.output_tokens
    sums.cost += of.cost
  }
  if (isIn(before, of.at)) sums.previous += of.cost
  if (isIn(sameDays, of.at)) sums.previousToDate += of.cost
  if (trend !== null && isIn(trend, of.at)) sums.trend += of.cost
}
