/** Prices, limits and quarantine of MCP servers, as callers and records see them. */
import { afterEach, expect, test } from 'bun:test'
import { callLimitsOf } from '../../../mcp/call-limits.ts'
import { serverRateAccount, toolRateAccount } from '../../../store/limit-rows.ts'
import { type Budget, noLimits } from '../../../usage/limits.ts'
import { type RateDemand, RateRefused } from '../../../usage/rate/rates.ts'
import { InMemoryLimits } from '../../../usage/testing/in-memory-limits.ts'
import { eventsOf, startMcpGateway, type TestMcpServer, testMcpServer } from '../../testing/mcp.ts'
import { modernCaller } from '../../testing/modern-mcp.ts'

let stop: (() => Promise<void>) | null = null
afterEach(async () => {
  await stop?.()
  stop = null
})

const tool = (name: string) => ({ name, inputSchema: { type: 'object' } })
const cent = 10_000_000
const perTool = {
  buy: { price_per_call: 50 * cent, requests_per_minute: null },
  slow: { price_per_call: null, requests_per_minute: 3 },
}

async function start({ quarantined = false } = {}) {
  const shop = testMcpServer('shop', {
    'tools/list': () => ({ tools: ['buy', 'look', 'slow', 'fail'].map(tool) }),
    'tools/call': ({ params }) => {
      if (params.name === 'fail') throw new Error('No')
      return { content: [] }
    },
    'prompts/list': () => ({ prompts: [{ name: 'greet' }] }),
    'prompts/get': () => ({ messages: [] }),
    'resources/list': () => ({ resources: ['one', 'two', 'three'].map((name) => ({ name, uri: `shop:${name}` })) }),
    'resources/subscribe': () => ({}),
    'resources/unsubscribe': () => ({}),
  })
  const callLimits = callLimitsOf({
    ...{ id: shop.record.id, pricePerCall: cent, requestsPerMinute: 60 },
    toolLimits: JSON.stringify(perTool),
  })
  const governed: TestMcpServer = { ...shop, record: { ...shop.record, quarantined, callLimits } }
  const gateway = await startMcpGateway([governed, testMcpServer('free', { 'tools/list': () => ({ tools: [] }) })])
  stop = () => gateway.stop()
  return { gateway, shop }
}

const budget = (id: string, scopeId: string): Budget => ({
  ...{ id, name: id, maxBudget: 100 * cent, window: 'day', per: null },
  scope: { kind: 'mcp_server', id: scopeId },
})

async function startWithBudgets(balances: Record<string, number>) {
  const made = await start()
  const { gateway, shop } = made
  const [whole, buys] = [budget('whole', shop.record.id), budget('buys', `${shop.record.id}/buy`)]
  const usageLimits = new InMemoryLimits(balances)
  Object.assign(gateway.worker.view, {
    limits: {
      ...noLimits,
      budgets: new Map([whole, buys].map((each) => [each.id, each])),
      budgetsOf: new Map([
        [`mcp_server:${shop.record.id}`, [whole]],
        [`mcp_server:${shop.record.id}/buy`, [buys]],
      ]),
    },
  })
  Object.assign(gateway.worker, { usageLimits })
  return { ...made, usageLimits }
}

test('takes no price for a requestState that is of no call', async () => {
  const { gateway, shop, usageLimits } = await startWithBudgets({
    'budget/whole': 100 * cent,
    'budget/buys': 60 * cent,
  })
  const refused = await modernCaller(gateway).call('shop__buy', {}, { requestState: 'made up' })
  expect(refused).toMatchObject({ error: { code: -32_602 } })
  expect(Object.fromEntries(usageLimits.balances)).toEqual({ 'budget/whole': 100 * cent, 'budget/buys': 60 * cent })
  expect(shop.requests.some(({ method }) => method === 'tools/call')).toBe(false)
})

test('books the price of a call on the budgets of its server and its tool, and records what it cost', async () => {
  const { gateway, usageLimits } = await startWithBudgets({ 'budget/whole': 100 * cent, 'budget/buys': 60 * cent })
  const caller = await gateway.caller()
  expect(await caller.call('shop__buy')).toHaveProperty('result')
  expect(Object.fromEntries(usageLimits.balances)).toEqual({ 'budget/whole': 50 * cent, 'budget/buys': 10 * cent })
  // A call that was sent costs its price whatever the server answers; what calls no tool is free.
  expect(await caller.call('shop__fail')).toHaveProperty('error')
  expect(await caller.ask('prompts/get', { name: 'shop__greet' })).toHaveProperty('result')
  expect(Object.fromEntries(usageLimits.balances)).toEqual({ 'budget/whole': 49 * cent, 'budget/buys': 10 * cent })
  const costs = gateway.worker.journal
    .outcomes()
    .flatMap(({ event_cost_attribution: cost, details }) =>
      cost === undefined ? [] : [[details?.tool, cost?.cost, cost?.provider, cost?.price_source]],
    )
  expect(costs).toEqual([
    ['shop__buy', 0.5, 'shop', 'catalog'],
    ['shop__fail', 0.01, 'shop', 'catalog'],
  ])
  // Recovery charges a call that may have been sent.
  const [interrupted] = [...gateway.worker.journal.opened.values()]
  expect(interrupted).toMatchObject({
    event_cost_attribution: { cost: 0.5 },
    settlements: [
      { account: 'budget/whole', amount: 50 * cent },
      { account: 'budget/buys', amount: 50 * cent },
    ],
  })
})

