/** What batches hold and give back, in a real ledger. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import fc from 'fast-check'
import { noAttribution } from '../../events/event.ts'
import type { LogRecord } from '../../events/log/record.ts'
import { recordedEvents } from '../../events/testing/recorded.ts'
import { type TemporaryInstallation, temporaryInstallation } from '../../members/testing/installation.ts'
import { readDepletion } from '../api/depletion.ts'
import { sqlLedger } from '../lease/allocator/sql-ledger.ts'
import { LedgerEpoch } from '../lease/ledger-epoch.ts'
import { settlementStatements } from '../settlement-statements.ts'
import { temporaryLimitApi } from '../testing/limit-api.ts'
import { BatchHolds, returnsOf } from './batch-holds.ts'
import type { BatchUse } from './batch-protocol.ts'
import { holdStatements } from './hold-statements.ts'
import { listMadeObjects, madeObjectStatements } from './made-objects.ts'

const gatewayId = 'gateway'
const worker = 'gateway/instance/0'
const hold = '01990000-0000-7000-8000-0000000000aa'
let made: TemporaryInstallation
let holds: BatchHolds
let epoch: LedgerEpoch
let token: string
let returned: string[][]

beforeEach(async () => {
  made = await temporaryInstallation()
  const { state, ledger, recorder, clock, newId } = made.deps
  returned = []
  epoch = new LedgerEpoch(newId())
  holds = new BatchHolds({
    ...{ state, ledger, clock, newId },
    recorder: () => recorder,
    onReturned: (accounts) => returned.push([...accounts]),
  })
  await ledger.write([
    {
      sql: `insert into workers (worker, gateway_id, instance_id, worker_number, stream_id, gateway_version, acknowledged_version,
        last_heartbeat_at, connected_at) values (?, 'gateway', 'instance', 0, 'stream', '', 0, 0, 0)`,
      args: [worker],
    },
  ])
  const call = temporaryLimitApi(made)
  const answer = await call('POST', '/v1/tokens', { name: 't', purpose: 'general', max_budget: 1, max_requests: 50 })
  token = answer.json.id
})
afterEach(() => made.store.remove())

const money = () => `token/${token}/money`
const requests = () => `token/${token}/requests`
const balances = () =>
  sqlLedger({ ledger: made.deps.ledger, epoch, clock: made.deps.clock, onLost: () => undefined, workers: () => [] })

/** Whether a worker can be granted this much in all, within the limit. */
const grant = (account: string, granted: number, limit: number): Promise<boolean> =>
  balances().apply({
    ...{ workers: [{ worker, streamId: 'stream' }], grants: true, limits: [{ account, limit }] },
    increases: [{ account, worker, rounds: 0, granted, returned: 0 }],
  })

const recordOf = (id: string, settlements: LogRecord['settlements'] = []): LogRecord => ({
  event_id: made.deps.newId(),
  event_type: 'gateway.request.outcome',
  request_id: 'request-1',
  timestamp: new Date(made.deps.clock.now()).toISOString(),
  verdict: 'allow',
  reason_code: 'ok',
  config_version: 1,
  event_attribution: { ...noAttribution, token_id: token, gateway_id: gatewayId },
  exchange_id: id,
  settlements,
  details: {
    batch: {
      ...{ id: 'batch_1', provider_id: 'p', provider: 'upstream', model: 'gpt-test', upstream_model: 'gpt-test' },
      ...{ family: 'chat', lines: 4, bound: 1000, spend_owner: 'team:t' },
    },
  },
})

/** Books the outcome of a request that made a batch, as the ingest does. */
async function make(id: string, settlements: LogRecord['settlements'] = []): Promise<void> {
  const record = recordOf(id, settlements)
  await made.deps.ledger.write([
    ...settlementStatements({ worker, settlements, epoch: epoch.text }),
    ...holdStatements(worker, [record], made.deps.clock.now()),
  ])
}

