/** What an operator does with limits that workers hold, by the routes. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mergeOnce } from '../../events/log/merge-segments.ts'
import { replaceCheckpoint } from '../../events/proof/checkpoint-writer.ts'
import { dropSegments, recordedEvents } from '../../events/testing/recorded.ts'
import { type TemporaryInstallation, temporaryInstallation } from '../../members/testing/installation.ts'
import { temporaryApi } from '../../tokens/testing/api.ts'
import { missingChangesSince, startReconciliation } from '../lease/allocator/restored-ledger.ts'
import { usageRoutes } from './usage-routes.ts'

const worker = 'gateway/instance/0'
const account = 'token/t/requests'
let made: TemporaryInstallation
let call: ReturnType<typeof temporaryApi>
let freed: string[]

beforeEach(async () => {
  made = await temporaryInstallation()
  freed = []
  call = temporaryApi(made, [usageRoutes({ ...made.deps, freed: (accounts) => freed.push(...accounts) })])
  await made.store.ledger.write([
    {
      sql: `insert into workers (worker, gateway_id, instance_id, worker_number, stream_id, gateway_version, acknowledged_version,
        last_heartbeat_at, connected_at) values (?, 'gateway', 'instance', 0, 'stream', '', 0, 0, 0)`,
      args: [worker],
    },
    {
      sql: 'insert into lease_balances (account, worker, granted, settled) values (?, ?, 9, 4)',
      args: [account, worker],
    },
    { sql: "insert into usage_accounts (account, kind, settled) values (?, 'requests', 4)", args: [account] },
  ])
})
afterEach(() => made.store.remove())

const events = async () => (await recordedEvents(made.store.ledger, 'usage.released')).map(({ details }) => details)

test("releases a lost worker's balance once, with an event, and keeps what it settled", async () => {
  const released = await call('POST', '/v1/usage/release', { body: { worker } })
  expect(released).toMatchObject({ status: 200, json: { worker, held: [] } })
  expect(freed).toEqual([account])
  expect((await call('POST', '/v1/usage/release', { body: { worker } })).status).toBe(200)
  expect(await events()).toMatchObject([{ worker, amounts: [{ account, amount: 5 }] }])
  expect((await call('GET', '/v1/usage/accounts?prefix=token/t')).json.accounts).toMatchObject([
    { account, settled: 4, held: 0, workers: 0 },
  ])
})

test('refuses to release a worker that still sends heartbeats, and answers 404 for an unknown worker', async () => {
  await made.store.ledger.write([{ sql: 'update workers set last_heartbeat_at = ?', args: [made.clock.now()] }])
  expect((await call('POST', '/v1/usage/release', { body: { worker } })).json.error).toMatchObject({
    code: 'conflict',
    param: 'worker',
  })
  expect((await call('POST', '/v1/usage/release', { body: { worker: 'g/i/7' } })).status).toBe(404)
  expect(freed).toEqual([])
})

test('pages through accounts and workers', async () => {
  await made.store.ledger.write([
    {
      sql: `insert into workers (worker, gateway_id, instance_id, worker_number, stream_id, gateway_version, acknowledged_version,
        last_heartbeat_at, connected_at) values ('gateway/instance/1', 'gateway', 'instance', 1, 'stream', '', 0, 0, 0)`,
      args: [],
    },
    { sql: "insert into lease_balances (account, worker, granted) values ('token/u/requests', ?, 1)", args: [worker] },
  ])
  for (const [list, names] of [
    ['accounts', ['token/t/requests', 'token/u/requests']],
    ['workers', ['gateway/instance/0', 'gateway/instance/1']],
  ] as const) {
    const path = `/v1/usage/${list}?limit=1`
    const first = (await call('GET', path)).json
    const second = (await call('GET', `${path}&cursor=${first.next_cursor}`)).json
    const name = list === 'accounts' ? 'account' : 'worker'
    expect([first[list][0][name], second[list][0][name], second.next_cursor]).toEqual([...names, null])
  }
})

test('shows workers pending reconciliation, until an operator resumes grants', async () => {
  await made.store.ledger.write([{ sql: 'update workers set pending_reconciliation = 1', args: [] }])
  expect((await call('GET', '/v1/usage/workers')).json.workers).toMatchObject([
    { worker, pending_reconciliation: true },
  ])
  expect((await call('POST', '/v1/usage/resume', { body: {} })).json).toEqual({ workers: [worker] })
  expect((await call('GET', '/v1/usage/workers')).json.workers).toMatchObject([
    { worker, pending_reconciliation: false },
  ])
  expect((await call('POST', '/v1/usage/resume', { body: {} })).json).toEqual({ workers: [] })
  expect(await events()).toMatchObject([{ resumed: true, workers: [worker] }])
  // The next start finds the same copy, and no other worker to wait for.
  await made.store.ledger.write([startReconciliation(made.clock.now())])
  expect((await call('GET', '/v1/usage/workers')).json.workers).toMatchObject([
    { worker, pending_reconciliation: false },
  ])
})

test('detects a ledger that lacks a change of the state as an older copy', async () => {
  const { state, ledger } = made.store
  await call('POST', '/v1/tokens', { body: { name: 'made', purpose: 'general' } })
  expect(await missingChangesSince(state, ledger, made.clock.now())).toBeNull()
  await dropSegments(ledger, 'first_position = (select max(first_position) from event_segments)')
  expect(await missingChangesSince(state, ledger, made.clock.now())).toBe(made.clock.now())
})

test('does not report an older copy when checkpoints were signed or retention removed old events', async () => {
  const { state, ledger } = made.store
  await call('POST', '/v1/tokens', { body: { name: 'made', purpose: 'general' } })
  const signed = { body: '{}', key_id: 'key', signature: 'signature' }
  // The signer may have died before the ledger had it.
  await state.write(replaceCheckpoint(signed, { number: 1, former: 0, at: made.clock.now() }))
  expect(await state.read("select 1 from checkpoints where body = '{}'")).toHaveLength(1)
  expect(await missingChangesSince(state, ledger, made.clock.now())).toBeNull()
  await call('POST', '/v1/tokens', { body: { name: 'later', purpose: 'general' } })
  await dropSegments(ledger, 'first_position < (select max(first_position) from event_segments)')
  expect(await missingChangesSince(state, ledger, made.clock.now())).toBeNull()
})

test('finds the events of all changes in merged segments', async () => {
  const { state, ledger } = made.store
  for (const name of ['one', 'two', 'three']) await call('POST', '/v1/tokens', { body: { name, purpose: 'general' } })
  while (await mergeOnce(ledger, { full: 128, fanIn: 2 }));
  expect(await ledger.read('select 1 from event_segments')).toHaveLength(1)
  expect(await missingChangesSince(state, ledger, made.clock.now())).toBeNull()
})
