/** Grants to workers from a real ledger: sizes, bindings, recalls, and what a restored ledger learns from workers. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { leasesRequestSchema } from '../../../fleet/protocol/wire.ts'
import { systemClock } from '../../../lib/clock.ts'
import { newId } from '../../../lib/ids.ts'
import { silentLog } from '../../../lib/log/log.ts'
import type { Database } from '../../../store/open.ts'
import { openMigrated, temporaryDirectory } from '../../../store/testing/store.ts'
import { settlementStatements } from '../../settlement-statements.ts'
import type { LeaseRequest } from '../lease.ts'
import { LedgerEpoch } from '../ledger-epoch.ts'
import { noPeers } from '../recall-peers.ts'
import { Allocator } from './allocator.ts'
import { resume } from './restored-ledger.ts'
import { sqlLedger } from './sql-ledger.ts'

const account = 'token/t/requests'
let directory: string
let ledger: Database
let authority: Allocator
let limit: number
let floor: number
let recalls: string[]
let epoch: LedgerEpoch
/** Runs after the limits were read, before anything is granted by them. */
let whenRead: () => void

beforeEach(async () => {
  directory = temporaryDirectory()
  ledger = await openMigrated('ledger', directory)
  for (const worker of ['one', 'two']) {
    await ledger.write([
      {
        sql: `insert into workers (worker, gateway_id, instance_id, worker_number, stream_id, gateway_version,
          acknowledged_version, last_heartbeat_at, connected_at) values (?, 'gateway', 'i', 0, 'stream', '', 0, 0, 0)`,
        args: [worker],
      },
    ])
  }
  limit = 100
  floor = 1
  recalls = []
  whenRead = () => undefined
  epoch = new LedgerEpoch(newId())
  authority = new Allocator({
    floors: async (accounts) => new Map(accounts.map((name) => [name, floor])),
    ledger: sqlLedger({
      ledger,
      epoch,
      clock: systemClock,
      onLost: () => undefined,
      workers: () => [],
    }),
    limits: {
      async limits(names) {
        const read = new Map(names.map((name) => [name, { booked: name, limit, until: null, gatewayId: 'gateway' }]))
        whenRead()
        return read
      },
    },
    clock: systemClock,
    log: silentLog,
    onRestored: () => undefined,
    after: (milliseconds, work) => void setTimeout(work, milliseconds),
    peers: noPeers,
    workers: { connected: () => ['one', 'two'], holds: () => true, recall: (worker) => recalls.push(worker) },
  })
})
afterEach(() => {
  ledger.close()
  rmSync(directory, { recursive: true, force: true })
})

let number = 0
const send = (worker: string, request: Partial<LeaseRequest>, gatewayId = 'gateway') =>
  authority.receive(
    { worker, streamId: 'stream', gatewayId, signal: new AbortController().signal },
    {
      process: `process of ${worker}`,
      number: ++number,
      registration: null,
      grant_requests: [],
      balances: [],
      ...request,
    },
  )
const registerWorker = (worker: string, balances: LeaseRequest['balances'] = []) =>
  send(worker, { registration: { through: 0, counted: 0, crashed: false }, balances })
const ask = (want: number, near_limit = false) => ({ account, want, min: 1, waited: 0, wait: 2000, near_limit })
const held = () => ledger.read('select worker, granted, returned from lease_balances order by worker')

test('grants nothing to a process that has not registered', async () => {
  expect(await send('one', { grant_requests: [ask(1)] })).toMatchObject({ registration: 'needed', grants: [] })
  expect(await held()).toEqual([])
})

test('grants up to three times the request while much is free', async () => {
  await registerWorker('one')
  const reply = await send('one', { grant_requests: [ask(5)] })
  expect(reply).toMatchObject({ grants: [{ account, near_limit: false }], balances: [{ granted: 15 }] })
})

test('grants nothing to a gateway for a token that is bound to another gateway', async () => {
  await registerWorker('one')
  expect(await send('one', { grant_requests: [ask(1)] }, 'another')).toMatchObject({
    grants: [],
    refusals: [{ reason: 'unknown' }],
  })
  expect(await held()).toEqual([])
})

test('recalls balances of other workers when little is left, and grants what they return', async () => {
  limit = 10
  await registerWorker('one')
  await registerWorker('two')
  await send('one', { grant_requests: [ask(10)] })
  expect(await send('two', { grant_requests: [ask(4)] })).toMatchObject({ grants: [], deferred: [account] })
  expect(recalls).toContain('one')
  const waiting = send('two', { grant_requests: [ask(4, true)] })
  await send('one', { balances: [{ account, rounds: 0, granted: 10, returned: 7, settled: 1, open: 2 }] })
  expect(await waiting).toMatchObject({ grants: [{ account, near_limit: true, partial: false }] })
  expect(await held()).toEqual([
    { worker: 'one', granted: 10, returned: 7 },
    { worker: 'two', granted: 4, returned: 0 },
  ])
})

