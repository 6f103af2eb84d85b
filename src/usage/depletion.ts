/**
 * What tokens have used, read from the ledger (contract section 3, `depletion`; protocols section 2, rule 18). A clone
 * draws on its source's accounts too, but what it shows is its own account's; a rotation shows the account it kept.
 *
 * What is settled counts, not what running requests hold: an account is used up when what is left could not pay the
 * cheapest request even if all that runs turned out to be free. Since settled amounts only grow, that is for good.
 */
import { fromNano } from '../lib/money.ts'
import type { Database } from '../store/open.ts'

/** The limits of a token as its record holds them; money in nano-dollars. */
export interface TokenLimits {
  id: string
  maxRequests: number | null
  maxBudget: number | null
}

/** Money as decimal dollars; null where there is no such limit. */
export interface Depletion {
  current_spend: number
  remaining_budget: number | null
  current_requests: number
  remaining_requests: number | null
}

export interface TokenDepletion {
  depletion: Depletion
  /** The status that depletion gives a token that is otherwise active. */
  status: 'budget_exhausted' | 'request_exhausted' | null
}

interface Row {
  id: string
  kind: 'money' | 'requests'
  settled: number
  exhausted_at: number | null
}

const select = `select t.id, u.kind, u.settled, u.exhausted_at
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
export function exhaustedCondition(status: 'budget_exhausted' | 'request_exhausted', table = 'tokens'): string {
  const usedUp = (kind: 'money' | 'requests', limit: 'max_budget' | 'max_requests') =>
    `(${table}.${limit} is not null and (${table}.${limit} = 0 or ${table}.account_id in
      (select owner_id from usage_accounts where kind = '${kind}' and exhausted_at is not null)))`
  const money = usedUp('money', 'max_budget')
  return status === 'budget_exhausted' ? money : `(not ${money} and ${usedUp('requests', 'max_requests')})`
}