const useOf = (change: Partial<BatchUse> = {}): BatchUse => ({
  ...{ hold, status: 'completed', requests: 3, cost: 200, whole: false, estimated: false },
  ...{ input_tokens: 30, output_tokens: 20, cached_input_tokens: 0, reasoning_tokens: 0, price_source: 'table' },
  notes: [],
  ...change,
})

const used = async (account: string) => {
  const [row] = await made.deps.ledger.read<{ settled: number }>(
    'select settled from usage_accounts where account = ?',
    [account],
  )
  return row?.settled ?? 0
}

test('a settled batch gives back what it held and did not use', async () => {
  await grant(money(), 1000, 1000)
  await grant(requests(), 4, 50)
  await make(hold, [
    { account: money(), amount: 900 },
    { account: requests(), amount: 4 },
  ])
  expect(await grant(money(), 1001, 1000)).toBe(false)
  expect(await holds.sync(worker, gatewayId, [useOf()])).toEqual({ open: [], settled: [hold] })
  expect([await used(money()), await used(requests())]).toEqual([200, 3])
  expect(await grant(money(), 1701, 1000)).toBe(false)
  expect(await grant(money(), 1700, 1000)).toBe(true)
  expect(returned).toEqual([[money(), requests()]])
  const [event] = await recordedEvents(made.deps.ledger, 'usage.batch_settled')
  expect(event).toMatchObject({
    event_attribution: { token_id: token },
    event_cost_attribution: { cost: 0.0000002, input_tokens: 30, model: 'gpt-test' },
    details: { hold, requests: 3, returned: [{ amount: 700 }, { amount: 1 }] },
  })
})

test('a batch is settled once, however often and by whomever it is reported', async () => {
  await grant(money(), 1000, 1000)
  await make(hold, [{ account: money(), amount: 900 }])
  await Promise.all([holds.sync(worker, gatewayId, [useOf()]), holds.sync(worker, gatewayId, [useOf({ cost: 5 })])])
  await holds.sync(worker, gatewayId, [useOf({ cost: 0 })])
  expect([5, 200]).toContain(await used(money()))
  expect(await recordedEvents(made.deps.ledger, 'usage.batch_settled')).toHaveLength(1)
})

test('a batch whose making has not arrived yet is not settled', async () => {
  expect(await holds.sync(worker, gatewayId, [useOf()])).toEqual({ open: [], settled: [] })
})

test('a batch costs more than it held: the rest is taken off what the limit has left', async () => {
  await grant(money(), 100, 1000)
  await make(hold, [{ account: money(), amount: 100 }])
  await holds.sync(worker, gatewayId, [useOf({ cost: 150 })])
  expect(await used(money())).toBe(150)
  expect(await grant(money(), 951, 1000)).toBe(false)
  expect(await grant(money(), 950, 1000)).toBe(true)
})

test('a batch gives back nothing to an account that its worker never held', async () => {
  await make(hold, [{ account: 'token/other/money', amount: 5000 }])
  await holds.sync(worker, gatewayId, [useOf({ cost: 0 })])
  expect(await made.deps.ledger.read('select * from batch_returns')).toEqual([])
})

test('a worker is given the open batches of its gateway, and another worker only when it stopped asking', async () => {
  await make(hold)
  const { open } = await holds.sync(worker, gatewayId, [])
  expect(open).toMatchObject([{ hold, id: 'batch_1', provider_id: 'p', lines: 4 }])
  expect((await holds.sync('gateway/other/0', gatewayId, [])).open).toEqual([])
  expect((await holds.sync(worker, gatewayId, [])).open).toHaveLength(1)
  expect((await holds.sync('else/other/0', 'else', [])).open).toEqual([])
  await made.deps.ledger.write([{ sql: 'update batch_holds set claimed_until = 0', args: [] }])
  expect((await holds.sync('gateway/other/0', gatewayId, [])).open).toHaveLength(1)
})

