/**
 * What events can be asked for, all of it combined. One condition is left to an index, the one that fewest events are
 * likely to meet; the unary plus keeps the planner, which knows nothing of how many there are, from any other.
 */
import { z } from 'zod'
import type { Statement } from '../store/open.ts'
import { eventTypes, verdicts } from './event.ts'
import { untilSchema } from './since.ts'

/** `until` and what follows it are additions to what service.md names, for finding one exchange. */
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

/** The filters in a fixed order, whatever order they were asked in: what a cursor is bound to. */
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

/** Columns by how few events one value of them is likely to have. */
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
 * The conditions of the filters, and of `seen`, which is one on `team_id` as query.ts makes it. Where they are not
 * `indexed`, something else has found the rows already.
 */
export function conditionsOf(
  filters: EventFilters,
  seen: Statement,
  { indexed }: { indexed: boolean } = { indexed: true },
): Statement[] {
  const given: { column: string; value: string }[] = []
  for (const column of columns) {
    const value = filters[column]
    if (value !== undefined) given.push({ column, value })
  }
  given.sort((one, other) => Number(isNarrow(other)) - Number(isNarrow(one)))
  const [first] = given
  const byTeam = seen.sql.startsWith('team_id =')
  const teamFirst = byTeam && (first === undefined || !isNarrow(first))
  const conditions = given.map(({ column, value }, index) => ({
    sql: `${indexed && index === 0 && !teamFirst ? '' : '+'}${column} = ?`,
    args: [value],
  }))
  // Only where the query itself says so can the index of reasons be used, which leaves out the most common one.
  if (first?.column === 'reason_code' && first.value !== 'ok') conditions.push({ sql: "reason_code <> 'ok'", args: [] })
  return [...conditions, byTeam && !(indexed && teamFirst) ? { ...seen, sql: `+${seen.sql}` } : seen]
}

/** Whether few events are likely to have this value, fewer than a team has. */
function isNarrow({ column, value }: { column: string; value: string }): boolean {
  if (column === 'verdict') return value !== 'allow'
  if (column === 'reason_code') return value !== 'ok'
  if (column === 'event_type') return !value.startsWith('gateway.')
  return column !== 'gateway_id'
}
