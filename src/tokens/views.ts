/** How many tokens there are, by what people ask for (contract section 3, views). */
import { z } from 'zod'
import type { Database } from '../store/open.ts'
import { statusSql } from './list.ts'
import type { Principal } from './principal.ts'
import { visibleTokens } from './visibility.ts'

const counts = z.record(z.string(), z.number().int())

export const tokenViewsSchema = z.object({
  total: z.number().int(),
  by_status: counts,
  by_purpose: counts,
  by_key_class: counts,
  by_team: z.array(z.object({ team_id: z.uuid().nullable(), count: z.number().int() })),
})
export type TokenViews = z.infer<typeof tokenViewsSchema>

/** Counts of the tokens that the principal sees, at the instant `now`. */
export async function tokenViews(ledger: Database, principal: Principal, now: number): Promise<TokenViews> {
  const visible = visibleTokens(principal)
  const groups = await ledger.read<{
    status: string
    purpose: string
    key_class: string
    team_id: string | null
    count: number
  }>(
    `select ${statusSql} as status, purpose, key_class, team_id, count(*) as count from tokens
      where ${visible.sql} group by 1, 2, 3, 4`,
    [now, now, ...visible.args],
  )
  const sumBy = <Key>(keyOf: (group: (typeof groups)[number]) => Key): Map<Key, number> => {
    const sums = new Map<Key, number>()
    for (const group of groups) sums.set(keyOf(group), (sums.get(keyOf(group)) ?? 0) + group.count)
    return sums
  }
  return {
    total: groups.reduce((sum, { count }) => sum + count, 0),
    by_status: Object.fromEntries(sumBy(({ status }) => status)),
    by_purpose: Object.fromEntries(sumBy(({ purpose }) => purpose)),
    by_key_class: Object.fromEntries(sumBy(({ key_class }) => key_class)),
    by_team: [...sumBy(({ team_id }) => team_id)].map(([team_id, count]) => ({ team_id, count })),
  }
}
