/** When a limit counts as used up, that it is recorded once, and the attribution of events about limits. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { type Event, eventSchema, noAttribution } from '../events/event.ts'
import { recordedEvents } from '../events/testing/recorded.ts'
import { type TemporaryInstallation, temporaryInstallation } from '../members/testing/installation.ts'
import { depletionView } from './api/depletion.ts'
import { excessDetailsOf, excessOf, excessStatements } from './excess.ts'
import { settlementStatements } from './settlement-statements.ts'
import { temporaryLimitApi } from './testing/limit-api.ts'
import { UsageEvents } from './usage-events.ts'

const worker = 'gateway/instance/0'
let made: TemporaryInstallation
let news: UsageEvents
let call: ReturnType<typeof temporaryLimitApi>

/** A model of a thousand nano-dollars a token of input and as many of output: 2000 for the cheapest request. */
beforeEach(async () => {
  made = await temporaryInstallation()
  const { state, ledger, recorder, clock, newId } = made.deps
  news = new UsageEvents({ state, ledger, recorder: () => recorder, clock, newId })
  call = temporaryLimitApi(made)
  await addModel('plain', 1)
  await made.deps.ledger.write([
    {
      sql: `insert into workers (worker, gateway_id, instance_id, worker_number, stream_id, gateway_version, acknowledged_version,
        last_heartbeat_at, connected_at) values (?, 'gateway', 'instance', 0, 'stream', '', 0, 0, 0)`,
      args: [worker],
    },
  ])
})
afterEach(() => made.store.remove())

async function addModel(id: string, dollars: number): Promise<void> {
  const price = JSON.stringify({ input_per_million: dollars, output_per_million: dollars })
  await made.deps.state.write([
    {
      sql: "insert or ignore into providers (id, name, kind, position, version) values ('p', 'p', 'openai', 1, 1)",
      args: [],
    },
    {
      sql: `insert into models (id, provider_id, price, created_at, version)
        values (?, 'p', ?, 0, (select coalesce(max(version), 0) + 1 from models))`,
      args: [id, price],
    },
  ])
}

async function addToken(limits: object): Promise<{ id: string; account: string }> {
  const token = await call('POST', '/v1/tokens', { name: 't', purpose: 'general', ...limits })
  expect(token.status).toBe(201)
  return { id: token.json.id, account: `token/${token.json.id}/${'max_budget' in limits ? 'money' : 'requests'}` }
}

const settled = (account: string, amount: number, owner: string) =>
  made.deps.ledger.write([
    {
      sql: "insert into usage_accounts (account, owner_id, kind, settled) values (?, ?, iif(? like '%/money', 'money', 'requests'), ?)",
      args: [account, owner, account, amount],
    },
  ])

async function status(id: string, maxBudget: number | null): Promise<string | null> {
  const found = await depletionView(made.deps.ledger, async () => undefined).read([
    { id, maxBudget, maxRequests: null },
  ])
  return found.get(id)?.status ?? null
}

const told = async () =>
  (await recordedEvents(made.deps.ledger, 'token.exhausted')).map(({ details }) => ({ token: details?.token_id }))

test('records once that a budget is used up when the rest cannot pay one input and one output token of the cheapest model', async () => {
  const { id, account } = await addToken({ max_budget: 0.01 })
  await settled(account, 10_000_000 - 2000, id)
  await news.used([account])
  expect([await status(id, 10_000_000), await told()]).toEqual([null, []])
  await made.deps.ledger.write([{ sql: 'update usage_accounts set settled = settled + 1', args: [] }])
  await news.used([account])
  await news.used([account])
  expect([await status(id, 10_000_000), await told()]).toEqual(['budget_exhausted', [{ token: id }]])
})

test('a budget that pays for no request is used up from the start', async () => {
  const { id, account } = await addToken({ max_budget: 0.000001999 })
  await news.used([account])
  expect([await status(id, 1999), await told()]).toEqual(['budget_exhausted', [{ token: id }]])
})

test('a budget that pays for no model of a provider with open model names is used up', async () => {
  const open =
    'insert into providers (id, name, kind, position, allow_unlisted_models, version) values (?, ?, ?, 2, 1, 9)'
  await made.deps.state.write([{ sql: open, args: ['q', 'q', 'openai'] }])
  const { id, account } = await addToken({ max_budget: 0.00000001 })
  await news.used([account])
  expect(await status(id, 10)).toBe('budget_exhausted')
})

test('only models that the token may use count, and a cheaper model makes a budget usable again', async () => {
  await addModel('dear', 1000)
  const { id, account } = await addToken({ max_budget: 0.0001, bindings: { model_filter: ['dear*'] } })
  await news.used([account])
  expect(await status(id, 100_000)).toBe('budget_exhausted')
  await addModel('another', 1)
  await news.offerChanged()
  expect(await status(id, 100_000)).toBe('budget_exhausted')
  await addModel('dearest-of-names', 1)
  await news.offerChanged()
  expect(await status(id, 100_000)).toBeNull()
})

test('uses the limit in the state before the ledger knows of its change', async () => {
  const { id, account } = await addToken({ max_requests: 10 })
  await settled(account, 4, id)
  await made.deps.state.write([{ sql: 'update accounts set max_requests = 4', args: [] }])
  await news.used([account])
  expect(await told()).toEqual([{ token: id }])
})