test('a token whose whole budget a batch holds is not used up, and counts the lines that were answered', async () => {
  await grant(money(), 1000, 1000)
  await make(hold, [{ account: money(), amount: 1000 }])
  await made.deps.ledger.write([
    { sql: 'insert into usage_totals (account_id, requests, spend) values (?, 1, 0)', args: [token] },
  ])
  await holds.sync(worker, gatewayId, [useOf()])
  const [totals] = await made.deps.ledger.read('select requests, spend from usage_totals where account_id = ?', [token])
  expect(totals).toEqual({ requests: 3, spend: 200 })
  const depletion = await readDepletion(made.deps.ledger, [{ id: token, maxBudget: 1000, maxRequests: null }])
  expect(depletion.get(token)?.depletion.current_spend).toBe(0.0000002)
})

test('lists what an owner has made, the latest first, in pages', async () => {
  const { ledger, clock } = made.deps
  const objects = [1, 2, 3].map((number) => ({
    ...recordOf(`01990000-0000-7000-8000-00000000000${number}`),
    details: { made: { kind: 'file', owner: 'team/t', place: ['p', 'm', `file-${number}`] } },
  }))
  await ledger.write(madeObjectStatements(objects, clock.now()))
  await ledger.write(madeObjectStatements(objects, clock.now()))
  const list = (after: string[] | null, owner = 'team/t') =>
    listMadeObjects(ledger, { owner, kind: 'file', after, limit: 2 })
  const first = {
    places: [
      ['p', 'm', 'file-3'],
      ['p', 'm', 'file-2'],
    ],
    has_more: true,
  }
  expect(await list(null)).toEqual(first)
  expect(await list(['p', 'm', 'file-2'])).toEqual({ places: [['p', 'm', 'file-1']], has_more: false })
  expect(await list(['p', 'm', 'file-9'])).toEqual({ places: [], has_more: false })
  expect(await list(null, 'team/other')).toEqual({ places: [], has_more: false })
  await ledger.write(madeObjectStatements(objects.slice(0, 1), clock.now() + 31 * 86_400_000))
  expect((await list(null)).places).toEqual([])
})

test('what was held is what was used and what came back, whatever batches report', async () => {
  const amount = fc.integer({ min: 0, max: 1_000_000 })
  const use = fc.record({ whole: fc.boolean(), cost: fc.option(amount), requests: fc.integer({ min: 0, max: 60_000 }) })
  const held = fc.array(
    fc.record({ account: fc.constantFrom('token/t/money', 'token/t/requests', 'budget/b@2026-01-01'), amount }),
    {
      maxLength: 5,
    },
  )
  fc.assert(
    fc.property(held, use, (holding, said) => {
      for (const [index, { account, amount: back }] of returnsOf(holding, said).entries()) {
        const spent = said.whole
          ? (holding[index]?.amount ?? 0)
          : account.endsWith('/requests')
            ? said.requests
            : (said.cost ?? 0)
        expect(spent + back).toBe(holding[index]?.amount ?? 0)
      }
    }),
  )
  const batches = fc.array(
    fc.record({ held: fc.integer({ min: 1, max: 400 }), spent: fc.integer({ min: 0, max: 500 }) }),
    {
      minLength: 1,
      maxLength: 4,
    },
  )
  let number = 0
  let granted = 0
  let spent = 0
  await fc.assert(
    fc.asyncProperty(batches, async (some) => {
      for (const each of some) {
        number += 1
        const id = `01990000-0000-7000-8000-${String(number).padStart(12, '0')}`
        granted += each.held
        expect(await grant(money(), granted, 10_000_000)).toBe(true)
        await make(id, [{ account: money(), amount: each.held }])
        await holds.sync(worker, gatewayId, [useOf({ hold: id, cost: each.spent })])
        spent += each.spent
        expect(await used(money())).toBe(spent)
      }
      const sums = await balances().balances([money()])
      expect(sums.reduce((sum, { settled }) => sum + settled, 0)).toBe(spent)
      expect(sums.reduce((sum, balance) => sum + balance.granted - balance.returned, 0)).toBe(spent)
    }),
    { numRuns: 10 },
  )
})
