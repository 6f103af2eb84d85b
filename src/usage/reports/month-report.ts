/**
 * A month's cost by one or two dimensions, beside the month before, with what it will be at its end: what was spent, and
 * for each day that is left the mean of the seven full days before today, or of those since the first cost.
 */
import type { CostDay, CostRow } from './read-costs.ts'

export const reportDimensions = ['team', 'provider', 'model', 'token', 'gateway', 'user'] as const
type PlainDimension = (typeof reportDimensions)[number]
/** `dimension:NAME` is a dimension of attribution. */
export type ReportDimension = PlainDimension | `dimension:${string}`

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
export interface ReportRow {
  group: Partial<Record<ReportDimension, string>>
  requests: number
  input_tokens: number
  output_tokens: number
  cost: number
  /** Of the whole month before. */
  previous: number
  /** Of the month before, up to the same day. */
  previousToDate: number
  forecast: number
}

interface Sources {
  by: readonly ReportDimension[]
  windows: ReturnType<typeof windowsOf>
  /** Of the month and the month before, the oldest first. */
  days: Iterable<CostDay> | AsyncIterable<CostDay>
}

/** The dearest rows first; one of the month before alone is a row too. */
export async function monthReport({ by, windows, days }: Sources): Promise<ReportRow[]> {
  const rows = new Map<string, ReportRow>()
  let first: number | null = null
  for await (const { at, rows: charged } of days) {
    first ??= at
    const meanOf = windows.trend === null ? 1 : (windows.trend.until - Math.max(windows.trend.from, first)) / dayMs
    for (const each of charged) addTo(rowOf(rows, by, each), each, { ...windows, meanOf }, at)
  }
  return [...rows.values()].toSorted((left, right) => right.cost - left.cost || right.previous - left.previous)
}

function rowOf(rows: Map<string, ReportRow>, by: readonly ReportDimension[], of: CostRow): ReportRow {
  const values = by.map((dimension) => of[isPlain(dimension) ? columnOf[dimension] : 'value'])
  const name = JSON.stringify(values)
  const known = rows.get(name)
  if (known !== undefined) return known
  const made: ReportRow = {
    group: Object.fromEntries(by.map((dimension, index) => [dimension, values[index] ?? ''])),
    ...{ requests: 0, input_tokens: 0, output_tokens: 0, cost: 0, previous: 0, previousToDate: 0, forecast: 0 },
  }
  rows.set(name, made)
  return made
}

function addTo(
  row: ReportRow,
  of: CostRow,
  { month, before, sameDays, trend, daysLeft, meanOf }: Sources['windows'] & { meanOf: number },
  at: number,
) {
  if (isIn(month, at)) {
    row.requests += of.requests
    row.input_tokens += of.input_tokens
    row.output_tokens += of.output_tokens
    row.cost += of.cost
    row.forecast += of.cost
  }
  if (isIn(before, at)) row.previous += of.cost
  if (isIn(sameDays, at)) row.previousToDate += of.cost
  if (trend !== null && isIn(trend, at)) row.forecast += (of.cost / meanOf) * daysLeft
}

/** The sums of rows. */
export function totalsOf(rows: readonly ReportRow[]): Omit<ReportRow, 'group'> {
  const sum = (value: (row: ReportRow) => number) => rows.reduce((total, row) => total + value(row), 0)
  return {
    requests: sum(({ requests }) => requests),
    input_tokens: sum(({ input_tokens }) => input_tokens),
    output_tokens: sum(({ output_tokens }) => output_tokens),
    cost: sum(({ cost }) => cost),
    previous: sum(({ previous }) => previous),
    previousToDate: sum(({ previousToDate }) => previousToDate),
    forecast: sum(({ forecast }) => forecast),
  }
}
