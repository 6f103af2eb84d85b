/** Events as CSV (RFC 4180): the columns that every export has, and those that can be asked for. */
import { type Event, latencyOf } from '../event.ts'
import { facetValues } from '../log/record.ts'

type Cell = string | number | null | undefined

const usualColumns = [
  'event_id',
  'timestamp',
  'event_type',
  'request_id',
  'verdict',
  'reason_code',
  'config_version',
] as const satisfies readonly (keyof Event)[]

/** What can be asked for: the name of the column, or of both columns, and what stands in it. */
const extraColumns = {
  time: { timestamp: (event) => event.timestamp },
  verdict: { verdict: (event) => event.verdict },
  reason: { reason_code: (event) => event.reason_code },
  model: { model: (event) => textOf(event.details?.model) },
  token: { token_id: (event) => event.event_attribution.token_id },
  team: { team_id: (event) => event.event_attribution.team_id },
  user: { user_id: (event) => event.event_attribution.user_id },
  provider: { provider: (event) => textOf(event.details?.provider) },
  tokens: {
    input_tokens: (event) => event.event_cost_attribution?.input_tokens,
    output_tokens: (event) => event.event_cost_attribution?.output_tokens,
  },
  cost: { cost: (event) => event.event_cost_attribution?.cost },
  status: { status: (event) => textOf(event.details?.status) },
  first_token: { first_token_ms: (event) => textOf(event.details?.first_token_ms) },
  latency: { latency_ms: (event) => textOf(latencyOf(event)) },
  policy: {
    policy_ids: (event) =>
      facetValues(event, 'policy')
        .filter((id) => typeof id === 'string')
        .join(' '),
  },
} as const satisfies Readonly<Record<string, Readonly<Record<string, (event: Event) => Cell>>>>

export type ExtraColumn = keyof typeof extraColumns

const textOf = (value: unknown): Cell => (typeof value === 'string' || typeof value === 'number' ? value : null)

const isExtraColumn = (name: string): name is ExtraColumn => Object.hasOwn(extraColumns, name)

export const extraColumnNames = Object.keys(extraColumns).filter(isExtraColumn)

/** `model,cost` as columns; null where a name is not known, or comes twice. */
export function readColumns(text: string): ExtraColumn[] | null {
  const names = text.split(',')
  const known = names.filter(isExtraColumn)
  return known.length === names.length && new Set(names).size === names.length ? known : null
}

const cellsOf = (columns: readonly ExtraColumn[]) =>
  columns.flatMap((name) => Object.entries<(event: Event) => Cell>(extraColumns[name]))

export interface CsvColumns {
  asked: readonly ExtraColumn[]
  /** Without the usual columns. */
  alone: boolean
}

/** The columns in order, by their titles; a usual one that is asked for stands where it was asked for. */
function layout({ asked, alone }: CsvColumns): (readonly [title: string, cell: (event: Event) => Cell])[] {
  const cells = cellsOf(asked)
  const usual = alone ? [] : usualColumns.filter((name) => !cells.some(([title]) => title === name))
  return [...usual.map((name) => [name, (event: Event) => event[name]] as const), ...cells]
}

export const csvHeader = (columns: CsvColumns): string => csvLine(layout(columns).map(([title]) => title))

/** Writes the row of an event. */
export function csvRows(columns: CsvColumns): (event: Event) => string {
  const cells = layout(columns).map(([, cell]) => cell)
  return (event) => csvLine(cells.map((cell) => cell(event)))
}

/** One record. A field that a spreadsheet would take for a formula gets an apostrophe before it. */
export const csvLine = (fields: readonly Cell[]): string => `${fields.map(csvField).join(',')}\r\n`

function csvField(value: Cell): string {
  if (value == null) return ''
  if (typeof value === 'number') return String(value)
  const text = /^[=+\-@\t\r\n]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
