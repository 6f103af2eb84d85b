/**
 * Pages of tokens, newest first, by id. Ids are in order of time, so a token made during paging is before the first
 * page and moves nothing. A cursor contains the last id and a digest of its filters. It is not secret, but cannot be
 * used with other filters.
 */
import { and, desc, eq, lt, type SQL, sql } from 'drizzle-orm'
import type { AnySQLiteColumn } from 'drizzle-orm/sqlite-core'
import { z } from 'zod'
import { readCursor, writeCursor } from '../api/cursor.ts'
import { nameFilter, pageLimit } from '../api/page.ts'
import { keyClasses } from '../identity/key-class.ts'
import type { Principal } from '../identity/principal.ts'
import type { Database } from '../store/open.ts'
import { isNamed, query } from '../store/query.ts'
import { tokens } from '../store/schema/ledger/tokens.ts'
import { purposes } from './governed-token.ts'
import type { DepletionView } from './limits/depletion.ts'
import { statusCondition } from './limits/status-condition.ts'
import { tokenStatuses } from './record.ts'
import type { StoredToken } from './stored-token.ts'
import { visibleTokens } from './visibility.ts'

export const listTokensQuery = z.strictObject({
  purpose: z.enum(purposes).optional(),
  status: z.enum(tokenStatuses).optional(),
  key_class: z.enum(keyClasses).optional(),
  team_id: z.uuid().optional(),
  gateway_id: z.uuid().optional(),
  name: nameFilter,
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
  const start = cursor === undefined ? undefined : lt(tokens.id, readCursor(cursor, digestable(filters)))
  const rows = await query(ledger)
    .select()
    .from(tokens)
    .where(and(visibleTokens(principal), ...conditionsOf(filters, now, depletion), start))
    .orderBy(desc(tokens.id))
    .limit(limit + 1)
  const page = rows.slice(0, limit)
  const last = rows.length > limit ? page.at(-1) : undefined
  return { tokens: page, nextCursor: last === undefined ? null : writeCursor(last.id, digestable(filters)) }
}

function conditionsOf(filters: Filters, now: number, depletion: DepletionView): (SQL | undefined)[] {
  const { purpose, status, key_class, team_id, gateway_id, name } = filters
  const given = (column: AnySQLiteColumn, value: string | undefined) =>
    value === undefined ? undefined : eq(column, value)
  // Ended tokens have an index of their own; with the unary plus the planner does not walk a larger one instead.
  const minor = (column: AnySQLiteColumn, value: string | undefined) =>
    value === undefined || status === undefined || status === 'active'
      ? given(column, value)
      : sql`+${column} = ${value}`
  return [
    minor(tokens.purpose, purpose),
    minor(tokens.keyClass, key_class),
    given(tokens.teamId, team_id),
    given(tokens.gatewayId, gateway_id),
    isNamed(name, { id: tokens.id, names: [tokens.name] }),
    status === undefined ? undefined : statusCondition(status, now, depletion),
  ]
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
