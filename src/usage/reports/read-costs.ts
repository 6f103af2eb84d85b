/**
 * What requests cost, from the daily sums of the kind `cost` (events/rollups/rollup.ts): added up over a window, or day
 * by day. They are kept as long as events.
 *
 * SQL text: ranges of the primary key of the sums.
 */
import { type CostDimension, readCostKey, stepMilliseconds } from '../../events/rollups/rollup.ts'
import type { Visibility } from '../../events/visibility.ts'
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
}

interface Window {
  /** Whole days, in milliseconds since the epoch; `until` is not part of it. */
  from: number
  until: number
  visibility: Visibility
}

interface StoredSums extends CostSums {
  scope: string
  key: string
}

/** One row for each combination of dimensions. */
export async function readCosts(ledger: Database, { from, until, visibility }: Window): Promise<CostRow[]> {
  const teams = visibility.teams === 'every' || visibility.ownTokens.length > 0 ? null : visibility.teams
  const rows = await ledger.read<StoredSums>(
    `select scope, key, total(requests) as requests, total(input_tokens) as input_tokens,
      total(output_tokens) as output_tokens, total(cost) as cost from event_rollups
      where kind = 'cost' and step = 'day' ${teams === null ? '' : 'and scope in (select value from json_each(?))'}
        and at >= ? and at < ? group by scope, key`,
    [...(teams === null ? [] : [JSON.stringify(teams)]), from, until],
  )
  const read = rows.map(({ scope, key, ...sums }) => ({ team_id: scope, ...readCostKey(key), ...sums }))
  if (visibility.teams === 'every' || visibility.ownTokens.length === 0) return read
  return read.filter(({ token_id }) => visibility.ownTokens.includes(token_id))
}

/** The same day by day, oldest first. */
export async function* costsByDay(
  ledger: Database,
  { from, until, visibility }: Window,
): AsyncGenerator<{ at: number; rows: CostRow[] }> {
  const { day } = stepMilliseconds
  for (let at = from; at < until; at += day) {
    yield { at, rows: await readCosts(ledger, { from: at, until: at + day, visibility }) }
  }
}
