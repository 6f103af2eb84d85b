/**
 * The accounts of budgets that are for each value of a dimension: `budget/<id>/<digest>` (usage/README.md, Attribution).
 *
 * SQL text: ranges of the primary key of balances, by the beginning of a name.
 */
import type { LogRecord } from '../../events/log/record.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Reader } from '../../store/open.ts'
import { plainName } from '../lease/lease.ts'
import { windowOf } from '../window.ts'
import { valueDigest } from './dimension.ts'

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
/** `?2`: a window, such as `@2026-11-01`, or empty. A digest has 32 characters. */
const inWindow = `${ofBudget} and substr(account, 41 + length(?1)) = ?2`

/** How long a count of values holds. */
const countedForMs = 1000

interface Counted {
  at: number
  used: Promise<number>
  /** Accounts that were not among those counted, and were let in since. */
  added: Set<string>
}

/**
 * Finds accounts that are of one more value than their dimension allows. The values of a budget's window are counted
 * once a second at most, because a caller may send a new value with each request; between two counts the accounts that
 * were let in are added up. Another control plane that lets in values meanwhile is seen at the next count.
 */
export class ValueLimits {
  readonly #ledger: Reader
  readonly #clock: Pick<Clock, 'now'>
  readonly #counted = new Map<string, Counted>()

  constructor(ledger: Reader, clock: Pick<Clock, 'now'>) {
    this.#ledger = ledger
    this.#clock = clock
  }

  /**
   * The names of these accounts of too many values: no worker was granted any of them in this window, and as many others
   * have been used in it as the dimension allows.
   */
  async tooManyValues(accounts: readonly ValueAccount[]): Promise<string[]> {
    if (accounts.length === 0) return []
    const rows = await this.#ledger.read<{ account: string }>(
      `select asked.value as account from json_each(?) asked
        where not exists (select 1 from lease_balances b where b.account = asked.value)`,
      [JSON.stringify(accounts.map(({ booked }) => booked))],
    )
    const fresh = new Set(rows.map(({ account }) => account))
    const tooManyValues: string[] = []
    for (const { name, booked, budget, most } of accounts) {
      if (!fresh.has(booked)) continue
      const { used, added } = this.#count(budget, windowOf(booked))
      const before = await used
      if (added.has(booked)) continue
      if (before + added.size >= most) tooManyValues.push(name)
      else added.add(booked)
    }
    return tooManyValues
  }

  #count(budget: string, window: string): Counted {
    const now = this.#clock.now()
    for (const [key, { at }] of this.#counted) if (Math.abs(now - at) > countedForMs) this.#counted.delete(key)
    const key = `${budget}${window}`
    const known = this.#counted.get(key)
    if (known !== undefined) return known
    const used = valuesUsed(this.#ledger, budget, window)
    // A count that failed is made anew.
    used.catch(() => this.#counted.delete(key))
    const counted = { at: now, used, added: new Set<string>() }
    this.#counted.set(key, counted)
    return counted
  }
}

async function valuesUsed(ledger: Reader, budget: string, window: string): Promise<number> {
  const [row] = await ledger.read<{ used: number }>(
    `select count(distinct account) as used from lease_balances where ${inWindow}`,
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

/** The values that are named by accounts which these records book on, by their digests. */
export function valuesByDigest(
  records: readonly Pick<LogRecord, 'event_attribution' | 'settlements'>[],
): Map<string, string> {
  const values = new Map<string, string>()
  for (const { event_attribution: who, settlements = [] } of records) {
    if (who.dimensions === undefined || !settlements.some(({ account }) => isOfValue(account))) continue
    for (const value of Object.values(who.dimensions)) values.set(valueDigest(value), value)
  }
  return values
}

const isOfValue = (account: string): boolean => account.startsWith('budget/') && account.lastIndexOf('/') > 7

/** How the values of a budget stand in a window. Amounts are nano-dollars. */
export interface SumsOfValues {
  /** What all of them used together. */
  used: number
  /** What workers hold of them. */
  open: number
  /** How many used anything. */
  values: number
  /** How many used all that a value has. */
  exhausted: number
  /** How many used 80 % or more of it, and not all. */
  nearly_exhausted: number
  /** What the value used that used most. */
  most: number
}

/** `window`: `@2026-11-01`, or empty; `limit`: what each value has. */
export async function sumsOfValues(
  ledger: Reader,
  budget: string,
  window: string,
  limit: number,
): Promise<SumsOfValues> {
  const [row] = await ledger.read<SumsOfValues>(
    `select coalesce(sum(settled), 0) as used, count(*) as "values", coalesce(max(settled), 0) as most,
      coalesce(sum(settled >= ?3), 0) as exhausted, coalesce(sum(settled < ?3 and settled >= 0.8 * ?3), 0) as nearly_exhausted,
      (select coalesce(sum(granted - returned - settled), 0) from lease_balances where ${inWindow}) as open
      from usage_accounts where ${inWindow}`,
    [budget, window, limit],
  )
  return row ?? { used: 0, open: 0, values: 0, exhausted: 0, nearly_exhausted: 0, most: 0 }
}

export interface ValueUse {
  account: string
  /** Null for requests without a value, and where only what was lost with a host is booked. */
  value: string | null
  /** Nano-dollars. */
  settled: number
}

/** The values of a budget in a window, those that used most first, after a place in this order. */
export const readValues = (
  ledger: Reader,
  { budget, window, after, count }: { budget: string; window: string; after: ValueUse | null; count: number },
): Promise<ValueUse[]> =>
  ledger.read<ValueUse>(
    `select account, dimension_value as value, settled from usage_accounts where ${inWindow}
      and (?3 is null or settled < ?3 or settled = ?3 and account > ?4) order by settled desc, account limit ?5`,
    [budget, window, after?.settled ?? null, after?.account ?? '', count],
  )

/** Those of these accounts of values that have used anything. */
export const valuesOfAccounts = async (ledger: Reader, accounts: readonly string[]): Promise<ValueUse[]> =>
  accounts.length === 0
    ? []
    : await ledger.read<ValueUse>(
        `select account, dimension_value as value, settled from usage_accounts
          where account in (select value from json_each(?))`,
        [JSON.stringify(accounts)],
      )

/** How many values of a budget in a window have used a percentage of `limit`, the nano-dollars that each value has. */
export async function countValuesOver(
  ledger: Reader,
  { budget, window, limit, percent }: { budget: string; window: string; limit: number; percent: number },
): Promise<number> {
  const [row] = await ledger.read<{ found: number }>(
    `select count(*) as found from usage_accounts where ${inWindow} and 100.0 * settled / ?3 >= ?4`,
    [budget, window, limit, percent],
  )
  return row?.found ?? 0
}
