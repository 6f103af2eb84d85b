/**
 * What tokens have used, read from the ledger (handbook/tokens.md; usage/lease/README.md rule 18). The numbers are
 * those of a token's own account; a rotation shows the account it kept. Whether a token is used up is asked of every
 * account it draws on: a clone's requests are refused as soon as its source has nothing left.
 *
 * What is settled counts, not what running requests hold: an account is used up when what is left could not pay the
 * cheapest request even if all that runs turned out to be free. Since settled amounts only grow, that is for good.
 */
import { fromNano } from '../../lib/money.ts'
import type { Database } from '../../store/open.ts'
import type {
  AccountUse,
  DepletionView,
  ExhaustedStatus,
  TokenDepletion,
  TokenLimits,
} from '../../tokens/limits/depletion.ts'
import { balancesOf } from '../batches/batch-returns.ts'
import { maxAmount } from '../lease/lease.ts'

interface Row {
  id: string
  /** Whether it is the token's own account, 1, or one of its sources'. */
  own: number
  kind: 'money' | 'requests'
  settled: number
  exhausted_at: number | null
  /** The strictest limit that a token of the account was given. */
  allowed: number | null
}

const select = `with draws (id, account_id, own) as (
    select t.id, t.account_id, 1 from json_each(?1) asked join tokens t on t.id = asked.value
    union all
    select s.token_id, s.account_id, 0 from json_each(?1) asked join source_accounts s on s.token_id = asked.value
  )
  select d.id, d.own, u.kind, u.settled, u.exhausted_at,
    (select min(iif(u.kind = 'money', a.max_budget, a.max_requests)) from tokens a where a.account_id = d.account_id)
      as allowed
  from draws d join usage_accounts u on u.owner_id = d.account_id`

interface TotalRow {
  id: string
  requests: number
  spend: number
  exceeded_at: number | null
}

const selectTotals = `select t.id, coalesce(u.requests, 0) as requests, coalesce(u.spend, 0) as spend,
    (select max(at) from price_excesses where token_id = t.id) as exceeded_at
  from json_each(?1) asked join tokens t on t.id = asked.value left join usage_totals u on u.account_id = t.account_id`

/** By token id; every token that was asked for is in it. */
export async function readDepletion(
  ledger: Database,
  tokens: readonly TokenLimits[],
): Promise<Map<string, TokenDepletion>> {
  if (tokens.length === 0) return new Map()
  const ids = JSON.stringify(tokens.map(({ id }) => id))
  const used = Map.groupBy(await ledger.read<Row>(select, [ids]), ({ id }) => id)
  const totals = new Map((await ledger.read<TotalRow>(selectTotals, [ids])).map((row) => [row.id, row]))
  return new Map(tokens.map((token) => [token.id, depletionOf(token, used.get(token.id) ?? [], totals.get(token.id))]))
}

/** A limit counts what was used since it was set; where there is none, all that was used is shown. */
function depletionOf(token: TokenLimits, rows: readonly Row[], total: TotalRow | undefined): TokenDepletion {
  const settled = (kind: Row['kind']) => rows.find((row) => row.own === 1 && row.kind === kind)?.settled ?? 0
  const spend = token.maxBudget === null ? (total?.spend ?? 0) : settled('money')
  const count = token.maxRequests === null ? (total?.requests ?? 0) : settled('requests')
  const left = (limit: number | null, used: number) => (limit === null ? null : Math.max(0, limit - used))
  const remainingBudget = left(token.maxBudget, spend)
  const usedUp = (kind: Row['kind']) => rows.some((row) => row.kind === kind && row.exhausted_at !== null)
  return {
    depletion: {
      current_spend: fromNano(spend),
      remaining_budget: remainingBudget === null ? null : fromNano(remainingBudget),
      current_requests: count,
      remaining_requests: left(token.maxRequests, count),
    },
    shares: { budget: greatestShare(rows, 'money'), requests: greatestShare(rows, 'requests') },
    status: usedUp('money') ? 'budget_exhausted' : usedUp('requests') ? 'request_exhausted' : null,
    exceededAt: total?.exceeded_at ?? null,
  }
}

const greatestShare = (rows: readonly Row[], kind: Row['kind']): number =>
  Math.max(0, ...rows.map((row) => (row.kind === kind && row.allowed !== null ? row.settled / row.allowed : 0)))

/** An SQL condition on a row of the ledger's `tokens`: whether it draws on one of these accounts. */
const drawsOn = (accounts: string) => `tokens.id in (
  select drawing.id from tokens drawing where drawing.account_id in (${accounts})
  union all select token_id from source_accounts where account_id in (${accounts}))`

/**
 * An SQL condition on a row of the ledger's `tokens`: whether money, or else requests, that it draws on are used up. It
 * takes no arguments and goes from the index of used-up accounts, which are few, to their tokens.
 */
function exhaustedCondition(status: ExhaustedStatus): string {
  const usedUp = (kind: Row['kind']) =>
    drawsOn(`select owner_id from usage_accounts where kind = '${kind}' and exhausted_at is not null`)
  const money = usedUp('money')
  return status === 'budget_exhausted' ? money : `(not ${money} and ${usedUp('requests')})`
}

/** The same for what is not used up, but for which at least this share, 0 … 1, of a limit is settled. */
function nearExhaustionCondition(kind: 'budget' | 'requests', share: number): string {
  const [limit, unit] = kind === 'budget' ? ['max_budget', 'money'] : ['max_requests', 'requests']
  return drawsOn(`select u.owner_id from usage_accounts u join tokens a on a.account_id = u.owner_id
    where u.kind = '${unit}' and u.exhausted_at is null and 1.0 * u.settled / a.${limit} >= ${share}`)
}

async function readDepletionStatus(ledger: Database, accounts: readonly string[]): Promise<Map<string, AccountUse>> {
  const rows = await ledger.read<AccountUse & { account: string }>(
    `select c.account, min(sum(c.settled), ${maxAmount}) as used, sum(c.granted - c.returned - c.settled) as open
     from ${balancesOf('?1')} c group by c.account`,
    [JSON.stringify(accounts)],
  )
  const found = new Map(rows.map(({ account, used, open }) => [account, { used, open }]))
  return new Map(accounts.map((account) => [account, found.get(account) ?? { used: 0, open: 0 }]))
}

/** What the ledger knows of what tokens have used. `recallAndWait` ends when gateways have given back what they can. */
export const depletionView = (
  ledger: Database,
  recallAndWait: (accounts: readonly string[]) => Promise<void>,
): DepletionView => ({
  read: (tokens) => readDepletion(ledger, tokens),
  async recalled(accounts) {
    await recallAndWait(accounts)
    return await readDepletionStatus(ledger, accounts)
  },
  exhausted: exhaustedCondition,
  nearExhaustion: nearExhaustionCondition,
  exceeded: 'tokens.id in (select token_id from price_excesses)',
})
