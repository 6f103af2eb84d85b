/**
 * The accounts of budgets that are for each value of a dimension: `budget/<id>/<digest>` (usage/README.md, Attribution).
 *
 * SQL text: ranges of the primary key of balances, by the beginning of a name.
 */
import type { Reader } from '../../store/open.ts'
import { plainName } from '../lease/lease.ts'

export interface ValueAccount {
  /** Without its window. */
  name: string
  /** With its window. */
  booked: string
  /** The id of the budget. */
  budget: string
  /** The most values that the dimension allows. */
  most: number
}

/** `?1`: the id of a budget. A digest has small letters and digits only, and `0` follows `/`. */
const ofBudget = "account > 'budget/' || ?1 || '/' and account < 'budget/' || ?1 || '0'"

/**
 * The names of the accounts that are of one more value than their dimension allows: no worker was granted any of them in
 * this window, and as many others have been used in it.
 */
export async function crowdedAccounts(ledger: Reader, accounts: readonly ValueAccount[]): Promise<string[]> {
  if (accounts.length === 0) return []
  const rows = await ledger.read<{ account: string }>(
    `select asked.value as account from json_each(?) asked
      where not exists (select 1 from lease_balances b where b.account = asked.value)`,
    [JSON.stringify(accounts.map(({ booked }) => booked))],
  )
  const fresh = new Set(rows.map(({ account }) => account))
  const counts = new Map<string, number>()
  const crowded: string[] = []
  for (const { name, booked, budget, most } of accounts) {
    if (!fresh.has(booked)) continue
    const window = booked.slice(plainName(booked).length)
    const counted = `${budget}${window}`
    const used = counts.get(counted) ?? (await valuesUsed(ledger, budget, window))
    counts.set(counted, used + 1)
    if (used >= most) crowded.push(name)
  }
  return crowded
}

async function valuesUsed(ledger: Reader, budget: string, window: string): Promise<number> {
  const [row] = await ledger.read<{ used: number }>(
    `select count(distinct account) as used from lease_balances where ${ofBudget}
      and substr(account, 41 + length(?1)) = ?2`,
    [budget, window],
  )
  return row?.used ?? 0
}

/** Of these accounts of budgets, the accounts of their values that workers hold something of, without their windows. */
export async function heldValueAccounts(ledger: Reader, accounts: readonly string[]): Promise<string[]> {
  const found = new Set<string>()
  for (const account of accounts) {
    if (!account.startsWith('budget/')) continue
    const rows = await ledger.read<{ account: string }>(
      `select distinct account from lease_balances where ${ofBudget} and granted - returned - settled > 0`,
      [account.slice('budget/'.length)],
    )
    for (const row of rows) found.add(plainName(row.account))
  }
  return [...found]
}

/** What the value of a budget that used most has used in a window, in nano-dollars. */
export async function mostOfValues(ledger: Reader, budget: string, window: string): Promise<number> {
  const [row] = await ledger.read<{ settled: number }>(
    `select coalesce(max(settled), 0) as settled from usage_accounts where ${ofBudget}
      and substr(account, 41 + length(?1)) = ?2`,
    [budget, window],
  )
  return row?.settled ?? 0
}

/**
 * What the values of a budget used together in a window, and what workers hold of them, in nano-dollars. `window`:
 * `@2026-11-01`, or empty.
 */
export async function sumsOfValues(
  ledger: Reader,
  budget: string,
  window: string,
): Promise<{ used: number; open: number }> {
  const inWindow = `${ofBudget} and substr(account, 41 + length(?1)) = ?2`
  const [row] = await ledger.read<{ used: number; open: number }>(
    `select (select coalesce(sum(settled), 0) from usage_accounts where ${inWindow}) as used,
      (select coalesce(sum(granted - returned - settled), 0) from lease_balances where ${inWindow}) as open`,
    [budget, window],
  )
  return row ?? { used: 0, open: 0 }
}
