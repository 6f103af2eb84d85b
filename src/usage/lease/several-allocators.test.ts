/** Two control planes on one ledger, each with workers of its own: a real file, and signals that may be lost. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { eventually } from '../../../test/support/eventually.ts'
import { systemClock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log/log.ts'
import { type Database, openDatabase } from '../../store/open.ts'
import { ledgerMigrations, migrate } from '../../store/schema/migrate.ts'
import { temporaryDirectory } from '../../store/testing/store.ts'
import { Allocator } from './allocator/allocator.ts'
import { sqlLedger } from './allocator/sql-ledger.ts'
import type { LeaseRequest } from './lease.ts'
import { LedgerEpoch } from './ledger-epoch.ts'
import type { UsageSignal } from './recall-peers.ts'

const account = 'token/t/requests'
const limit = 50
let directory: string
let ledgers: Database[]
let authorities: Map<string, Allocator>
let recalls: string[]
let signals: UsageSignal[]
let lossy: boolean
/** By how much the clock of the control planes is ahead of the ledger's, in milliseconds. */
let clockAhead: number

/** A control plane with one worker. It sends its signals to all others. */
async function start(worker: string): Promise<void> {
  const ledger = await openDatabase(`${directory}/ledger.db`, directory)
  ledgers.push(ledger)
  await migrate(ledger, ledgerMigrations)
  await ledger.write([
    {
      sql: `insert into workers (worker, gateway_id, instance_id, worker_number, stream_id, gateway_version, acknowledged_version,
        last_heartbeat_at, connected_at) values (?, 'gateway', 'i', 0, 'stream', '', 0, ?, 0)`,
      args: [worker, systemClock.now()],
    },
  ])
  const authority = new Allocator({
    floors: async (accounts) => new Map(accounts.map((name) => [name, 1])),
    ledger: sqlLedger({
      ledger,
      epoch: new LedgerEpoch(newId()),
      clock: systemClock,
      onLost: () => undefined,
      workers: () => [],
    }),
    limits: {
      limits: async (names) =>
        new Map(names.map((name) => [name, { booked: name, limit, until: null, gatewayId: null }])),
    },
    clock: { ...systemClock, now: () => systemClock.now() + clockAhead },
    log: silentLog,
    onRestored: () => undefined,
    after: (milliseconds, work) => void setTimeout(work, milliseconds),
    workers: { connected: () => [worker], holds: () => true, recall: (name) => recalls.push(name) },
    peers: {
      send(signal) {
        signals.push(signal)
        if (lossy) return
        for (const other of authorities.values())
          if (other !== authority) setImmediate(() => other.receiveSignal(signal))
      },
    },
  })
  authorities.set(worker, authority)
}

beforeEach(async () => {
  directory = temporaryDirectory()
  ledgers = []
  authorities = new Map()
  recalls = []
  signals = []
  lossy = false
  clockAhead = 0
  for (const worker of ['one', 'two']) await start(worker)
  for (const worker of ['one', 'two']) await send(worker, { registration: { through: 0, counted: 0, crashed: false } })
})
afterEach(() => {
  for (const ledger of ledgers) ledger.close()
  rmSync(directory, { recursive: true, force: true })
})

let number = 0
async function send(worker: string, request: Partial<LeaseRequest>) {
  const caller = { worker, streamId: 'stream', gatewayId: 'gateway', signal: new AbortController().signal }
  const said = {
    process: `process of ${worker}`,
    number: ++number,
    registration: null,
    grant_requests: [],
    balances: [],
    ...request,
  }
  return await authorities.get(worker)?.receive(caller, said)
}
const ask = (want: number, near_limit = false) => ({ account, want, min: want, waited: 0, wait: 2000, near_limit })
const balance = (granted: number, returned: number, open: number) => ({
  ...{ account, rounds: 0, settled: 0 },
  ...{ granted, returned, open },
})
/** The worker one has so much; whatever it was called for by its own control plane is over. */
async function hold(amount: number): Promise<void> {
  await send('one', { grant_requests: [ask(amount, true)] })
  recalls = []
}
const held = async () =>
  await ledgers[0]?.read<{ worker: string; held: number }>(
    'select worker, granted - returned as held from lease_balances order by worker',
  )

test('two control planes that grant of one account at once never grant more than the limit', async () => {
  const granted = new Map([
    ['one', 0],
    ['two', 0],
  ])
  for (let round = 0; round < 20; round++) {
    const askTwo = async (worker: string) => {
      const reply = await send(worker, {
        grant_requests: [ask(2)],
        balances: [balance(granted.get(worker) ?? 0, 0, 0)],
      })
      granted.set(worker, reply?.balances[0]?.granted ?? granted.get(worker) ?? 0)
    }
    await Promise.all([askTwo('one'), askTwo('two')])
    const total = ((await held()) ?? []).reduce((sum, row) => sum + row.held, 0)
    expect(total).toBeLessThanOrEqual(limit)
  }
  expect([...granted.values()].every((amount) => amount > 0)).toBe(true)
  expect((granted.get('one') ?? 0) + (granted.get('two') ?? 0)).toBeGreaterThanOrEqual(limit - 1)
})

test('recalls the balance of a worker on another control plane and grants what it returns', async () => {
  await hold(50)
  const waiting = send('two', { grant_requests: [ask(20, true)] })
  await eventually(() => recalls.includes('one'))
  await send('one', { balances: [balance(50, 20, 30)] })
  expect(await waiting).toMatchObject({ grants: [{ account, partial: false }], balances: [{ granted: 20 }] })
  expect(signals.map(({ kind }) => kind)).toContain('answered')
})

test('recalls workers of another control plane whatever the local clock says', async () => {
  await hold(50)
  clockAhead = 3_600_000
  // A registration makes it read the ledger again.
  await send('two', { registration: { through: 0, counted: 0, crashed: false } })
  let answered = false
  const waiting = send('two', { grant_requests: [ask(20, true)] }).finally(() => {
    answered = true
  })
  await eventually(() => recalls.includes('one') || answered)
  await send('one', { balances: [balance(50, 20, 30)] })
  expect(await waiting).toMatchObject({ grants: [{ account }], balances: [{ granted: 20 }] })
})

test('refuses as exhausted, not unknown, when a worker of another control plane has everything open', async () => {
  await hold(50)
  const waiting = send('two', { grant_requests: [ask(1, true)] })
  await eventually(() => recalls.includes('one'))
  await send('one', { balances: [balance(50, 0, 50)] })
  expect(await waiting).toMatchObject({ refusals: [{ account, reason: 'exhausted' }] })
})

test('finds returned amounts in the ledger when no signal arrives', async () => {
  lossy = true
  await hold(50)
  const waiting = send('two', { grant_requests: [ask(20, true)] })
  await send('one', { balances: [balance(50, 50, 0)] })
  expect(await waiting).toMatchObject({ grants: [{ account }], balances: [{ granted: 20 }] })
  expect(recalls).toEqual([])
})

test('a change that lowers a limit waits for answers from workers of all control planes', async () => {
  await hold(10)
  const called = authorities.get('two')?.recallAndWait([account])
  await eventually(() => recalls.includes('one'))
  await send('one', { balances: [balance(10, 8, 2)] })
  await called
  expect(await held()).toEqual([{ worker: 'one', held: 2 }])
})
