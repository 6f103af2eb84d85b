import { afterEach, beforeEach, expect, test } from 'bun:test'
import { type TemporaryStore, temporaryStore } from '../../../store/testing/store.ts'
import { LedgerEpoch } from '../ledger-epoch.ts'
import { Compaction } from './compaction.ts'

const day = 86_400_000
const now = Date.UTC(2026, 5, 15)
let store: TemporaryStore
let monotonic: number
let compaction: Compaction

beforeEach(async () => {
  store = await temporaryStore()
  monotonic = 0
  compaction = new Compaction(store.ledger, { now: () => now, monotonic: () => monotonic }, new LedgerEpoch('own'))
})
afterEach(() => store.remove())

const worker = (name: string, heartbeatAt: number) => ({
  sql: `insert into workers (worker, gateway_id, instance_id, worker_number, stream_id, gateway_version, acknowledged_version,
    last_heartbeat_at, connected_at) values (?, 'gateway', 'i', 0, 'stream', '', 0, ?, ?)`,
  args: [name, heartbeatAt, heartbeatAt],
})
const balance = (account: string, name: string, granted: number, returned: number, settled: number) => ({
  sql: 'insert into lease_balances (account, worker, granted, returned, settled) values (?, ?, ?, ?, ?)',
  args: [account, name, granted, returned, settled],
})
const balances = () =>
  store.ledger.read<{ account: string; worker: string; settled: number }>(
    'select account, worker, granted - returned as held, settled from lease_balances order by account, worker',
  )
const settled = async () =>
  Object.fromEntries(
    (
      await store.ledger.read<{ account: string; sum: number }>(
        'select account, sum(settled) as sum from lease_balances group by account order by account',
      )
    ).map(({ account, sum }) => [account, sum]),
  )

test('merges the balances of windows that ended long ago and keeps the settled sum of each account', async () => {
  const [past, recently] = ['budget/b@2026-01-01', 'budget/b@2026-06-01']
  await store.ledger.write([
    ...[worker('alive', now), worker('silent', now - 31 * day), worker('lost', now - 31 * day)],
    ...[balance(past, 'alive', 9, 2, 7), balance(past, 'silent', 5, 0, 5), balance(past, 'lost', 5, 0, 4)],
    ...[
      balance(recently, 'alive', 4, 0, 4),
      balance('token/t/money', 'silent', 8, 1, 7),
      balance('budget/c', 'alive', 1, 0, 1),
    ],
  ])
  const before = await settled()
  await compaction.run()
  expect(await settled()).toEqual(before)
  expect(await balances()).toMatchObject([
    { account: 'budget/b@2026-01-01', worker: '*', held: 12, settled: 12 },
    { account: 'budget/b@2026-01-01', worker: 'lost', held: 5, settled: 4 },
    { account: 'budget/b@2026-06-01', worker: 'alive' },
    { account: 'budget/c', worker: 'alive' },
    { account: 'token/t/money', worker: '*', held: 7, settled: 7 },
  ])
  expect(await store.ledger.read('select worker from workers where released_at is not null')).toEqual([
    { worker: 'silent' },
  ])
})

test('merges many balances in batches until all are merged', async () => {
  const names = Array.from({ length: 450 }, (_, index) => `silent ${index}`)
  await store.ledger.write(names.flatMap((name) => [worker(name, 0), balance('token/t/requests', name, 2, 1, 1)]))
  for (let run = 1; (await balances()).length > 1; run++) {
    expect(run).toBeLessThan(10)
    await compaction.run()
    monotonic += 60_000
  }
  expect(await settled()).toEqual({ 'token/t/requests': 450 })
})

test('adds up what values of a dimension used in a window that ended long ago in one account of the budget', async () => {
  const digest = (letter: string) => letter.repeat(32)
  const past = (letter: string) => `budget/b/${digest(letter)}@2026-01-01`
  const present = `budget/b/${digest('a')}@2026-06-01`
  const used = (account: string, amount: number) => ({
    sql: "insert into usage_accounts (account, owner_id, kind, settled) values (?, null, 'budget', ?)",
    args: [account, amount],
  })
  await store.ledger.write([
    ...[worker('one', now), worker('two', now)],
    ...[balance(past('a'), 'one', 9, 2, 7), balance(past('a'), 'two', 5, 0, 5), balance(past('b'), 'one', 3, 0, 3)],
    ...[balance(past('c'), 'one', 5, 0, 4), balance(present, 'one', 2, 0, 2)],
    ...[used(past('a'), 12), used(past('b'), 3), used(past('c'), 4), used(present, 2)],
  ])
  await compaction.run()
  expect(await balances()).toMatchObject([
    { account: present, worker: 'one', settled: 2 },
    { account: past('c'), worker: 'one', held: 5, settled: 4 },
    { account: 'budget/b@2026-01-01', worker: '*', held: 15, settled: 15 },
  ])
  expect(await store.ledger.read('select account, settled from usage_accounts order by account')).toEqual([
    { account: present, settled: 2 },
    { account: past('c'), settled: 4 },
    { account: 'budget/b@2026-01-01', settled: 15 },
  ])
})
