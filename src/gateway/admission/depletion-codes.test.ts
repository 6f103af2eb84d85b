/** A disposable token that is used up is refused by every route, however long ago its gateway heard of it. */
import { afterEach, expect, test } from 'bun:test'
import { InMemoryLimits } from '../../usage/testing/in-memory-limits.ts'
import {
  type McpCallerOptions,
  openCaller,
  startMcpGateway,
  type TestMcpServer,
  testMcpServer,
} from '../testing/mcp.ts'

let stop: () => Promise<void> = async () => undefined
afterEach(() => stop())

/** A worker that remembers no refusal. */
class Forgetful extends InMemoryLimits {
  override exhausted(): boolean {
    return false
  }
}

const server = (): TestMcpServer =>
  testMcpServer('files', {
    'tools/list': () => ({ tools: [{ name: 'read', inputSchema: { type: 'object' } }] }),
    'tools/call': () => ({ content: [] }),
  })

async function start(keyClass: 'disposable' | 'durable' = 'disposable') {
  const gateway = await startMcpGateway([server()])
  stop = () => gateway.stop()
  const usageLimits = new Forgetful({ 'token/d/requests': 5, 'token/d/money': 5 })
  Object.assign(gateway.worker, { usageLimits })
  const accounts = [{ id: 'd', maxBudget: 5, maxRequests: 5, rateLimitRpm: null, rateLimitTpm: null }]
  const secret = gateway.worker.addToken({ keyClass, accounts })
  const caller = await openCaller(gateway, { secret } satisfies McpCallerOptions)
  const models = () => fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${secret}` } })
  return { usageLimits, caller, models }
}
const refused = (code: string) => ({ error: { data: { code } } })

test('refuses lists, sessions and calls of tools and models with the code of the used-up limit', async () => {
  const { usageLimits, caller, models } = await start()
  expect(await caller.ask('tools/list')).toMatchObject({ result: { tools: [{}] } })
  expect(await caller.call('files__read')).toMatchObject({ result: {} })
  expect([usageLimits.balances.get('token/d/requests'), usageLimits.balances.get('token/d/money')]).toEqual([4, 5])
  usageLimits.balances.set('token/d/requests', 0)
  for (const method of ['tools/list', 'initialize', 'logging/setLevel']) {
    expect(await caller.ask(method)).toMatchObject(refused('tokens.request_limit_exhausted'))
  }
  expect((await models()).status).toBe(403)
  usageLimits.balances.set('token/d/requests', 4).set('token/d/money', 0)
  expect(await caller.ask('tools/list')).toMatchObject(refused('tokens.budget_exhausted'))
  expect(await caller.call('files__read')).toMatchObject(refused('tokens.budget_exhausted'))
  expect((await models()).status).toBe(402)
})

test('does not treat amounts reserved by running requests as used up, and lets a reusable token still list', async () => {
  const { usageLimits, caller } = await start()
  usageLimits.balances.set('token/d/requests', 0)
  usageLimits.refuseWith = 'held'
  expect(await caller.ask('tools/list')).toMatchObject({ result: { tools: [{}] } })
  usageLimits.refuseWith = 'unknown'
  expect(await caller.ask('tools/list')).toMatchObject(refused('usage_authority_unavailable'))
  await stop()
  const durable = await start('durable')
  durable.usageLimits.balances.set('token/d/requests', 0)
  expect(await durable.caller.ask('tools/list')).toMatchObject({ result: { tools: [{}] } })
})
