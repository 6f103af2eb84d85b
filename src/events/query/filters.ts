/**
 * The filters for events and their combinations. One condition uses an index, the one that the fewest events are
 * likely to meet. The unary plus keeps the planner, which does not know the numbers, from using another.
 */
import { z } from 'zod'
import type { Statement } from '../../store/statement.ts'
import { verdicts } from '../event.ts'
import { eventTypes } from '../event-types.ts'
import { untilSchema } from './since.ts'

/** `until` and the following filters are for finding one exchange. */
export const eventFilters = {
  event_type: z.enum(eventTypes).optional(),
  gateway_id: z.uuid().optional(),
  verdict: z.enum(verdicts).optional(),
  until: untilSchema.optional().describe('RFC 3339, exclusive'),
  request_id: z.string().min(1).max(200).optional().describe("The caller's label, which may repeat"),
  exchange_id: z.uuid().optional().describe("The gateway's own id of one request"),
  token_id: z.uuid().optional(),
  model: z.string().min(1).max(500).optional().describe('As `details.model` says it'),
  reason_code: z.string().min(1).max(200).optional(),
}

/** As the caller wrote them. */
export type EventFilters = { [Name in keyof typeof eventFilters]?: string | undefined }

/** The filters in a fixed order, to which a cursor is bound. */
export const filterValues = (filters: EventFilters): (string | null)[] => [
  filters.event_type ?? null,
  filters.gateway_id ?? null,
  filters.verdict ?? null,
  filters.until ?? null,
  filters.request_id ?? null,
  filters.exchange_id ?? null,
  filters.token_id ?? null,
  filters.model ?? null,
  filters.reason_code ?? null,
]

/** Columns in order of how few events one value of them is likely to have. */
const columns = [
  'exchange_id',
  'request_id',
  'token_id',
  'reason_code',
  'verdict',
  'model',
  'event_type',
  'gateway_id',
] as const

/**
 * The conditions of the filters, and of `seen`, the visibility condition from query.ts. If not `indexed`, the rows
 * were already found in another way.
 */
export function conditionsOf(
  filters: EventFilters,
  seen: Statement,
  { indexed }: { indexed: boolean } = { indexed: true },
): Statement[] {
  const given: Given[] = []
  for (const column of columns) {
    const value = filters[column]
    if (value !== undefined) given.push({ column, value })
  }
  given.sort((one, other) => Number(isNarrow(other)) - Number(isNarrow(one)))
  const [first] = given
  const byTeam = seen.sql.startsWith('team_id =')
  const chosen = indexed ? indexedColumns(given, byTeam) : []
  const conditions = given.map(({ column, value }) => ({
    sql: `${chosen.includes(column) ? '' : '+'}${column} = ?`,
    args: [value],
  }))
  // A partial index that leaves out the most common reason or verdict can be used only if the query says so itself.
  if (chosen.length > 1) conditions.push({ sql: "verdict <> 'allow'", args: [] })
  if (first?.column === 'reason_code' && first.value !== 'ok') conditions.push({ sql: "reason_code <> 'ok'", args: [] })
  return [...conditions, byTeam && !chosen.includes('team_id') ? { ...seen, sql: `+${seen.sql}` } : seen]
}

/** Whether a team, or the visibility, is the most selective condition. */
export const isByTeam = (filters: EventFilters): boolean =>
  columns.every((column) => !isNarrow({ column, value: filters[column] ?? null }))

interface Given {
  column: (typeof columns)[number]
  value: string
}

/** The columns whose index is used: one, or the refusals of a token, a team or a model, which are few. */
function indexedColumns(given: readonly Given[], byTeam: boolean): readonly string[] {
  const [first] = given
  const has = (column: string) => given.some((each) => each.column === column)
  const refused = given.some((each) => each.column === 'verdict' && isNarrow(each))
  if (refused && first?.column === 'token_id') return ['verdict', 'token_id']
  if (first !== undefined && isNarrow(first)) {
    if (first.column !== 'verdict') return [first.column]
    const beside = has('model') ? 'model' : byTeam ? 'team_id' : null
    return beside === null ? ['verdict'] : ['verdict', beside]
  }
  if (byTeam) return ['team_id']
  return first === undefined ? [] : [first.column]
}

/** Whether few events are likely to have this value, fewer than a team has. */
function isNarrow({ column, value }: { column: string; value: string | null }): boolean {
  if (value === null) return false
  if (column === 'verdict') return value !== 'allow'
  if (column === 'reason_code') return value !== 'ok'
  if (column === 'event_type') return !value.startsWith('gateway.')
  return column !== 'gateway_id'
}
