/** The limits of accounts, as the state has them now. */
import type { Clock } from '../../lib/clock.ts'
import { type LimitKey, type LimitRows, ofDimensions } from '../../store/limit-rows.ts'
import type { Database, Reader } from '../../store/open.ts'
import { readAccountName } from '../account-name.ts'
import { type ValueAccount, ValueLimits } from '../attribution/value-accounts.ts'
import { budgetAccount, moneyAccount, requestsAccount } from '../demands.ts'
import type { AccountLimit, AccountLimits } from '../lease/allocator/balance-ledger.ts'
import { bookedBudget } from '../window.ts'

/** What is not the name of an account is not among the answers, nor is a limit that cannot be known at the moment. */
export function sqlLimits(rows: LimitRows, clock: Pick<Clock, 'now'>, ledger: Reader): AccountLimits {
  const valueLimits = new ValueLimits(ledger, clock)
  return {
    async limits(names) {
      const read = names.flatMap((name) => {
        const account = readAccountName(name)
        if (account === null) return []
        const { kind, id, value } = account
        const key: LimitKey = kind === 'budget' ? `budget/${id}` : `account/${id}`
        return [{ name, kind, id, value, key }]
      })
      const known = await rows.read(read.flatMap(({ kind, key }) => (kind === 'grant' ? [] : [key])))
      const valued: ValueAccount[] = []
      const limits = new Map(
        read.flatMap(({ name, kind, id, value, key }): [string, AccountLimit][] => {
          const plain = { booked: name, until: null, gatewayId: null }
          if (kind === 'grant') return [[name, { ...plain, limit: 1 }]]
          const row = known.get(key)
          if (row === undefined) return []
          if (kind === 'budget') {
            if (row === null || row.window === null) return [[name, { ...plain, limit: null }]]
            // `per` of a budget never changes: a name of the other form is of no account.
            if ((value === null) !== (row.max_values === null)) return []
            const of = value === null ? id : `${id}/${value}`
            const found = { ...plain, ...bookedBudget(of, row.window, clock.now()), limit: row.max_budget }
            if (row.max_values !== null) valued.push({ name, booked: found.booked, budget: id, most: row.max_values })
            return [[name, found]]
          }
          const limit = (kind === 'money' ? row?.max_budget : row?.max_requests) ?? null
          return [[name, { ...plain, limit, gatewayId: row?.gateway_id ?? null }]]
        }),
      )
      for (const name of await valueLimits.tooManyValues(valued)) {
        const limit = limits.get(name)
        if (limit !== undefined) limits.set(name, { ...limit, tooManyValues: true })
      }
      return limits
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

/**
 * What the change of this version was about, as far as it is of limits; of a token that ended nothing is left to limit.
 */
export async function changedAt(state: Database, version: number): Promise<ChangedAt> {
  const rows = await state.read<{ kind: 'account' | 'budget' | 'token' | 'offer'; id: string | null }>(
    `select 'account' as kind, id from accounts where version = ?1
     union all select 'budget', id from budgets where version = ?1
     union all select 'budget', id from (${ofDimensions}) where version = ?1
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
