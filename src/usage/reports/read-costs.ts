/**
 * What requests cost, day by day, from the daily sums of the kind `cost`, or of a dimension of attribution
 * (events/rollups/rollup.ts). They are kept as long as events.
 *
 * SQL text: look-ups by the primary key of the sums, a day at a time.
 */
import { type CostDimension, otherKey, readCostKey, stepMilliseconds } from '../../events/rollups/rollup.ts'
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

export interface CostRow extends CostSums, Record<CostDimension, string> {
  team_id: string
  /** Of the dimension of attribution that was asked for; empty where none was. */
  value: string
}

interface Window {
  /** Whole days, in milliseconds since the epoch; `until` is not part of it. */
  from: number
  until: number
  visibility: Visibility
  /** The name of a dimension of attribution, whose sums have teams and values only; null for all else. */
  dimension: string | null
  /** Only of this token; for all else than a dimension. */
  token?: string
}

interface StoredSums extends CostSums {
  scope: string
  key: string
}

export interface CostDay {
  /** When it began, in milliseconds since the epoch. */
  at: number
  /** One for each combination of dimensions. */
  rows: CostRow[]
}

/** Each team that has sums, by one look-up each: a scan would read every row of every day. */
const everyScope = `with recursive scopes (scope) as (
    select min(scope) from event_rollups where kind = 'cost' and step = 'day'
    union all
    select (select min(scope) from event_rollups where kind = 'cost' and step = 'day' and scope > scopes.scope)
      from scopes where scopes.scope is not null
  ) select scope from scopes where scope is not null`

/** Day by day, oldest first, with other work in between. Days without costs are left out. */
export async function* costsByDay(
  ledger: Database,
  { from, until, visibility, dimension, token }: Window,
): AsyncGenerator<CostDay> {
  const { teams, ownTokens } = visibility
  // Sums of a dimension do not say whose token it was.
  const byToken = teams !== 'every' && ownTokens.length > 0 && dimension === null
  const all = teams === 'every' || byToken
  const scopes = all ? (await ledger.read<{ scope: string }>(everyScope)).map(({ scope }) => scope) : teams
  const own = byToken ? new Set(ownTokens) : null
  const [kind, read] = dimension === null ? ['cost', readCostKey] : [`dimension:${dimension}`, valueOnly]
  for (let at = from; at < until; at += stepMilliseconds.day) {
    const rows = await ledger.read<StoredSums>(
      `select scope, key, total(requests) as requests, total(input_tokens) as input_tokens,
        total(output_tokens) as output_tokens, total(cost) as cost from event_rollups
        where kind = ? and step = 'day' and scope in (select value from json_each(?)) and at = ?
          and (? is null or instr(key, ?) > 0)
        group by scope, key`,
      [kind, JSON.stringify(scopes), at, token ?? null, token ?? null],
    )
    if (rows.length === 0) continue
    const costs = rows.map(({ scope, key, ...sums }) => ({ team_id: scope, value: '', ...read(key), ...sums }))
    const seen = own === null ? costs : costs.filter(({ token_id }) => own.has(token_id))
    yield { at, rows: token === undefined ? seen : seen.filter(({ token_id }) => token_id === token) }
    await yieldToEventLoop()
  }
}

const valueOnly = (key: string) => ({ ...readCostKey(''), value: key === otherKey ? 'other' : key })
