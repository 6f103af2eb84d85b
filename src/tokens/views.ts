/**
 * How many tokens there are, by common questions (handbook/tokens.md). Counts that do not change with time are kept as
 * tokens are made (store/schema/ledger). Of the statuses only the ended ones are counted here, each by its own
 * index; the rest is active.
 */
import { z } from 'zod'
import type { Principal } from '../identity/principal.ts'
import type { Database } from '../store/open.ts'
import type { Statement } from '../store/statement.ts'
import type { TokenStatus } from './governed-token.ts'
import type { DepletionView } from './limits/depletion.ts'
import { statusCondition } from './limits/status-condition.ts'
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

interface Group {
  purpose: string
  key_class: string
  team_id: string
  count: number
}

const ended = ['revoked', 'rotated', 'expired', 'budget_exhausted', 'request_exhausted'] as const

/** Counts of the tokens that the principal sees, at the instant `now`. */
export async function tokenViews(
  ledger: Database,
  principal: Principal,
  { now, depletion }: { now: number; depletion: DepletionView },
): Promise<TokenViews> {
  const visible = visibleTokens(principal)
  const groups = await ledger.read<Group>(...groupsOf(principal, visible))
  const total = groups.reduce((sum, { count }) => sum + count, 0)
  const byStatus = await Promise.all(ended.map((status) => countOf(ledger, visible, status, now, depletion)))
  const active = total - byStatus.reduce((sum, count) => sum + count, 0)
  return {
    total,
    by_status: withoutZeros([['active', active], ...ended.map((status, at) => [status, byStatus[at] ?? 0] as const)]),
    by_purpose: withoutZeros(sumBy(groups, 'purpose')),
    by_key_class: withoutZeros(sumBy(groups, 'key_class')),
    by_team: [...sumBy(groups, 'team_id')]
      .filter(([, count]) => count > 0)
      .map(([team, count]) => ({ team_id: team === '' ? null : team, count })),
  }
}

/** Uses the stored counts for whole teams; a user's own tokens are counted one by one. */
function groupsOf({ teamId }: Principal, { sql, args }: Statement): [string, Statement['args']] {
  const all = args.length === 0
  const ofTeam = teamId !== null && args.length === 1 && args[0] === teamId
  if (all || ofTeam) {
    return [`select purpose, key_class, team_id, count from token_counts where ${all ? '1' : 'team_id = ?'}`, args]
  }
  const team = "coalesce(team_id, '')"
  return [
    `select purpose, key_class, ${team} as team_id, count(*) as count from tokens where ${sql} group by 1, 2, 3`,
    args,
  ]
}

async function countOf(
  ledger: Database,
  visible: Statement,
  status: TokenStatus,
  now: number,
  depletion: DepletionView,
): Promise<number> {
  const condition = statusCondition(status, now, depletion)
  const [row] = await ledger.read<{ count: number }>(
    `select count(*) as count from tokens where ${visible.sql} and ${condition.sql}`,
    [...visible.args, ...condition.args],
  )
  return row?.count ?? 0
}

function sumBy(groups: readonly Group[], key: 'purpose' | 'key_class' | 'team_id'): Map<string, number> {
  const sums = new Map<string, number>()
  for (const group of groups) sums.set(group[key], (sums.get(group[key]) ?? 0) + group.count)
  return sums
}

const withoutZeros = (sums: Iterable<readonly [string, number]>): Record<string, number> =>
  Object.fromEntries([...sums].filter(([, count]) => count > 0))