test('refuses a call that a budget of its tool cannot pay, does not send it and takes nothing', async () => {
  const { gateway, shop, usageLimits } = await startWithBudgets({ 'budget/whole': 100 * cent, 'budget/buys': cent })
  const caller = await gateway.caller()
  const refused = await caller.call('shop__buy')
  expect(refused).toMatchObject({
    error: { data: { code: 'usage_authorization_budget_exceeded', status: 402 } },
  })
  expect(JSON.stringify(refused)).toContain(
    'The budget \\"buys\\" of the MCP server or the tool cannot pay for this request: $0.99 of $1 is used, and it resets at ',
  )
  expect(JSON.stringify(refused)).toContain('; a call costs $0.5. ')
  expect(usageLimits.balances.get('budget/whole')).toBe(100 * cent)
  expect(shop.requests.map(({ method }) => method)).not.toContain('tools/call')
  expect(await caller.call('shop__look')).toHaveProperty('result')
})

test('refuses every request to a server whose budget is used up, free ones too', async () => {
  const { gateway, usageLimits } = await startWithBudgets({ 'budget/whole': 0 })
  const caller = await gateway.caller()
  expect(await caller.ask('prompts/get', { name: 'shop__greet' })).toMatchObject({
    error: { data: { code: 'usage_authorization_budget_exceeded' } },
  })
  expect(usageLimits.reserved).toBe(0)
})

test('takes a slot of the limit of the server for each request, and of the tool for its calls', async () => {
  const { gateway, shop } = await start()
  const taken: (readonly RateDemand[])[] = []
  const ticket = { uses: () => [], correct: () => [], release() {} }
  const rates = {
    take(demands: readonly RateDemand[]) {
      taken.push(demands)
      return ticket
    },
  }
  Object.assign(gateway.worker, { rates })
  const caller = await gateway.caller()
  for (const name of ['slow', 'look']) expect(await caller.call(`shop__${name}`)).toHaveProperty('result')
  await caller.ask('prompts/get', { name: 'shop__greet' })
  const { id } = shop.record
  const ofServer = { account: serverRateAccount(id), slots: 1, least: 1, limit: 60 }
  const ofTool = { account: toolRateAccount(id, 'slow'), slots: 1, least: 1, limit: 3 }
  expect(taken).toEqual([[ofServer, ofTool], [ofServer], [ofServer]])
  const used = new RateRefused(ofTool.account, { reason: 'used', retryAfter: 7, absent: 0 })
  Object.assign(gateway.worker, { rates: { take: () => Promise.reject(used) } })
  expect(await caller.call('shop__slow')).toMatchObject({
    error: {
      message: expect.stringContaining('The MCP server or the tool has had its calls of this minute'),
      data: { code: 'mcp.rate_limited', status: 429, retry_after: 7 },
    },
  })
})

test('counts a stream of changes for its token, and each resource that is watched for the server', async () => {
  const { gateway, shop } = await start()
  const server = serverRateAccount(shop.record.id)
  let left = 2
  const counted = { corrected: 0, released: 0 }
  const ticket = {
    uses: () => [],
    correct() {
      counted.corrected += 1
      return []
    },
    release() {
      counted.released += 1
    },
  }
  const rates = {
    take([demand]: readonly RateDemand[]) {
      if (demand?.account !== server) return ticket
      left -= 1
      if (left < 0) throw new RateRefused(server, { reason: 'used', retryAfter: 7, absent: 0 })
      return ticket
    },
  }
  Object.assign(gateway.worker, { rates })
  const leaving = new AbortController()
  const secret = gateway.worker.addToken({
    accounts: [{ id: 't', maxRequests: null, maxBudget: null, rateLimitRpm: 9, rateLimitTpm: null }],
  })
  const resourceSubscriptions = ['one', 'two', 'three'].map((name) => `mcp://shop/shop:${name}`)
  const params = { notifications: { resourceSubscriptions } }
  const stream = eventsOf(
    await modernCaller(gateway, { secret }).post('subscriptions/listen', params, {}, leaving.signal),
  )
  expect(await stream.next()).toMatchObject({
    params: { notifications: { resourceSubscriptions: resourceSubscriptions.slice(0, 2) } },
  })
  expect(shop.requests.filter(({ method }) => method === 'resources/subscribe')).toHaveLength(2)
  // Two of the server and one of the token; nothing is given back.
  expect(counted).toEqual({ corrected: 3, released: 0 })
  leaving.abort()
})

test('refuses all calls to a server under quarantine, lists nothing of it and does not connect to it', async () => {
  const { gateway, shop } = await start({ quarantined: true })
  const caller = await gateway.caller()
  expect(await caller.ask('tools/list')).toMatchObject({ result: { tools: [] } })
  for (const [method, params] of [
    ['tools/call', { name: 'shop__look', arguments: {} }],
    ['prompts/get', { name: 'shop__greet' }],
  ] as const) {
    expect(await caller.ask(method, params)).toMatchObject({
      error: { message: expect.stringContaining('under quarantine'), data: { code: 'mcp.server_quarantined' } },
    })
  }
  expect(shop.requests).toEqual([])
  const refusals = gateway.worker.journal.outcomes().filter(({ verdict }) => verdict === 'deny')
  expect(refusals.map(({ reason_code, details }) => [reason_code, details?.server])).toEqual([
    ['mcp.server_quarantined', 'shop'],
    ['mcp.server_quarantined', 'shop'],
  ])
})
