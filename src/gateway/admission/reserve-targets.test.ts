/** What a request with several targets reserves: enough for each target that may answer. */
import { afterEach, expect, test } from 'bun:test'
import type { CatalogModel } from '../../fleet/protocol/worker.ts'
import type { Price } from '../../providers/prices/price.ts'
import { compilePrice } from '../../providers/prices/price-record.ts'
import { InMemoryLimits } from '../../usage/testing/in-memory-limits.ts'
import { completion, startTestGateway, type TestGateway } from '../testing/gateway.ts'
import { testModel, testProvider } from '../testing/worker.ts'

let running: TestGateway
afterEach(() => running.stop())

const question = { model: 'shared', messages: [{ role: 'user', content: 'Good morning' }] }
const inputTokens = JSON.stringify(question).length + 64 + 16
const priceOf = (dollars: number) =>
  compilePrice({ input_per_million: dollars, output_per_million: dollars }, 'operator')

/** Targets `t1`, `t2` … at these prices, which answer alike; `called` are the names of those called. */
async function start(prices: readonly (Price | null)[], money: number) {
  const called: string[] = []
  running = await startTestGateway((request) => {
    called.push(new URL(request.url).pathname.split('/')[1] ?? '')
    return Response.json(completion)
  })
  const base = running.worker.upstreams.splice(0)[0]?.baseUrl ?? ''
  const targets: CatalogModel[] = []
  for (const [index, price] of prices.entries()) {
    const name = `t${index + 1}`
    running.worker.upstreams.push(testProvider({ id: name, name, baseUrl: `${base}/${name}` }))
    targets.push(testModel({ id: 'shared', providerId: name, price, targets, maxOutputTokens: 50 }))
  }
  const [first] = targets
  if (first !== undefined) running.worker.catalog.push(first)
  const usageLimits = new InMemoryLimits({ 'token/t/money': money, 'token/t/requests': 5 })
  Object.assign(running.worker, { usageLimits })
  const accounts = [{ id: 't', maxRequests: 5, maxBudget: 10_000_000_000, rateLimitRpm: null, rateLimitTpm: null }]
  const secret = running.worker.addToken({ accounts })
  return { called, usageLimits, ask: () => running.chat(question, { secret }) }
}

test('skips a target whose price is unknown for a token with a budget', async () => {
  const { ask, called } = await start([null, priceOf(1)], 10_000_000_000)
  expect((await ask()).status).toBe(200)
  expect(called).toEqual(['t2'])
})

test('refuses a budgeted token when no target has a price', async () => {
  const { ask, called } = await start([null, null], 10_000_000_000)
  const answer = await ask()
  expect(answer.status).toBe(403)
  expect(await answer.text()).toContain('tokens.model_unpriced')
  expect(called).toEqual([])
})

test('skips a target that the budget cannot pay, and books the price of the one that answered', async () => {
  const money = (inputTokens + 60) * 1000
  const { ask, called, usageLimits } = await start([priceOf(100), priceOf(1)], money)
  expect((await ask()).status).toBe(200)
  expect(called).toEqual(['t2'])
  expect(usageLimits.balances.get('token/t/money')).toBe(money - 18 * 1000)
})
