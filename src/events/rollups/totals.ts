/**
 * What a time came to by one group, without points in time: one row of sums for each key. Unlike a series it is never
 * made coarser because it has many keys, so all groups are of the same time, as far as their steps are stored.
 *
 * SQL text: sums over ranges of the primary key of the sums.
 */
import { timestamp } from '../../lib/clock.ts'
import { fromNano } from '../../lib/money.ts'
import { asBytes, shownText } from '../../store/damage/stored-text.ts'
import type { Database } from '../../store/open.ts'
import type { Visibility } from '../visibility.ts'
import { otherKey, type Step, stepMilliseconds } from './rollup.ts'
import { keepsMinutes, scopesOf, selectRows, whereOf } from './series.ts'

export interface TotalsQuery {
  since: number
  until: number
  by: 'verdict' | 'model' | 'team' | 'token' | 'reason'
  /** The step of the figures that these agree with. Of what has no minutes the hours are read. */
  step: Step
  order: 'cost' | 'requests'
  /** How many keys are read. */
  limit: number
}

export interface Totals {
  /** Where the first bucket begins. */
  since: string
  rows: { key: string; requests: number; cost: number }[]
}

const orders = { cost: '3 desc, 2 desc, 1', requests: '2 desc, 3 desc, 1' } as const

/** The keys with the most of what `order` says. What a full bucket has no row for is in none of them. */
export async function readTotals(
  ledger: Database,
  { query, visibility }: { query: TotalsQuery; visibility: Visibility },
): Promise<Totals> {
  const selected = selectRows(query)
  const step = query.step === 'minute' && !keepsMinutes(selected.kind) ? 'hour' : query.step
  const window = { since: query.since - (query.since % stepMilliseconds[step]), until: query.until, step }
  const scopes = await scopesOf(ledger, window, selected, visibility)
  const parts = partsOf(window).map((part) => whereOf(part, selected, scopes))
  const rows = await ledger.read<{ key: unknown; requests: number; cost: number }>(
    `select ${asBytes('key')} as key, total(requests) as requests, total(cost) as cost from (
        ${parts.map(({ sql }) => `select ${selected.column ?? "''"} as key, requests, cost from event_rollups where ${sql} and key <> ?`).join(' union all ')})
      group by 1 order by ${orders[query.order]} limit ?`,
    [...parts.flatMap(({ args }) => [...args, otherKey]), query.limit],
  )
  return {
    since: timestamp(window.since),
    rows: rows.map(({ key, requests, cost }) => ({ key: shownText(key), requests, cost: fromNano(cost) })),
  }
}

interface Part {
  since: number
  until: number
  step: Step
}

/** Hours, with the whole days among them as days: they are the same sums in far fewer rows. */
function partsOf(window: Part): Part[] {
  const { since, until, step } = window
  const { day } = stepMilliseconds
  const [first, last] = [Math.ceil(since / day) * day, Math.floor(until / day) * day]
  if (step !== 'hour' || first >= last) return [window]
  const parts: Part[] = [
    { since, until: first, step },
    { since: first, until: last, step: 'day' },
    { since: last, until, step },
  ]
  return parts.filter((part) => part.since < part.until)
}
