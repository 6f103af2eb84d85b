/**
 * Pages of tokens, newest first, by id. Ids are in order of time, so a token made during paging is before the first
 * page and moves nothing. A cursor contains the last id and a digest of its filters. It is not secret, but cannot be
 * used with other filters.
 */
import { z } from 'zod'
import { readCursor, writeCursor } from '../api/cursor.ts'
import { pageLimit } from '../api/page.ts'
import { keyClasses } from '../identity/key-class.ts'
import type { Principal } from '../identity/principal.ts'
import type { Database } from '../store/open.ts'
import type { Statement } from '../store/statement.ts'
import { purposes } from './governed-token.ts'
import type { DepletionView } from './limits/depletion.ts'
import { statusCondition } from './limits/status-condition.ts'
import { tokenStatuses } from './record.ts'
import { openToken, type StoredToken } from './stored-token.ts'
import { visibleTokens } from './visibility.ts'

export const listTokensQuery = z.strictObject({
  purpose: z.enum(purposes).optional(),
  status: z.enum(tokenStatuses).optional(),
  key_class: z.enum(keyClasses).optional(),
  team_id: z.uuid().optional(),
  gateway_id: z.uuid().optional(),
  name: z.string().min(1).max(200).optional().describe('Part of the name, small or capital letters alike'),
  limit: pageLimit,
  cursor: z.string().max(1000).optional(),
})
export type ListTokensQuery = z.infer<typeof listTokensQuery>

type Filters = Omit<ListTokensQuery, 'limit' | 'cursor'>

export interface TokenPage {
  tokens: StoredToken[]
  nextCursor: string | null
}

/** One page. Throws `invalid_cursor` for a cursor that was not given for these filters. */
export async function listTokens(
  ledger: Database,
  principal: Principal,
  { limit, cursor, ...filters }: ListTokensQuery,
  { now, depletion }: { now: number; depletion: DepletionView },
): Promise<TokenPage> {
  const conditions = [visibleTokens(principal), ...conditionsOf(filters, now, depletion)]
  if (cursor !== undefined) conditions.push({ sql: 'id < ?', args: [readCursor(cursor, digestable(filters))] })
  const rows = await ledger.read(
    `select * from tokens where ${conditions.map(({ sql }) => sql).join(' and ')} order by id desc limit ?`,
    [...conditions.flatMap(({ args }) => args), limit + 1],
  )
  const tokens = rows.slice(0, limit).map(openToken)
  const last = rows.length > limit ? tokens.at(-1) : undefined
  return { tokens, nextCursor: last === undefined ? null : writeCursor(last.id, digestable(filters)) }
}

function conditionsOf(filters: Filters, now: number, depletion: DepletionView): Statement[] {
  const { status } = filters
  // Ended tokens have an index of their own; with the unary plus the planner does not walk a larger one instead.
  const plus = status === undefined || status === 'active' ? '' : '+'
  const conditions: Statement[] = (['purpose', 'key_class'] as const).flatMap((column) => {
    const value = filters[column]
    return value === undefined ? [] : [{ sql: `${plus}${column} = ?`, args: [value] }]
  })
  for (const column of ['team_id', 'gateway_id'] as const) {
    const value = filters[column]
    if (value !== undefined) conditions.push({ sql: `${column} = ?`, args: [value] })
  }
  if (filters.name !== undefined) conditions.push({ sql: 'instr(lower(name), lower(?)) > 0', args: [filters.name] })
  return status === undefined ? conditions : [...conditions, statusCondition(status, now, depletion)]
}

/** The filters in a fixed order, whatever order they were asked in. */
const digestable = ({ purpose, status, key_class, team_id, gateway_id, name }: Filters): unknown[] => [
  purpose,
  status,
  key_class,
  team_id,
  gateway_id,
  ...(name === undefined ? [] : [name]),
]
