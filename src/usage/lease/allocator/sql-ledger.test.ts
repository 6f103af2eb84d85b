/** Balances, settlements and registrations in a real ledger. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { systemClock } from '../../../lib/clock.ts'
import { newId } from '../../../lib/ids.ts'
import { type Database, openDatabase } from '../../../store/open.ts'
import { migrateState } from '../../../store/schema/migrate.ts'
import type { Statement } from '../../../store/statement.ts'
import { openMigrated, temporaryDirectory } from '../../../store/testing/store.ts'
import { readDepletion } from '../../api/depletion.ts'
import { settlementStatements } from '../../settlement-statements.ts'
import { maxAmount, roundSize } from '../lease.ts'
import { LedgerEpoch } from '../ledger-epoch.ts'
import { sqlLedger } from './sql-ledger.ts'

const worker = 'gateway/instance/0'
const other = 'gateway/other/0'
const account = 'token/t/requests'
let directory: string
let ledger: Database
let lost: unknown[]
let epoch: LedgerEpoch

beforeEach(async () => {
  directory = temporaryDirectory()
  ledger = await openMigrated('ledger', directory)
  await ledger.write(
    [worker, other].map((name) => ({
      sql: `insert into workers (worker, gateway_id, instance_id, worker_number, stream_id, gateway_version, acknowledged_version,
        last_heartbeat_at, connected_at) values (?, 'gateway', 'instance', 0, 'stream', '', 0, 0, 0)`,
      args: [name],
    })),
  )
  lost = []
  epoch = new LedgerEpoch(newId())
})
afterEach(() => {
  ledger.close()
  rmSync(directory, { recursive: true, force: true })
})

const balances = () =>
  sqlLedger({ ledger, epoch, clock: systemClock, onLost: (...loss) => lost.push(loss), workers: () => [] })
const held = { worker, streamId: 'stream' }
const grant = (granted: number, returned = 0, limit = 10, rounds = 0, of = account) =>
  balances().apply({
    ...{ workers: [held], grants: true, limits: [{ account: of, limit }] },
    increases: [{ account: of, worker, rounds, granted, returned }],
  })
const settle = (amount: number, name = account, by = worker) =>
  ledger.write(settlementStatements({ worker: by, settlements: [{ account: name, amount }], epoch: epoch.text }))
const token = (id: string, accountId: string) => ({
  sql: `insert into tokens (id, name, token_prefix, purpose, principal_type, key_class, roles, policy_ids,
    access_policy_ids, metadata_trust, metadata, owner_kind, owner_id, created_at, version, account_id, max_requests)
    values (?, 'n', 'p', 'general', 'api_token', 'durable', '[]', '[]', '[]', 'none', '{}', 'team', 't', 0, 1, ?, 10)`,
  args: [id, accountId],
})
const balance = async () => (await balances().balances([account]))[0]
const registerWorker = (
  registration: Partial<{ through: number; crashed: boolean }> = {},
  number = 1,
  process = 'process',
) => balances().register({ ...held, process, number }, { through: 0, counted: 0, crashed: false, ...registration }, [])

test('counters only grow, and never past the limit', async () => {
  expect(await grant(8, 3)).toBe(true)
  expect(await grant(5, 1)).toBe(true)
  expect(await balance()).toMatchObject({ granted: 8, returned: 3 })
  expect(await grant(14)).toBe(false)
  expect(await balance()).toMatchObject({ granted: 8, returned: 3 })
  expect(await grant(13)).toBe(true)
})

test('compares counters from different rounds by their true values', async () => {
  await grant(roundSize + 8, roundSize + 3)
  expect(await grant(9, 4, 10, 1)).toBe(true)
  expect(await balance()).toMatchObject({ rounds: 1, granted: 9, returned: 4 })
  expect(await grant(roundSize + 8, roundSize + 5)).toBe(true)
  expect(await balance()).toMatchObject({ rounds: 1, granted: 9, returned: 5 })
  const registration = { through: 0, counted: 0, crashed: false }
  const reported = (returned: number, number: number) =>
    balances().register({ ...held, process: 'p', number }, registration, [
      { account, rounds: 0, granted: roundSize + 9, returned, settled: 0, open: 0 },
    ])
  expect(await reported(roundSize + 5, 1)).toBe('done')
  expect(await reported(roundSize + 4, 2)).toBe('rolled_back')
})

test('grants nothing to a worker that another stream has taken over', async () => {
  const change = {
    workers: [{ worker, streamId: 'other' }],
    grants: true,
    increases: [{ account, worker, rounds: 0, granted: 1, returned: 0 }],
    limits: [],
  }
  expect(await balances().apply(change)).toBe(false)
  expect(await balance()).toBeUndefined()
})

test('books a charge above the grant in full, but refuses more requests than were granted', async () => {
  const money = 'token/t/money'
  await grant(4)
  await grant(4, 0, 10, 0, money)
  for (const name of [account, money]) {
    await settle(3, name)
    await settle(3, name)
  }
  expect(await ledger.read('select account, granted, settled from lease_balances order by account')).toEqual([
    { account: money, granted: 6, settled: 6 },
    { account, granted: 4, settled: 4 },
  ])
  expect(await ledger.read('select account, settled, refused from usage_accounts order by account')).toEqual([
    { account: money, settled: 6, refused: 0 },
    { account, settled: 4, refused: 2 },
  ])
  await settle(Number.MAX_SAFE_INTEGER, money)
  await settle(Number.MAX_SAFE_INTEGER, money)
  const [counters] = await ledger.read("select granted, settled from lease_balances where account like '%money'")
  expect(counters).toEqual({ granted: maxAmount, settled: maxAmount })
})

test("a worker cannot settle on another worker's balance or on an unknown account", async () => {
  await grant(4)
  await settle(2, account, other)
  await settle(2, 'nonsense')
  expect(await balance()).toMatchObject({ settled: 0 })
  expect(await ledger.read('select account, settled, refused from usage_accounts')).toEqual([
    { account, settled: 0, refused: 2 },
  ])
})

test('frees the balance of an earlier process once all its events have arrived', async () => {
  await grant(9)
  await settle(2)
  expect(await registerWorker({ through: 3 })).toBe('behind')
  expect(await balance()).toMatchObject({ returned: 0 })
  await ledger.write([
    { sql: "insert into chains (chain, seq, digest, updated_at) values (?, 3, '', 0)", args: [worker] },
  ])
  expect(await registerWorker({ through: 3 })).toBe('done')
  expect(await balance()).toMatchObject({ granted: 9, returned: 7, settled: 2 })
  expect(lost).toEqual([])
})

test('counts the balance of a crashed host as spent and reports the loss', async () => {
  await grant(9)
  await settle(2)
  expect(await registerWorker({ crashed: true })).toBe('done')
  expect(await balance()).toMatchObject({ granted: 9, returned: 0, settled: 9 })
  expect(await ledger.read('select settled from usage_accounts')).toEqual([{ settled: 9 }])
  expect(lost).toEqual([[worker, [{ account, amount: 7 }]]])
})

test('counts the balance of a crashed host as spent for an account without any settlement', async () => {
  await grant(9)
  await registerWorker({ crashed: true })
  expect(await ledger.read('select account, owner_id, kind, settled from usage_accounts')).toEqual([
    { account, owner_id: 't', kind: 'requests', settled: 9 },
  ])
})

test('a registration with an older number changes nothing', async () => {
  expect(await registerWorker({}, 5)).toBe('done')
  await grant(3)
  expect(await registerWorker({}, 5)).toBe('overtaken')
  expect(await registerWorker({}, 4)).toBe('overtaken')
  expect(await balance()).toMatchObject({ returned: 0 })
  expect(await registerWorker({}, 1, 'next')).toBe('done')
  expect(await balance()).toMatchObject({ returned: 3 })
})

test('refuses a worker that reports less than before, and one that was released', async () => {
  await grant(9, 4)
  const older = { account, rounds: 0, granted: 9, returned: 1, settled: 0, open: 0 }
  const registration = { through: 0, counted: 0, crashed: false }
  expect(await balances().register({ ...held, process: 'p', number: 1 }, registration, [older])).toBe('rolled_back')
  expect(await balance()).toMatchObject({ granted: 9, returned: 4, settled: 5 })
  expect(lost).toEqual([[worker, [{ account, amount: 5 }]]])
  await ledger.write([{ sql: 'update workers set released_at = 1', args: [] }])
  expect(await registerWorker()).toBe('released')
})

test('a ledger that lacks a grant grants nothing, but goes on if only a late read made it look so', async () => {
  const status = async () => (await balances().book([account])).status
  await grant(3)
  expect(await status()).toBe('whole')
  expect(await balances().startFullReconciliation()).toBe(false)
  expect(await status()).toBe('whole')
  await ledger.write([{ sql: 'delete from ledger_epoch', args: [] }])
  expect(await status()).toBe('behind')
  expect(await grant(4)).toBe(false)
  expect(await balances().startFullReconciliation()).toBe(true)
  expect(await status()).toBe('awaiting')
  expect(await grant(4)).toBe(false)
  expect(await balances().startFullReconciliation()).toBe(false)
})

test('does not take a settlement that was shipped after the registration for a sign of an older copy', async () => {
  await grant(9)
  await settle(2)
  const chain = (seq: number) =>
    ledger.write([
      {
        sql: "insert or replace into chains (chain, seq, digest, updated_at) values (?, ?, '', 0)",
        args: [worker, seq],
      },
    ])
  const reported = { account, rounds: 0, granted: 9, returned: 0, settled: 1, open: 1 }
  const say = (number: number) =>
    balances().register({ ...held, process: 'p', number }, { through: 3, counted: 3, crashed: false }, [reported])
  await chain(4)
  expect(await say(1)).toBe('done')
  await chain(3)
  expect(await say(2)).toBe('rolled_back')
})

test('asks a worker to register again if the missing events arrived in the meantime', async () => {
  await grant(9)
  const comesMeanwhile: Database = {
    ...ledger,
    async write(statements) {
      await ledger
        .write(statements)
        .finally(() =>
          ledger.write([
            { sql: "insert into chains (chain, seq, digest, updated_at) values (?, 3, '', 0)", args: [worker] },
          ]),
        )
    },
  }
  const reported = { account, rounds: 0, granted: 9, returned: 0, settled: 0, open: 1 }
  const registration = { through: 3, counted: 3, crashed: false }
  const say = (by: Database, number: number) =>
    sqlLedger({ ledger: by, epoch, clock: systemClock, onLost: () => undefined, workers: () => [] }).register(
      { ...held, process: 'p', number },
      registration,
      [reported],
    )
  expect(await say(comesMeanwhile, 1)).toBe('behind')
  expect(await say(ledger, 2)).toBe('done')
})

test('derives depletion from the settled amount of the account that a rotation keeps', async () => {
  const state = await openDatabase(`${directory}/state.db`, directory)
  await migrateState(state)
  state.close()
  await ledger.write([token('t', 't'), token('rotated', 't'), token('other', 'other')])
  await grant(10)
  await settle(10)
  await ledger.write([{ sql: 'update usage_accounts set exhausted_at = 1', args: [] }])
  const limits = { maxRequests: 10, maxBudget: null }
  const found = await readDepletion(
    ledger,
    ['t', 'rotated', 'other'].map((id) => ({ id, ...limits })),
  )
  const used = { current_spend: 0, remaining_budget: null, current_requests: 10, remaining_requests: 0 }
  const shares = { budget: 0, requests: 1 }
  const exhausted = { depletion: used, shares, status: 'request_exhausted' as const, exceededAt: null }
  expect(found.get('rotated')).toEqual(exhausted)
  expect(found.get('t')).toEqual(exhausted)
  expect(found.get('other')).toMatchObject({ depletion: { current_requests: 0, remaining_requests: 10 }, status: null })
})

test('finds balances by their accounts, however many the ledger or a worker has', async () => {
  const asked: Statement[] = []
  const read: typeof ledger.read = (sql, args = []) => {
    asked.push({ sql, args })
    return ledger.read(sql, args)
  }
  const reading = sqlLedger({
    ...{ ledger: { ...ledger, read }, epoch, clock: systemClock, onLost: () => undefined, workers: () => [] },
  })
  await Promise.all([reading.balances([account]), reading.book([account]), reading.answers([account])])
  const booked = settlementStatements({ worker, settlements: [{ account, amount: 1 }], epoch: epoch.text })
  const plans = await Promise.all(
    [...asked, ...booked].map(({ sql, args }) =>
      ledger.read<{ detail: string }>(`explain query plan ${sql}`, [...args]),
    ),
  )
  const steps = plans.flat().map(({ detail }) => detail)
  expect(steps.some((step) => step.startsWith('SEARCH lease_balances'))).toBe(true)
  expect(steps.filter((step) => /^SCAN lease_balances|lease_balances_worker/.test(step))).toEqual([])
})
