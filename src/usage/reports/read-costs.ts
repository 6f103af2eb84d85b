/**
 * What requests cost, by day, from the daily sums of the kind `cost` (events/rollups/rollup.ts). They are kept as long as
 * events. Every report reads these, so that all have the same total.
 *
 * SQL text: ranges of the primary key of the sums, some hundred rows at a time.
 */
import { type CostOf, otherKey, readCostKey, valuesSeparator } from '../../events/rollups/rollup.ts'
import type { Visibility } from '../../events/visibility.ts'
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import type { Database } from '../../store/open.ts'

/** Cost in nano-dollars. */
export interface CostSums {
  requests: number
  input_tokens: number
  output_tokens: number
  cost: number
}

export interface CostRow extends CostSums, CostOf {
  /** When the day began, in milliseconds since the epoch. */
  at: number
  team_id: string
}

interface Window {
  /** Whole days, in milliseconds since the epoch; `until` is not part of it. */
  from: number
  until: number
  visibility: Visibility
  /** Whether rows are split by dimension values. */
  withDimensions: boolean
  /** Only of this token. */
  token?: string
}

interface StoredSums extends CostSums {
  at: number
  key: string
  last: string
  read: number
}

/** Rows of one statement. The connection is synchronous and a row takes some 5 µs, so it holds the thread for 3 ms. */
const rowsAtOnce = 500

/** Each team that has sums, by one look-up each: a scan would read every row of every day. */
const everyScope = `with recursive scopes (scope) as (
    select min(scope) from event_rollups where kind = 'cost' and step = 'day'
    union all
    select (select min(scope) from event_rollups where kind = 'cost' and step = 'day' and scope > scopes.scope)
      from scopes where scopes.scope is not null
  ) select scope from scopes where scope is not null`

const keyWithout = `iif(instr(key, '${valuesSeparator}') > 0, substr(key, 1, instr(key, '${valuesSeparator}') - 1), key)`

/** Team by team, each from its oldest day on, some rows at a time, with other work in between. */
export async function* readCosts(ledger: Database, window: Window): AsyncGenerator<CostRow[]> {
  const { teams, ownTokens } = window.visibility
  const seesAll = teams === 'every'
  const own = new Set(ownTokens)
  const scopes =
    seesAll || own.size > 0 ? (await ledger.read<{ scope: string }>(everyScope)).map(({ scope }) => scope) : teams
  for (const scope of scopes) {
    const seesTeam = seesAll || teams.includes(scope)
    for await (const stored of readScope(ledger, scope, window)) {
      const rows = stored.map(({ key, last, read, ...sums }) => ({ ...sums, team_id: scope, ...readCostKey(key) }))
      yield rows.filter(
        ({ token_id }) => (seesTeam || own.has(token_id)) && (window.token === undefined || token_id === window.token),
      )
      await yieldToEventLoop()
    }
  }
}

async function* readScope(
  ledger: Database,
  scope: string,
  { from, until, withDimensions, token }: Window,
): AsyncGenerator<StoredSums[]> {
  const shownKey = withDimensions ? 'key' : keyWithout
  for (let [at, key, read] = [from, '', rowsAtOnce]; read === rowsAtOnce; ) {
    // Rows of other tokens are read as one without a key, so that a statement never reads more than its rows.
    const rows = await ledger.read<StoredSums>(
      `select at, iif(? is null or instr(key, ?) > 0, ${shownKey}, '') as key, total(requests) as requests,
        total(input_tokens) as input_tokens, total(output_tokens) as output_tokens, total(cost) as cost,
        max(max(key)) over (partition by at) as last, count(*) as read from (
          select at, key, requests, input_tokens, output_tokens, cost from event_rollups
            where kind = 'cost' and step = 'day' and scope = ? and at >= ? and at < ? and (at, key) > (?, ?)
              order by at, key limit ${rowsAtOnce})
        group by 1, 2 order by 1, 2`,
      [token ?? null, token ?? null, scope, at, until, at, key],
    )
    const end = rows.at(-1)
    read = rows.reduce((sum, row) => sum + row.read, 0)
    if (end !== undefined) [at, key] = [end.at, end.last]
    if (rows.length > 0) yield rows
  }
}

/** The value of a dimension: `otherKey` for what a full day counts together; empty for none. */
export const dimensionValue = ({ dimensions }: CostOf, name: string): string =>
  Object.hasOwn(dimensions, name) ? (dimensions[name] ?? '') : ''

/** As reports show it, beside a flag: a value may be called `other` too. */
export const shownValue = (value: string): string => (value === otherKey ? 'other' : value)
