/** What a call in several rounds takes from limits, and how far a reviewer's grant for it goes. */
import { afterEach, expect, test } from 'bun:test'
import { callLimitsOf } from '../../../mcp/call-limits.ts'
import type { Json } from '../../../mcp/connection.ts'
import { modernVersion } from '../../../mcp/protocol.ts'
import { gatewayServers, storedServer } from '../../../mcp/testing/servers.ts'
import { compilePolicySet } from '../../../policies/chain.ts'
import { type Budget, noLimits } from '../../../usage/limits.ts'
import type { RateDemand } from '../../../usage/rate/rates.ts'
import { InMemoryLimits } from '../../../usage/testing/in-memory-limits.ts'
import { startTestGateway, type TestGateway } from '../../testing/gateway.ts'
import { startMcpGateway, testMcpServer } from '../../testing/mcp.ts'
import { modernCaller } from '../../testing/modern-mcp.ts'
import { testPolicy } from '../../testing/worker.ts'

const stops: (() => unknown)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop()
})

const requestedSchema = { type: 'object', properties: { city: { type: 'string' } } }
const question = { method: 'elicitation/create', params: { mode: 'form', message: 'Which city?', requestedSchema } }
const accept = { action: 'accept', content: { city: 'Turin' } }
const tools = { tools: [{ name: 'ask', inputSchema: { type: 'object' } }] }
const cent = 10_000_000

/** The request that goes on with a call, with an answer to what was asked. */
function nextOf({ result }: Json, answer: Json = accept): Json {
  const { resultType, inputRequests, requestState } = result as { [member: string]: Json }
  expect(resultType as unknown).toBe('input_required')
  const [key = ''] = Object.keys(inputRequests ?? {})
  return { ...(requestState !== undefined && { requestState }), inputResponses: { [key]: answer } }
}

/** Before a server with sessions, which asks twice in each call. */
async function startPriced() {
  const shop = testMcpServer('shop', {
    'tools/list': () => tools,
    async 'tools/call'({ ask }) {
      const first = await ask('elicitation/create', question.params)
      await ask('elicitation/create', question.params)
      return { content: [{ type: 'text', text: JSON.stringify(first.content) }] }
    },
  })
  const callLimits = callLimitsOf({
    ...{ id: shop.record.id, pricePerCall: cent, requestsPerMinute: 60, toolLimits: null },
  })
  const gateway = await startMcpGateway([{ ...shop, record: { ...shop.record, callLimits } }])
  stops.push(() => gateway.stop())
  const day: Budget = {
    ...{ id: 'day', name: 'day', maxBudget: 100 * cent, window: 'day', per: null },
    scope: { kind: 'mcp_server', id: shop.record.id },
  }
  const usageLimits = new InMemoryLimits({ 'budget/day': 10 * cent, 'token/own/requests': 5 })
  const taken: string[] = []
  const ticket = { uses: () => [], correct: () => [], release() {} }
  const take = (demands: readonly RateDemand[]) => {
    taken.push(...demands.map(({ account }) => account))
    return ticket
  }
  const limits = {
    ...noLimits,
    budgets: new Map([['day', day]]),
    budgetsOf: new Map([[`mcp_server:${shop.record.id}`, [day]]]),
  }
  Object.assign(gateway.worker.view, { limits })
  Object.assign(gateway.worker, { usageLimits, rates: { take } })
  const secret = gateway.worker.addToken({
    accounts: [{ id: 'own', maxRequests: 5, maxBudget: null, rateLimitRpm: 9, rateLimitTpm: null }],
  })
  return { gateway, shop, usageLimits, taken, caller: modernCaller(gateway, { secret }) }
}

test('prices and counts a call at a server with sessions once, in however many rounds it is answered', async () => {
  const { gateway, shop, usageLimits, taken, caller } = await startPriced()
  const first = await caller.call('shop__ask')
  const rates = [...taken]
  expect(rates).toHaveLength(2)
  const second = await caller.call('shop__ask', {}, nextOf(first))
  expect(await caller.call('shop__ask', {}, nextOf(second))).toMatchObject({
    result: { resultType: 'complete', content: [{ text: '{"city":"Turin"}' }] },
  })
  expect(shop.requests.filter(({ method }) => method === 'tools/call')).toHaveLength(1)
  expect(Object.fromEntries(usageLimits.balances)).toEqual({ 'budget/day': 9 * cent, 'token/own/requests': 4 })
  expect(taken).toEqual(rates)
  // What the server asks the caller is recorded by itself.
  const calls = gateway.worker.journal.outcomes().filter(({ details }) => details?.method === 'tools/call')
  expect(calls.map(({ event_cost_attribution: cost }) => cost?.cost ?? null)).toEqual([0.01, null, null])
  // Recovery charges the round that sent the call, and no other.
  expect([...gateway.worker.journal.opened.values()].map(({ settlements = [] }) => settlements.length)).toEqual([
    2, 0, 0,
  ])
})

