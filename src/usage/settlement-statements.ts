/**
 * Books the amounts that outcomes report, in the transaction that appends them to the worker's chain. So each counts
 * exactly once, and usage is reported nowhere else (usage/lease/README.md rule 5). A worker books on its own balances
 * only. A charge above the worker's grants is booked in full and granted afterwards (rule 19): it reduces what others
 * may get, and the account stays open while anything is left. A claim on an account that the worker never held, or of
 * a released worker, is refused and recorded.
 *
 * In a ledger restored from an older copy (usage/lease/allocator/restored-ledger.ts), a worker that is unknown or has
 * not registered since is believed: the events that it ships again were within its grants.
 */
import type { Statement } from '../store/statement.ts'
import { countsMoney, readAccountName } from './account-name.ts'
import { maxAmount, roundSize } from './lease/lease.ts'
import { isBehind } from './lease/ledger-epoch.ts'

export interface Settlement {
  account: string
  amount: number
}

export interface SettledBatch {
  worker: string
  settlements: readonly Settlement[]
  /** Values of dimensions by their digests, which stand in names of accounts. */
  values?: ReadonlyMap<string, string>
  /** The transaction counts that the ledger must have (LedgerEpoch.text). With less it is an older copy. */
  epoch: string
}

/** The sums of a batch by account, without invalid account names. */
export function sumByAccount(settlements: readonly Settlement[]): Map<string, number> {
  const sums = new Map<string, number>()
  for (const { account, amount } of settlements) sums.set(account, (sums.get(account) ?? 0) + amount)
  for (const [account, amount] of sums) {
    // No limit is larger, so a larger amount changes nothing, and the sum stays an exact integer.
    if (readAccountName(account) !== null) sums.set(account, Math.min(amount, maxAmount))
    else sums.delete(account)
  }
  return sums
}

/** An SQL expression of a worker's name and the known counts (usage/lease/ledger-epoch.ts). */
const isTrusted = (worker: string, epoch: string): string =>
  `(coalesce((select pending_reconciliation from workers where worker = ${worker}), 1) = 1 or ${isBehind(epoch)})`

/**
 * An SQL expression on a balance: how much of an amount is booked on it. It keeps counters exact integers, so
 * `settled` is never more than any limit.
 */
const bookable = (amount: string, mayExceed: string): string => `max(0, min(${amount}, ${maxAmount} - settled,
  iif(${mayExceed}, ${maxAmount + roundSize}, granted) - returned - settled))`

/** Run after the events are inserted. Empty if nothing was used. */
export function settlementStatements({ worker, settlements, values, epoch }: SettledBatch): Statement[] {
  const used = [...sumByAccount(settlements)].filter(([, amount]) => amount > 0)
  if (used.length === 0) return []
  const rows = used.map(([account, amount]) => {
    const named = readAccountName(account)
    const owner = named?.kind === 'money' || named?.kind === 'requests' ? named.id : null
    const value = values?.get(named?.value ?? '') ?? null
    return { account, amount, kind: named?.kind ?? 'grant', owner, value, money: countsMoney(account) ? 1 : 0 }
  })
  const args = [JSON.stringify(rows), worker, epoch]
  const trusted = isTrusted('?2', '?3')
  const booked = bookable("(value ->> 'amount')", `value ->> 'money' or ${trusted}`)
  // `+`: found by the account. A worker may hold balances of very many values, and SQLite would read all of them.
  const ownBalance = `+worker = ?2 and account = value ->> 'account'
    and not exists (select 1 from workers where worker = ?2 and released_at is not null)`
  return [
    {
      sql: `insert into lease_balances (account, worker) select value ->> 'account', ?2 from json_each(?1) where ${trusted}
        on conflict (account, worker) do nothing`,
      args,
    },
    {
      sql: `insert into usage_accounts (account, owner_id, kind, settled, refused, dimension_value)
        select account, owner, kind, booked, amount - booked, named from (
          select value ->> 'account' as account, value ->> 'owner' as owner, value ->> 'kind' as kind,
            value ->> 'value' as named,
            value ->> 'amount' as amount, coalesce((select ${booked} from lease_balances where ${ownBalance}), 0) as booked
          from json_each(?1)
        ) where true
        on conflict (account) do update set settled = min(settled + excluded.settled, ${maxAmount}),
          refused = min(refused + excluded.refused, ${maxAmount}), dimension_value = coalesce(dimension_value, excluded.dimension_value)`,
      args,
    },
    {
      sql: `update lease_balances set settled = settled + ${booked}, granted = max(granted, returned + settled + ${booked})
        from json_each(?1) where ${ownBalance}`,
      args,
    },
  ]
}
