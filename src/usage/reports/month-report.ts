/**
 * A month's cost by one or two dimensions, beside the month before, with what it will be at its end: what was spent, and
 * for each day that is left the mean of the seven full days before today.
 */
import type { CostRow } from './read-costs.ts'

export const reportDimensions = ['team', 'provider', 'model', 'token', 'gateway', 'user'] as const
export type ReportDimension = (typeof reportDimensions)[number]

const columnOf = {
  team: 'team_id',
  provider: 'provider',
  model: 'model',
  token: 'token_id',
  gateway: 'gateway_id',
  user: 'user_id',
} as const satisfies Record<ReportDimension, keyof CostRow>

export const dayMs = 86_400_000
/** Of the forecast. */
const trendDays = 7

export interface Month {
  from: number
  until: number
}

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
  month: readonly CostRow[]
  before: readonly CostRow[]
  sameDays: readonly CostRow[]
  trend: readonly CostRow[]
  daysLeft: number
}

/** The dearest rows first; one of the month before alone is a row too. */
export function monthReport({ by, month, before, sameDays, trend, daysLeft }: Sources): ReportRow[] {
  const rows = new Map<string, ReportRow>()
  const rowOf = (row: CostRow): ReportRow => {
    const values = by.map((dimension) => row[columnOf[dimension]])
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
  for (const each of month) {
    const row = rowOf(each)
    row.requests += each.requests
    row.input_tokens += each.input_tokens
    row.output_tokens += each.output_tokens
    row.cost += each.cost
    row.forecast += each.cost
  }
  for (const each of before) rowOf(each).previous += each.cost
  for (const each of sameDays) rowOf(each).previousToDate += each.cost
  for (const each of trend) rowOf(each).forecast += (each.cost / trendDays) * daysLeft
  return [...rows.values()].toSorted((left, right) => right.cost - left.cost || right.previous - left.previous)
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