test('refuses a round of a call that no longer waits before it takes anything, as the caller’s mistake', async () => {
  const { gateway, usageLimits, taken, caller } = await startPriced()
  const first = await caller.call('shop__ask')
  const [second] = await Promise.all([
    caller.call('shop__ask', {}, nextOf(first)),
    caller.call('shop__ask', {}, nextOf(first)),
  ])
  await caller.call('shop__ask', {}, nextOf(second))
  const before = [Object.fromEntries(usageLimits.balances), taken.length]
  for (const requestState of ['made up', (nextOf(second) as { requestState: string }).requestState]) {
    expect(await caller.call('shop__ask', {}, { requestState })).toMatchObject({
      error: { code: -32_602, data: { code: 'invalid_parameter', param: 'requestState' } },
    })
    const refused = { verdict: 'deny', reason_code: 'invalid_parameter', details: { attempts: 0 } }
    expect(gateway.worker.journal.refused.at(-1)).toMatchObject(refused)
  }
  expect([Object.fromEntries(usageLimits.balances), taken.length]).toEqual(before)
})

/** Before a server of 2026-07-28 that asks in each of two rounds, under a policy by which a person decides each call. */
async function startEscalating() {
  const calls: Json[] = []
  const server = Bun.serve({
    port: 0,
    async fetch(request) {
      const { id, method, params } = (await request.json()) as { id: number; method: string; params: Json }
      const rounds = Number(params.requestState ?? 0)
      const results: Record<string, () => Json> = {
        'server/discover': () => ({ supportedVersions: [modernVersion], capabilities: { tools: {} } }),
        'tools/list': () => tools,
        'tools/call'() {
          calls.push(params)
          return rounds < 2
            ? { resultType: 'input_required', inputRequests: { city: question }, requestState: `${rounds + 1}` }
            : { resultType: 'complete', content: [{ type: 'text', text: 'done' }] }
        },
      }
      return Response.json({ jsonrpc: '2.0', id, result: results[method]?.() ?? {} })
    },
  })
  const { servers } = gatewayServers([storedServer({ name: 'newer', url: `http://localhost:${server.port}/mcp` })])
  const gateway = await startTestGateway(() => Response.json({}), {}, undefined, servers)
  stops.push(
    () => server.stop(true),
    () => gateway.stop(),
  )
  return { gateway, calls }
}

function escalateCalls(gateway: TestGateway): InMemoryLimits {
  const policy = testPolicy({
    ...{ id: 'ask', kind: 'escalate', stages: ['pre_request'] },
    when: 'has(request.tool.arguments.env) && request.tool.arguments.env == "prod"',
    config: { reason_code: 'ops.deploy' },
  })
  gateway.worker.policies = compilePolicySet([policy])
  const usageLimits = new InMemoryLimits(
    Object.fromEntries(['leave', 'leave.2', 'leave.3', 'leave.4', 'other'].map((id) => [`grant/${id}`, 1])),
  )
  Object.assign(gateway.worker, { usageLimits })
  return usageLimits
}

/** What a reviewer does who lets the last request that waits through, once. */
function grantLast({ worker }: TestGateway, id = 'leave'): void {
  const decision = worker.journal.refused.findLast(({ event_type }) => event_type === 'decision')
  const { digest } = (decision?.details?.escalation ?? {}) as { digest: string }
  const tokenId = decision?.event_attribution.token_id ?? ''
  worker.grants.push({ id, tokenId, digest, expiresAt: Date.now() + 60_000 })
}

const waits = { result: { isError: true, verdictan: { verdict: 'ESCALATE' } } }
const done = { result: { resultType: 'complete', content: [{ text: 'done' }] } }

test('a grant covers all rounds of its call, each once, and no other call', async () => {
  const { gateway, calls } = await startEscalating()
  escalateCalls(gateway)
  const caller = modernCaller(gateway)
  const args = { env: 'prod' }
  expect(await caller.call('newer__ask', args)).toMatchObject(waits)
  grantLast(gateway)
  const first = await caller.call('newer__ask', args)
  expect(await caller.call('newer__ask', { env: 'prod', more: 1 }, nextOf(first))).toMatchObject(waits)
  const second = await caller.call('newer__ask', args, nextOf(first))
  expect(await caller.call('newer__ask', args, nextOf(second))).toMatchObject(done)
  expect(calls).toHaveLength(3)
  // Neither a round nor the call goes through a second time.
  expect(await caller.call('newer__ask', args, nextOf(first))).toMatchObject(waits)
  expect(await caller.call('newer__ask', args, nextOf(second))).toMatchObject(waits)
  expect(await caller.call('newer__ask', args)).toMatchObject(waits)
  expect(calls).toHaveLength(3)
})

test('a second grant for the same call lets it pass once more, although the first is used up and still valid', async () => {
  const { gateway, calls } = await startEscalating()
  escalateCalls(gateway)
  const caller = modernCaller(gateway)
  const args = { env: 'prod' }
  for (const id of ['leave', 'other']) {
    expect(await caller.call('newer__ask', args)).toMatchObject(waits)
    grantLast(gateway, id)
    expect(await caller.call('newer__ask', args)).toMatchObject({ result: { resultType: 'input_required' } })
  }
  expect(calls).toHaveLength(2)
})

test('a grant covers the answers to a call that waits at a server with sessions', async () => {
  const { gateway, shop } = await startPriced()
  escalateCalls(gateway)
  const caller = modernCaller(gateway)
  const args = { env: 'prod' }
  expect(await caller.call('shop__ask', args)).toMatchObject(waits)
  grantLast(gateway)
  const second = await caller.call('shop__ask', args, nextOf(await caller.call('shop__ask', args)))
  expect(await caller.call('shop__ask', args, nextOf(second))).toMatchObject({ result: { resultType: 'complete' } })
  expect(shop.requests.filter(({ method }) => method === 'tools/call')).toHaveLength(1)
  expect(await caller.call('shop__ask', args)).toMatchObject(waits)
})