test('refuses a used-up limit at once', async () => {
  limit = 3
  await registerWorker('one')
  await registerWorker('two')
  await send('one', { grant_requests: [ask(3)] })
  const waiting = send('two', { grant_requests: [ask(1, true)] })
  await send('one', { balances: [{ account, rounds: 0, granted: 3, returned: 0, settled: 0, open: 3 }] })
  expect(await waiting).toMatchObject({ refusals: [{ account, reason: 'exhausted' }] })
})

test('calls a budget exhausted only if the rest pays for no request, and recalls nothing for a request that can never fit', async () => {
  await registerWorker('one')
  await registerWorker('two')
  const money = 'token/t/money'
  limit = 10
  const askFor = (amount: number) => ({ ...ask(amount), min: amount, account: money })
  await send('two', { grant_requests: [askFor(1)] })
  recalls = []
  const first = await send('one', { grant_requests: [askFor(11)] })
  expect(first.refusals).toEqual([{ account: money, reason: 'short', retry_after: null, left: 10, until: null }])
  floor = 11
  const second = await send('one', { grant_requests: [askFor(12)] })
  expect(second.refusals).toMatchObject([{ reason: 'exhausted', left: 10 }])
  expect(recalls).toEqual([])
})

test('refuses only the one ask that no limit can satisfy, and grants the others of the same message', async () => {
  await registerWorker('one')
  const requested = [
    { ...ask(2 ** 60), account: 'token/large/requests' },
    { ...ask(1e24), account: 'token/larger/requests', min: 1e24 },
    { ...ask(1.5), account: 'token/part/requests' },
    { ...ask(1), want: 'many', account: 'token/text/requests' },
    { ...ask(1), account: 7 },
    'nonsense',
    ask(1),
  ]
  limit = 9e15
  const { grants, refusals } = await send('one', {
    grant_requests: leasesRequestSchema.shape.grant_requests.parse(requested),
  })
  expect(grants.map((grant) => grant.account)).toEqual(['token/large/requests', account])
  expect(refusals.map((refusal) => [refusal.account, refusal.reason])).toEqual([
    ['token/larger/requests', 'short'],
    ['token/part/requests', 'short'],
    ['token/text/requests', 'short'],
    ['', 'short'],
    ['', 'short'],
  ])
})

test('grants once for a message that arrives twice', async () => {
  await registerWorker('one')
  const twice = { number: 1000, grant_requests: [ask(1)] }
  await send('one', twice)
  await expect(send('one', twice)).rejects.toMatchObject({ code: 'conflict' })
  expect(await held()).toEqual([{ worker: 'one', granted: 3, returned: 0 }])
})

test('recalls a grant that was decided with a limit that was lowered at the same time', async () => {
  await registerWorker('one')
  whenRead = () => {
    limit = 5
    authority.changed([account])
    recalls = []
    whenRead = () => undefined
  }
  expect(await send('one', { grant_requests: [ask(20)] })).toMatchObject({ balances: [{ granted: 20 }] })
  await Bun.sleep(5)
  expect(recalls).toContain('one')
})

test('a restored ledger takes over the grants that a worker reports, up to the limit', async () => {
  await ledger.write([
    { sql: "update workers set registered_at = ? where worker = 'two'", args: [systemClock.now() + 1000] },
  ])
  await registerWorker('one', [{ account, rounds: 0, granted: 60, returned: 10, settled: 0, open: 0 }])
  await registerWorker('two', [{ account, rounds: 0, granted: 60, returned: 0, settled: 0, open: 0 }])
  expect(await held()).toEqual([{ worker: 'one', granted: 60, returned: 10 }])
})

test('counts the reported grant of a worker that is pending reconciliation, whatever other workers hold', async () => {
  await registerWorker('one', [{ account, rounds: 0, granted: 60, returned: 10, settled: 0, open: 0 }])
  await registerWorker('two', [{ account, rounds: 0, granted: 60, returned: 0, settled: 0, open: 0 }])
  expect(await held()).toEqual([
    { worker: 'one', granted: 60, returned: 10 },
    { worker: 'two', granted: 60, returned: 0 },
  ])
})

