/**
 * What tokens have used, read from the ledger (contract section 3, `depletion`; protocols section 2, rule 18). A clone
 * draws on its source's accounts too, but what it shows is its own account's; a rotation shows the account it kept.
 *
 * What is settled counts, not what running requests hold: an account is used up when what is left could not pay the
 * cheapest request even if all that runs turned out to be free. Since settled amounts only grow, that is for good.
 */
import { fromNano } from '../lib/money.ts'
import type { Database } from '../store/open.ts'
import type { DepletionView, ExhaustedStatus, TokenDepletion, TokenLimits } from '../tokens/depletion.ts'
import { spentOf } from './settlement.ts'

interface Row {
  id: string
  kind: 'money' | 'requests'
  settled: number
  exhausted_at: number | null
}

const select = `select t.id, u.kind, ${spentOf('u')} as settled, u.exhausted_at
  from json_each(?) asked join tokens t on t.id = asked.value
  join usage_accounts u on u.owner_id = t.account_id`

/** By token id; every token that was asked for is in it. */
export async function readDepletion(
  ledger: Database,
  tokens: readonly TokenLimits[],
): Promise<Map<string, TokenDepletion>> {
  const rows = tokens.length === 0 ? [] : await ledger.read<Row>(select, [JSON.stringify(tokens.map(({ id }) => id))])
  const used = new Map(rows.map((row) => [`${row.id}/${row.kind}`, row]))
  return new Map(
    tokens.map((token) => [
      token.id,
      depletionOf(token, used.get(`${token.id}/money`), used.get(`${token.id}/requests`)),
    ]),
  )
}

function depletionOf(token: TokenLimits, money: Row | undefined, requests: Row | undefined): TokenDepletion {
  const [spend, count] = [money?.settled ?? 0, requests?.settled ?? 0]
  const left = (limit: number | null, used: number) => (limit === null ? null : Math.max(0, limit - used))
  const remainingBudget = left(token.maxBudget, spend)
  const usedUp = (limit: number | null, row: Row | undefined) =>
    limit !== null && (limit === 0 || (row?.exhausted_at ?? null) !== null)
  return {
    depletion: {
      current_spend: fromNano(spend),
      remaining_budget: remainingBudget === null ? null : fromNano(remainingBudget),
      current_requests: count,
      remaining_requests: left(token.maxRequests, count),
    },
    status: usedUp(token.maxBudget, money)
      ? 'budget_exhausted'
      : usedUp(token.maxRequests, requests)
        ? 'request_exhausted'
        : null,
  }
}

/**
 * An SQL condition on a row of the ledger's `tokens` under this name: whether its money, or else its requests, are used
 * up. It takes no arguments and is answered from an index of used-up accounts.
 */
export function exhaustedCondition(status: ExhaustedStatus, table = 'tokens'): string {
  const usedUp = (kind: 'money' | 'requests', limit: 'max_budget' | 'max_requests') =>
    `(${table}.${limit} is not null and (${table}.${limit} = 0 or ${table}.account_id in
      (select owner_id from usage_accounts where kind = '${kind}' and exhausted_at is not null)))`
  const money = usedUp('money', 'max_budget')
  return status === 'budget_exhausted' ? money : `(not ${money} and ${usedUp('requests', 'max_requests')})`
}

/** The same for what is not used up, but for which at least this share, 0 … 1, of a limit is settled. */
function nearExhaustionCondition(kind: 'budget' | 'requests', share: number): string {
  const [limit, unit] = kind === 'budget' ? ['max_budget', 'money'] : ['max_requests', 'requests']
  return `(tokens.${limit} > 0 and tokens.account_id in (select owner_id from usage_accounts
    where kind = '${unit}' and exhausted_at is null and ${spentOf('usage_accounts')} >= ${share} * tokens.${limit}))`
}

/** What the ledger knows of what tokens have used. */
export const depletionView = (ledger: Database): DepletionView => ({
  read: (tokens) => readDepletion(ledger, tokens),
  exhausted: (status) => exhaustedCondition(status),
  nearExhaustion: nearExhaustionCondition,
})
