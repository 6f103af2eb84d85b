/** The limits of accounts, as the state's primary has them now. */
import type { Clock } from '../lib/clock.ts'
import type { Database } from '../store/open.ts'
import { readAccountName } from './account-name.ts'
import type { AccountLimit, AccountLimits } from './cell-ledger.ts'
import { budgetAccount, moneyAccount, requestsAccount } from './demands.ts'
import type { BudgetWindow } from './limits.ts'
import { bookedBudget } from './window.ts'

interface TokenRow {
  id: string
  max_requests: number | null
  max_budget: number | null
  gateway_id: string | null
}

interface BudgetRow {
  id: string
  max_budget: number
  window: BudgetWindow
}

/** What is not the name of an account is not among the answers, and nothing of it is granted. */
export function sqlLimits(state: Database, clock: Pick<Clock, 'now'>): AccountLimits {
  return {
    async limits(names) {
      const read = names.flatMap((name) => {
        const account = readAccountName(name)
        return account === null ? [] : [{ name, ...account }]
      })
      const idsOf = (...kinds: string[]) => read.filter(({ kind }) => kinds.includes(kind)).map(({ id }) => id)
      const tokens = await readTokens(state, idsOf('requests', 'money'))
      const budgets = await readBudgets(state, idsOf('budget'))
      return new Map(
        read.map(({ name, kind, id }): [string, AccountLimit] => {
          const plain = { booked: name, until: null, gatewayId: null }
          if (kind === 'grant') return [name, { ...plain, limit: 1 }]
          if (kind === 'budget') {
            const budget = budgets.get(id)
            if (budget === undefined) return [name, { ...plain, limit: null }]
            return [name, { ...plain, ...bookedBudget(id, budget.window, clock.now()), limit: budget.max_budget }]
          }
          const token = tokens.get(id)
          const limit = (kind === 'money' ? token?.max_budget : token?.max_requests) ?? null
          return [name, { ...plain, limit, gatewayId: token?.gateway_id ?? null }]
        }),
      )
    },
  }
}

export interface ChangedAt {
  /** Accounts whose limits it changed. */
  limits: string[]
  /** Accounts of tokens that it narrowed. */
  narrowed: string[]
  /** Whether it was about what tokens may use, or at what price. */
  offer: boolean
}

/** What the change of this version was about, as far as it is of limits; of a token that ended nothing is left to limit. */
export async function changedAt(state: Database, version: number): Promise<ChangedAt> {
  const rows = await state.read<{ kind: 'account' | 'budget' | 'token' | 'offer'; id: string | null }>(
    `select 'account' as kind, id from accounts where version = ?1
     union all select 'budget', id from budgets where version = ?1
     union all select 'token', account_ids ->> '$[0]' from tokens where version = ?1 and revoked_at is null
     union all select 'offer', null where exists (select 1 from models where version = ?1)
       or exists (select 1 from providers where version = ?1) or exists (select 1 from access_policies where version = ?1)`,
    [version],
  )
  const idsOf = (kind: string) => rows.flatMap((row) => (row.kind === kind && row.id !== null ? [row.id] : []))
  return {
    limits: [
      ...idsOf('account').flatMap((id) => [requestsAccount(id), moneyAccount(id)]),
      ...idsOf('budget').map(budgetAccount),
    ],
    narrowed: idsOf('token').map(moneyAccount),
    offer: rows.some(({ kind }) => kind === 'offer'),
  }
}

async function readTokens(state: Database, ids: readonly string[]): Promise<Map<string, TokenRow>> {
  if (ids.length === 0) return new Map()
  const rows = await state.read<TokenRow>(
    `select asked.value as id, a.max_requests, a.max_budget, t.gateway_id
     from json_each(?) asked left join accounts a on a.id = asked.value and a.deleted = 0
     left join tokens t on t.id = asked.value`,
    [JSON.stringify([...new Set(ids)])],
  )
  return new Map(rows.map((row) => [row.id, row]))
}

async function readBudgets(state: Database, ids: readonly string[]): Promise<Map<string, BudgetRow>> {
  if (ids.length === 0) return new Map()
  const rows = await state.read<BudgetRow>(
    'select id, max_budget, window from budgets where deleted = 0 and id in (select value from json_each(?))',
    [JSON.stringify([...new Set(ids)])],
  )
  return new Map(rows.map((row) => [row.id, row]))
}