test('a restored ledger grants nothing until every worker of its last day has registered', async () => {
  await ledger.write([
    { sql: "update workers set last_heartbeat_at = 100000000 where worker = 'two'", args: [] },
    {
      sql: `insert into workers (worker, gateway_id, instance_id, worker_number, stream_id, gateway_version, acknowledged_version,
        last_heartbeat_at, connected_at) values ('long gone', 'gateway', 'i', 0, 'stream', '', 0, 1, 0)`,
      args: [],
    },
  ])
  await registerWorker('one', [{ account, rounds: 0, granted: 60, returned: 10, settled: 0, open: 0 }])
  expect(await send('one', { grant_requests: [ask(1), ask(1, true)] })).toMatchObject({
    grants: [],
    refusals: [{ reason: 'unknown' }, { reason: 'unknown' }],
  })
  await registerWorker('two', [{ account, rounds: 0, granted: 20, returned: 0, settled: 0, open: 0 }])
  const known = [{ account, rounds: 0, granted: 60, returned: 10, settled: 0, open: 0 }]
  const granted = { grants: [{ account }], balances: [{ granted: 65 }] }
  expect(await send('one', { grant_requests: [ask(5)], balances: known })).toMatchObject(granted)
  expect(await held()).toMatchObject([{ worker: 'one' }, { worker: 'two', granted: 20 }])
})

test('an older ledger copy under a running control plane grants nothing, and books the missing grants', async () => {
  limit = 10
  await registerWorker('one')
  await registerWorker('two')
  await send('one', { grant_requests: [ask(10)] })
  const settlements = [{ account, amount: 8 }]
  const forgotten = ['delete from lease_balances', 'delete from ledger_epoch']
  await ledger.write(forgotten.map((sql) => ({ sql, args: [] })))
  const reported = [{ account, rounds: 0, granted: 0, returned: 0, settled: 0, open: 0 }]
  expect(await send('two', { grant_requests: [ask(5)], balances: reported })).toMatchObject({
    grants: [],
    refusals: [{ reason: 'unknown' }],
  })
  expect(await ledger.read('select worker from workers where pending_reconciliation = 1')).toHaveLength(2)
  await ledger.write(settlementStatements({ worker: 'one', settlements, epoch: epoch.text }))
  expect(await ledger.read('select granted, settled from lease_balances')).toEqual([{ granted: 8, settled: 8 }])
  expect(await ledger.read('select settled from usage_accounts')).toEqual([{ settled: 8 }])
})

test('an operator ends reconciliation for workers that do not come back', async () => {
  await registerWorker('one', [{ account, rounds: 0, granted: 60, returned: 10, settled: 0, open: 0 }])
  expect(await send('one', { grant_requests: [ask(5)] })).toMatchObject({ grants: [] })
  await ledger.write([resume(1)])
  expect(await send('one', { grant_requests: [ask(5)] })).toMatchObject({ grants: [{ account }] })
})

test('during contention no worker gets more than half of an account until the others are served', async () => {
  limit = 100
  await registerWorker('one')
  await registerWorker('two')
  const both = [send('one', { grant_requests: [ask(90, true)] }), send('two', { grant_requests: [ask(20, true)] })]
  expect(await Promise.all(both)).toMatchObject([
    { grants: [{ partial: true }], balances: [{ granted: 80 }] },
    { grants: [{ partial: false }], balances: [{ granted: 20 }] },
  ])
})

test('a worker that would get more than half waits behind the others', async () => {
  limit = 100
  await registerWorker('one')
  await registerWorker('two')
  await send('one', { grant_requests: [ask(20, true)] })
  const known = { account, rounds: 0, granted: 20, returned: 0, settled: 0, open: 0 }
  const waiting = send('two', { grant_requests: [{ ...ask(90, true), min: 90 }] })
  await Bun.sleep(20)
  expect(await send('one', { grant_requests: [ask(40)], balances: [known] })).toMatchObject({
    grants: [],
    deferred: [account],
  })
  await send('one', { balances: [{ ...known, returned: 20 }] })
  expect(await waiting).toMatchObject({ grants: [{ partial: false }] })
})

test('two workers that want everything share it, and a single request that needs more than half is served', async () => {
  limit = 100
  await registerWorker('one')
  await registerWorker('two')
  await Promise.all([
    send('one', { grant_requests: [ask(170, true)] }),
    send('two', { grant_requests: [ask(170, true)] }),
  ])
  expect(await held()).toEqual([
    { worker: 'one', granted: 50, returned: 0 },
    { worker: 'two', granted: 50, returned: 0 },
  ])
  const back = (worker: string) =>
    send(worker, { balances: [{ account, rounds: 0, granted: 50, returned: 50, settled: 0, open: 0 }] })
  await Promise.all([back('one'), back('two')])
  const large = { ...ask(60, true), min: 60 }
  const known = [{ account, rounds: 0, granted: 50, returned: 50, settled: 0, open: 0 }]
  const first = send('one', { grant_requests: [large], balances: known })
  void send('two', { grant_requests: [large], balances: known }).catch(() => undefined)
  expect(await first).toMatchObject({ grants: [{ partial: false }] })
})
