import { afterEach, beforeEach, expect, test } from 'bun:test'
import { noAttribution } from '../../events/event.ts'
import { type TemporaryStore, temporaryStore } from '../../store/testing/store.ts'
import { valueDigest } from './dimension.ts'
import { heldValueAccounts, readValues, sumsOfValues, ValueLimits, valuesByDigest } from './value-accounts.ts'

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

test('one value more than a dimension allows is too many, in its window and of its budget only', async () => {
  const { ledger } = store
  let now = 0
  const limits = new ValueLimits(ledger, { now: () => now })
  // Each question is asked long after the one before, so that values are counted anew.
  const tooManyValues = (...accounts: ReturnType<typeof asked>[]) => {
    now += 10_000
    return limits.tooManyValues(accounts)
  }
  expect(await tooManyValues(asked('a'), asked('b'), asked('c'))).toEqual([name('c')])
  await ledger.write([
    ...use(asked('a').booked, 5, 5),
    ...use(asked('a').booked, 5, 5, 'another worker'),
    ...use(asked('other', '@2026-10-01').booked, 1, 1),
    ...use(asked('other', '', 'b2').booked, 1, 1),
  ])
  expect(await tooManyValues(asked('b'))).toEqual([])
  await ledger.write(use(asked('b').booked, 5, 0))
  expect(await tooManyValues(asked('a'), asked('b'), asked('c'))).toEqual([name('c')])
  expect(await tooManyValues(asked('c', '@2026-12-01'), asked('c', '', 'b2'))).toEqual([])
  expect(await tooManyValues()).toEqual([])
})

test('counts the values of a window once a second, and adds up those that it lets in meanwhile', async () => {
  let reads = 0
  const read: typeof store.ledger.read = (sql, args) => {
    if (sql.includes('count(')) reads += 1
    return store.ledger.read(sql, args)
  }
  let now = 1_000_000
  const limits = new ValueLimits({ ...store.ledger, read }, { now: () => now })
  const hasTooMany = async (value: string) => (await limits.tooManyValues([asked(value)])).length === 1
  expect([await hasTooMany('a'), await hasTooMany('a'), await hasTooMany('b'), await hasTooMany('a')]).toEqual([
    ...[false, false, false, false],
  ])
  const many = await Promise.all(Array.from({ length: 50 }, (_, index) => hasTooMany(`more ${index}`)))
  expect(many).not.toContain(false)
  expect(reads).toBe(1)
  // What was let in and never granted is no value.
  now += 2000
  expect(await hasTooMany('c')).toBe(false)
  expect(reads).toBe(2)
})

test('adds up what values used in a window, and finds those that used most and those that are held', async () => {
  const { ledger } = store
  await ledger.write([
    ...use(asked('a').booked, 9, 4),
    ...use(asked('b').booked, 7, 7),
    ...use(asked('c').booked, 8, 8),
    ...use(asked('d').booked, 7, 7),
    ...use(asked('a', '@2026-10-01').booked, 3, 3),
    ...use(asked('a', '@2026-11-01', 'b2').booked, 100, 50),
    ...use('budget/b@2026-11-01', 100, 50),
    { sql: "update usage_accounts set dimension_value = 'b' where account = ?", args: [asked('b').booked] },
  ])
  expect(await sumsOfValues(ledger, 'b', '@2026-11-01', 8)).toEqual({
    ...{ used: 26, open: 5, values: 4, exhausted: 1, nearly_exhausted: 2, most: 8 },
  })
  const none = { used: 0, open: 0, values: 0, exhausted: 0, nearly_exhausted: 0, most: 0 }
  expect(await sumsOfValues(ledger, 'none', '', 8)).toEqual(none)
  expect(await heldValueAccounts(ledger, ['budget/b', 'token/t/money'])).toEqual([name('a')])
  const page = (after: Awaited<ReturnType<typeof readValues>>[number] | null) =>
    readValues(ledger, { budget: 'b', window: '@2026-11-01', after, count: 2 })
  const first = await page(null)
  const second = await page(first.at(-1) ?? null)
  expect([...first, ...second].map(({ settled }) => settled)).toEqual([8, 7, 7, 4])
  expect(new Set([...first, ...second].map(({ account }) => account)).size).toBe(4)
  expect([...first, ...second].find(({ account }) => account === asked('b').booked)?.value).toBe('b')
})

test('names the values of records by their digests only where an account of a value is booked', () => {
  const of = (account: string, dimensions?: Record<string, string>) => ({
    settlements: [{ account, amount: 1 }],
    event_attribution: { ...noAttribution, ...(dimensions !== undefined && { dimensions }) },
  })
  const acme = { customer: 'acme' }
  expect(valuesByDigest([of('budget/b@2026-11-01', acme), of('token/t/money', acme), of(name('x'))]).size).toBe(0)
  expect(valuesByDigest([of(asked('acme').booked, acme)])).toEqual(new Map([[valueDigest('acme'), 'acme']]))
})
