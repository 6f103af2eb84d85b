/**
 * Books what outcomes say was used, in the transaction that appends them to the lane's chain: so each counts exactly
 * once, and there is no other report of use (protocols section 2, rule 5). A lane settles its own cells only, and never
 * more than it was granted: what it claims beyond is booked on the account as excess, which is as spent as what is
 * settled, closes the account to further grants, and is told of in an event (rule 19). What a lane claims of an account
 * that it never held is only told of, and so is what one still ships that an operator released.
 *
 * Where the ledger was restored from an older copy (restored-ledger.ts), a lane that has not said hello since, or that
 * the copy does not know, is taken at its word: what it ships again had been granted.
 */
import type { Statement } from '../store/open.ts'
import { readAccountName } from './account-name.ts'
import { mostHeld } from './lease.ts'
import { isBehind } from './ledger-marks.ts'

export interface Settlement {
  account: string
  amount: number
}

export interface SettledBatch {
  lane: string
  settlements: readonly Settlement[]
  /** Milliseconds since the epoch. */
  now: number
  /** What the ledger is known to have (LedgerMarks.text): with less it is an older copy. */
  marks: string
}

/** The sums of a batch by account; names that no account can have are left out. */
export function sumByAccount(settlements: readonly Settlement[]): Map<string, number> {
  const sums = new Map<string, number>()
  for (const { account, amount } of settlements) sums.set(account, (sums.get(account) ?? 0) + amount)
  for (const [account, amount] of sums) {
    // No limit is larger: what is beyond that changes nothing, and stays an exact integer.
    if (readAccountName(account) !== null) sums.set(account, Math.min(amount, mostHeld))
    else sums.delete(account)
  }
  return sums
}

/** An SQL expression: what is spent of an account, of a row of `usage_accounts` under this name. */
export const spentOf = (table: string): string => `min(${table}.settled + ${table}.excess, ${mostHeld})`

/** An SQL expression of a lane's name and of marks (ledger-marks.ts). */
const isTrusted = (lane: string, marks: string): string =>
  `(coalesce((select awaited from lanes where lane = ${lane}), 1) = 1 or ${isBehind(marks)})`

/** To run after the events are inserted; none where nothing was used. */
export function settlementStatements({ lane, settlements, now, marks }: SettledBatch): Statement[] {
  const used = [...sumByAccount(settlements)].filter(([, amount]) => amount > 0)
  if (used.length === 0) return []
  const rows = used.map(([account, amount]) => {
    const named = readAccountName(account)
    const owner = named?.kind === 'money' || named?.kind === 'requests' ? named.id : null
    return { account, amount, kind: named?.kind ?? 'grant', owner }
  })
  const list = JSON.stringify(rows)
  return [
    {
      sql: `insert into usage_accounts (account, owner_id, kind, settled, refused, excess, closed_at)
        select account, owner, kind, booked, amount - booked, iif(holds and not released, amount - booked, 0),
          iif(amount > booked and holds and not released, ?3, null) from (
          select value ->> 'account' as account, value ->> 'owner' as owner, value ->> 'kind' as kind,
            value ->> 'amount' as amount,
            iif(${isTrusted('?2', '?4')}, value ->> 'amount', coalesce((
              select min(value ->> 'amount', granted - returned - settled) from usage_cells
              where lane = ?2 and account = value ->> 'account'), 0)) as booked,
            exists (select 1 from usage_cells where lane = ?2 and account = value ->> 'account') as holds,
            exists (select 1 from lanes where lane = ?2 and released_at is not null) as released
          from json_each(?1)
        ) where true
        on conflict (account) do update set settled = settled + excluded.settled,
          refused = min(refused + excluded.refused, ${mostHeld}), excess = min(excess + excluded.excess, ${mostHeld}),
          closed_at = coalesce(closed_at, excluded.closed_at)`,
      args: [list, lane, now, marks],
    },
    {
      sql: `insert into usage_cells (account, lane, granted)
        select value ->> 'account', ?2, value ->> 'amount' from json_each(?1) where ${isTrusted('?2', '?3')}
        on conflict (account, lane) do update set granted = max(granted, returned + settled + excluded.granted)`,
      args: [list, lane, marks],
    },
    {
      sql: `update usage_cells set settled = min(granted - returned, settled + (value ->> 'amount'))
        from json_each(?) where lane = ? and account = value ->> 'account'`,
      args: [list, lane],
    },
  ]
}
