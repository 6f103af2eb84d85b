/**
 * How many tokens there are, by common questions (handbook/tokens.md). Counts that do not change with time are kept as
 * tokens are made (store/schema/ledger/tokens.ts). Of the statuses only the ended ones are counted here, each by its own
 * index; the rest is active.
 */

import { and, count, eq, type SQL, sql } from 'drizzle-orm'
import { z } from 'zod'
import type { Principal } from '../identity/principal.ts'
import type { Database } from '../store/open.ts'
import { query } from '../store/query.ts'
import { tokenCounts, tokens } from '../store/schema/ledger/tokens.ts'
import type { TokenStatus } from './governed-token.ts'
import type { DepletionView } from './limits/depletion.ts'
import { statusCondition } from './limits/status-condition.ts'
import { readsOthers, visibleTokens } from './visibility.ts'

const counts = z.record(z.string(), z.number().int())

export const tokenViewsSchema = z.object({
  total: z.number().int(),
  by_status: counts,
  by_purpose: counts,
  by_key_class: counts,
  by_team: z.array(z.object({ team_id: z.uuid().nullable(), count: z.number().int() })),
})
export type TokenViews = z.infer<typeof tokenViewsSchema>

type Group = typeof tokenCounts.$inferSelect

const ended = ['revoked', 'rotated', 'expired', 'budget_exhausted', 'request_exhausted'] as const

/** Counts of the tokens that the principal sees, at the instant `now`. */
export async function tokenViews(
  ledger: Database,
  principal: Principal,
  { now, depletion }: { now: number; depletion: DepletionView },
): Promise<TokenViews> {
  const visible = visibleTokens(principal)
  const groups = await groupsOf(ledger, principal, visible)
  const total = groups.reduce((sum, { count }) => sum + count, 0)
  const byStatus = await Promise.all(ended.map((status) => countOf(ledger, visible, status, now, depletion)))
  const active = total - byStatus.reduce((sum, count) => sum + count, 0)
  return {
    total,
    by_status: withoutZeros([['active', active], ...ended.map((status, at) => [status, byStatus[at] ?? 0] as const)]),
    by_purpose: withoutZeros(sumBy(groups, 'purpose')),
    by_key_class: withoutZeros(sumBy(groups, 'keyClass')),
    by_team: [...sumBy(groups, 'teamId')]
      .filter(([, count]) => count > 0)
      .map(([team, count]) => ({ team_id: team === '' ? null : team, count })),
  }
}

/** Uses the stored counts for whole teams; a user's own tokens are counted one by one. */
async function groupsOf(ledger: Database, principal: Principal, visible: SQL | undefined): Promise<Group[]> {
  const { teamId } = principal
  if (visible === undefined) return await query(ledger).select().from(tokenCounts)
  if (readsOthers(principal) && teamId !== null) {
    return await query(ledger).select().from(tokenCounts).where(eq(tokenCounts.teamId, teamId))
  }
  const team = sql<string>`coalesce(${tokens.teamId}, '')`
  return await query(ledger)
    .select({ purpose: tokens.purpose, keyClass: tokens.keyClass, teamId: team, count: count() })
    .from(tokens)
    .where(visible)
    .groupBy(tokens.purpose, tokens.keyClass, team)
}

const countOf = (
  ledger: Database,
  visible: SQL | undefined,
  status: TokenStatus,
  now: number,
  depletion: DepletionView,
): Promise<number> => query(ledger).$count(tokens, and(visible, statusCondition(status, now, depletion)))

function sumBy(groups: readonly Group[], key: 'purpose' | 'keyClass' | 'teamId'): Map<string, number> {
  const sums = new Map<string, number>()
  for (const group of groups) sums.set(group[key], (sums.get(group[key]) ?? 0) + group.count)
  return sums
}

const withoutZeros = (sums: Iterable<readonly [string, number]>): Record<string, number> =>
  Object.fromEntries([...sums].filter(([, count]) => count > 0))