test('records at the next start the events that an earlier process could not record', async () => {
  const { id, account } = await addToken({ max_requests: 3 })
  await settled(account, 3, id)
  await news.recordUsedUpLimits()
  expect(await told()).toEqual([{ token: id }])
})

const newsTypes = ['token.exhausted', 'usage.claim_refused', 'usage.bound_exceeded', 'usage.lease_lost']
async function newsTold() {
  const events = await recordedEvents(made.deps.ledger)
  return events
    .filter(({ event_type }) => newsTypes.includes(event_type))
    .toSorted((one, other) => one.event_id.localeCompare(other.event_id))
    .map((event) => eventSchema.parse(event))
}

const granted = (account: string, amount: number) =>
  made.deps.ledger.write([
    { sql: 'insert into lease_balances (account, worker, granted) values (?, ?, ?)', args: [account, worker, amount] },
  ])
const claimed = (account: string, amount: number) =>
  made.deps.ledger.write(settlementStatements({ worker, settlements: [{ account, amount }], epoch: '[]' }))

test('records a used-up limit and a refused claim as events of the token', async () => {
  const { id, account } = await addToken({ max_requests: 2 })
  const whose = { user_id: 'u', event_team_id: 'team of u', key_class: 'disposable' }
  await made.deps.state.write([
    {
      sql: 'update tokens set user_id = ?, event_team_id = ?, key_class = ? where id = ?',
      args: [...Object.values(whose), id],
    },
  ])
  await granted(account, 2)
  await claimed(account, 3)
  await news.used([account])
  const events = await newsTold()
  const { event_attribution: attribution } = events[0] ?? {}
  expect(attribution).toMatchObject({ token_id: id, team_id: 'team of u', user_id: 'u', key_class: 'disposable' })
  expect(events).toMatchObject([
    { event_type: 'token.exhausted', request_id: null, details: { used: 2, allowed: 2 } },
    { event_type: 'usage.claim_refused', request_id: null, event_attribution: attribution, details: { amount: 1 } },
  ])
})

test('records the loss of a worker as an event of its gateway', async () => {
  await news.lost(worker, [{ account: 'token/t/requests', amount: 1 }])
  expect(await newsTold()).toMatchObject([
    { event_type: 'usage.lease_lost', request_id: null, event_attribution: { gateway_id: 'gateway' } },
  ])
})

test('finds charges above all grants, and a budget that they used up stays used up', async () => {
  const { id, account } = await addToken({ max_budget: 0.01 })
  await granted(account, 1)
  await claimed(account, 10_000_000)
  await news.recordUsedUpLimits()
  expect([await status(id, 10_000_000), await told()]).toEqual(['budget_exhausted', [{ token: id }]])
  await addModel('another', 1)
  await news.offerChanged()
  expect(await status(id, 10_000_000)).toBe('budget_exhausted')
})

const outcomeWith = (
  account: string,
  tokenId: string,
  { excess, amount }: { excess: number; amount: number },
  model = 'm',
): Event => ({
  ...{ event_id: made.deps.newId(), event_type: 'gateway.request.outcome', request_id: null, verdict: 'allow' },
  ...{ reason_code: 'ok', config_version: 1, timestamp: '2026-01-01T00:00:00.000Z' },
  event_attribution: { ...noAttribution, token_id: tokenId },
  details: { bound_exceeded: excessDetailsOf('p', model, excess) },
  settlements: [{ account, amount }],
})
const published = () => made.deps.state.read('select id, amount from excesses where deleted = 0 order by id')

test('publishes the worst excess of a provider and model to gateways once, with an event of the token', async () => {
  const { id, account } = await addToken({ max_budget: 10 })
  const shipped = async (...excesses: number[]) => {
    const events = excesses.map((excess) => outcomeWith(account, id, { excess, amount: 5000 }))
    await made.deps.ledger.write(excessStatements(events, 7))
  }
  await shipped(300, 2000, 500)
  // A control plane that was killed before it could publish is followed by another.
  await news.exceeded()
  await news.exceeded()
  await shipped(1999)
  await news.exceeded()
  expect(await published()).toEqual([{ id: 'p/m', amount: 2000 }])
  expect(await newsTold()).toMatchObject([
    { event_type: 'usage.bound_exceeded', event_attribution: { token_id: id }, details: { excess: 0.000002 } },
  ])
  // A reported excess never exceeds what is booked.
  await shipped(1_000_000)
  await news.exceeded()
  expect(await published()).toEqual([{ id: 'p/m', amount: 5000 }])
})

test('keeps excesses for at most a hundred models of a provider, and the worst of all others together', async () => {
  const { id, account } = await addToken({ max_budget: 10 })
  const events = Array.from({ length: 103 }, (_, index) =>
    outcomeWith(account, id, { excess: index + 1, amount: 5000 }, `model ${index}`),
  )
  await made.deps.ledger.write(excessStatements(events, 7))
  await news.exceeded()
  const rows = new Map((await published()).map((row) => [String(row.id), Number(row.amount)]))
  expect([rows.size, excessOf(rows, 'p', 'model 1'), excessOf(rows, 'p', 'unheard of')]).toEqual([101, 2, 103])
})
