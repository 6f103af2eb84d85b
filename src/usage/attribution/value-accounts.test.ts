import { afterEach, beforeEach, expect, test } from 'bun:test'
import { type TemporaryStore, temporaryStore } from '../../store/testing/store.ts'
import { valueDigest } from './dimension.ts'
import { crowdedAccounts, heldValueAccounts, mostOfValues, sumsOfValues } from './value-accounts.ts'

let store: TemporaryStore
beforeEach(async () => {
  store = await temporaryStore()
})
afterEach(() => store.remove())

const name = (value: string, budget = 'b') => `budget/${budget}/${valueDigest(value)}`
const asked = (value: string, window = '@2026-11-01', budget = 'b') => ({
  ...{ name: name(value, budget), booked: `${name(value, budget)}${window}`, budget },
  most: 2,
})
const use = (account: string, granted: number, settled: number, worker = 'w') => [
  {
    sql: 'insert into lease_balances (account, worker, granted, settled) values (?, ?, ?, ?)',
    args: [account, worker, granted, settled],
  },
  {
    sql: `insert into usage_accounts (account, owner_id, kind, settled) values (?, null, 'budget', ?)
      on conflict (account) do update set settled = settled + excluded.settled`,
    args: [account, settled],
  },
]

test('one value more than a dimension allows is crowded, in its window and of its budget only', async () => {
  const { ledger } = store
  expect(await crowdedAccounts(ledger, [asked('a'), asked('b'), asked('c')])).toEqual([name('c')])
  await ledger.write([
    ...use(asked('a').booked, 5, 5),
    ...use(asked('a').booked, 5, 5, 'another worker'),
    ...use(asked('other', '@2026-10-01').booked, 1, 1),
    ...use(asked('other', '', 'b2').booked, 1, 1),
  ])
  expect(await crowdedAccounts(ledger, [asked('b')])).toEqual([])
  await ledger.write(use(asked('b').booked, 5, 0))
  expect(await crowdedAccounts(ledger, [asked('a'), asked('b'), asked('c')])).toEqual([name('c')])
  expect(await crowdedAccounts(ledger, [asked('c', '@2026-12-01'), asked('c', '', 'b2')])).toEqual([])
  expect(await crowdedAccounts(ledger, [])).toEqual([])
})

test('adds up what values used in a window, and finds the one that used most and those that are held', async () => {
  const { ledger } = store
  await ledger.write([
    ...use(asked('a').booked, 9, 4),
    ...use(asked('b').booked, 7, 7),
    ...use(asked('a', '@2026-10-01').booked, 3, 3),
    ...use(asked('a', '@2026-11-01', 'b2').booked, 100, 50),
    ...use('budget/b@2026-11-01', 100, 50),
  ])
  expect(await sumsOfValues(ledger, 'b', '@2026-11-01')).toEqual({ used: 11, open: 5 })
  expect(await mostOfValues(ledger, 'b', '@2026-11-01')).toBe(7)
  expect(await sumsOfValues(ledger, 'none', '')).toEqual({ used: 0, open: 0 })
  expect(await heldValueAccounts(ledger, ['budget/b', 'token/t/money'])).toEqual([name('a')])
})
