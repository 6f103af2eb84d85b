/**
 * Shows what each strategy does with a model that has five targets: `plain`, `slow`, `failing` (half of its calls are
 * 500), `limited` (429 above a rate, with OpenAI's rate-limit headers) and `dear` (ten times the price). Prints for each
 * strategy the share of each target, errors that callers saw, p50 and p95 of the whole request, and the cost; then the
 * share of prompt-cache hits with and without session ids, and what a choice costs in microseconds. Everything runs in
 * this process: `bun test/load/targets/target-strategies.ts`.
 */
import { parseArgs } from 'node:util'
import { z } from 'zod'
import type { CatalogModel } from '../../../src/fleet/protocol/worker.ts'
import { resolveModel } from '../../../src/gateway/admission/model-routing.ts'
import { beginExchange } from '../../../src/gateway/exchange.ts'
import { completion, question, startTestGateway } from '../../../src/gateway/testing/gateway.ts'
import { testMemory, testModel, testProvider, testTargets } from '../../../src/gateway/testing/worker.ts'
import { chat } from '../../../src/languages/chat/dialect.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { newId } from '../../../src/lib/ids.ts'
import { type TargetStrategy, targetStrategies } from '../../../src/providers/catalog/target-strategy.ts'
import { PriceBook } from '../../../src/providers/prices/price-book.ts'
import { compilePriceText } from '../../../src/providers/prices/price-record.ts'

const { values } = parseArgs({ options: { requests: { type: 'string', default: '1500' } } })
const requests = Number(values.requests)
const concurrency = 8
const names = ['plain', 'slow', 'failing', 'limited', 'dear'] as const
type Name = (typeof names)[number]

/** Dollars for a million tokens in and out. */
const prices: Record<Name, number> = { plain: 2, slow: 2, failing: 2, limited: 1, dear: 20 }
const usageTokens = completion.usage.total_tokens
/** The limited provider takes this many requests in a window of this many milliseconds. */
const limit = 20
const windowMilliseconds = 1000

const conversationSchema = z.object({ messages: z.array(z.object({ content: z.string() })) })

interface Fleet {
  calls: Record<Name, number>
  answered: Record<Name, number>
}

async function startFleet(strategy: TargetStrategy, cache: Map<string, number> | null = null) {
  const fleet: Fleet = { calls: counts(), answered: counts() }
  let window = { at: 0, used: 0 }
  const hits = { hit: 0, all: 0 }
  const answer = async (name: Name, request: Request): Promise<Response> => {
    fleet.calls[name] += 1
    const headers: Record<string, string> = {}
    if (cache === null) {
      await Bun.sleep(name === 'slow' ? 80 : 5)
      if (name === 'failing' && fleet.calls.failing % 2 === 0) return new Response('{}', { status: 500 })
      if (name === 'limited') {
        if (Date.now() - window.at > windowMilliseconds) window = { at: Date.now(), used: 0 }
        window.used += 1
        const reset = `${windowMilliseconds - (Date.now() - window.at)}ms`
        if (window.used > limit) {
          return Response.json({ error: { message: 'limit' } }, { status: 429, headers: { 'retry-after-ms': reset } })
        }
        headers['x-ratelimit-limit-requests'] = String(limit)
        headers['x-ratelimit-remaining-requests'] = String(limit - window.used)
        headers['x-ratelimit-reset-requests'] = reset
      }
    } else {
      // A provider has a conversation in its cache up to the last turn that it answered.
      const { messages } = conversationSchema.parse(await request.json())
      const cached = `${name} ${messages[0]?.content}`
      if (messages.length > 1) {
        hits.all += 1
        if (cache.get(cached) === messages.length - 1) hits.hit += 1
      }
      cache.set(cached, messages.length)
    }
    fleet.answered[name] += 1
    return Response.json(completion, { headers })
  }
  const isName = (text: string | undefined): text is Name => names.some((name) => name === text)
  const gateway = await startTestGateway((request) => {
    const name = new URL(request.url).pathname.split('/')[1]
    return isName(name) ? answer(name, request) : new Response(null, { status: 404 })
  })
  const base = gateway.worker.upstreams.splice(0)[0]?.baseUrl ?? ''
  for (const name of names) {
    gateway.worker.upstreams.push(
      testProvider({ id: name, name, baseUrl: `${base}/${name}`, allowUnlistedModels: false }),
    )
  }
  gateway.worker.catalog.push(fleetModel(strategy))
  return { gateway, fleet, hits }
}

function fleetModel(strategy: TargetStrategy): CatalogModel {
  const targets: CatalogModel[] = []
  for (const name of names) {
    const price = compilePriceText(
      JSON.stringify({ input_per_million: prices[name], output_per_million: prices[name] }),
      'operator',
    )
    const weight = name === 'plain' ? 4 : 1
    targets.push(testModel({ id: 'shared', providerId: name, strategy, price, weight, targets }))
  }
  const [first] = targets
  if (first === undefined) throw new Error('No target')
  return first
}

const counts = (): Record<Name, number> => ({ plain: 0, slow: 0, failing: 0, limited: 0, dear: 0 })

async function measure(strategy: TargetStrategy): Promise<string[]> {
  const { gateway, fleet } = await startFleet(strategy)
  const took: number[] = []
  let errors = 0
  let left = requests
  const worker = async () => {
    while (left-- > 0) {
      const started = performance.now()
      const answer = await gateway.chat({ ...question, model: 'shared' })
      await answer.text()
      if (!answer.ok) errors += 1
      took.push(performance.now() - started)
    }
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
  await gateway.stop()
  took.sort((one, other) => one - other)
  const at = (share: number) => (took[Math.ceil(took.length * share) - 1] ?? 0).toFixed(1)
  const cost = names.reduce((sum, name) => sum + (fleet.answered[name] * usageTokens * prices[name]) / 1_000_000, 0)
  const failed = names.reduce((sum, name) => sum + fleet.calls[name] - fleet.answered[name], 0)
  return [
    strategy,
    ...names.map((name) => `${((100 * fleet.answered[name]) / requests).toFixed(1)} %`),
    at(0.5),
    at(0.95),
    cost.toFixed(4),
    String(failed),
    String(errors),
  ]
}

/** The share of requests that continue a conversation at the provider that has all earlier turns in its cache. */
async function cacheHits(withSession: boolean): Promise<number> {
  const { gateway, hits } = await startFleet('least_busy', new Map())
  const conversations = Array.from({ length: 100 }, (_, index) => `conversation ${index}`)
  for (let turn = 0; turn < 12; turn++) {
    await Promise.all(
      conversations.map(async (content) => {
        const messages = Array.from({ length: turn + 1 }, () => ({ role: 'user', content }))
        const headers: Record<string, string> = withSession ? { 'x-session-id': content } : {}
        await (await gateway.chat({ model: 'shared', messages }, { headers })).text()
      }),
    )
  }
  await gateway.stop()
  return hits.hit / hits.all
}

/** Microseconds of processor time to resolve a model of one target, and of five with a session and without. */
async function choiceCost(strategy: TargetStrategy | null, sessionId: string | null): Promise<number> {
  const { gateway } = await startFleet(strategy ?? 'priority')
  const { worker, secret } = gateway
  worker.catalog.push(testModel({ id: 'alone', providerId: 'plain' }))
  const targets = testTargets()
  const prices = new PriceBook()
  const exchange = beginExchange(
    {
      request: new Request('http://localhost/'),
      connection: null,
      requestId: 'r',
      route: 'POST /v1/chat/completions',
      family: 'chat',
      dialect: chat,
    },
    { clock: systemClock, newId, memory: testMemory() },
  )
  exchange.facts = chat.read({ model: strategy === null ? 'alone' : 'shared', messages: [] })
  exchange.token = worker.tokens.get(new Bun.CryptoHasher('sha256').update(secret).digest('hex')) ?? null
  exchange.sessionId = sessionId
  const once = () => resolveModel(exchange, { worker, prices, clock: systemClock, targets })
  const count = 100_000
  for (let index = 0; index < count; index++) once()
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < 5; round++) {
    const before = process.cpuUsage()
    for (let index = 0; index < count; index++) once()
    best = Math.min(best, process.cpuUsage(before).user / count)
  }
  await gateway.stop()
  return best
}

const rows = [['strategy', ...names, 'p50 ms', 'p95 ms', 'cost $', 'failed calls', 'errors seen']]
for (const strategy of targetStrategies) rows.push(await measure(strategy))
const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
for (const row of rows) console.log(row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '))
const percent = (share: number) => `${(100 * share).toFixed(1)} %`
console.log(
  `\nprompt cache hits with session ids ${percent(await cacheHits(true))}, without ${percent(await cacheHits(false))}`,
)
console.log(`resolve a model, one target: ${(await choiceCost(null, null)).toFixed(2)} µs`)
for (const strategy of targetStrategies) {
  const [free, session] = [await choiceCost(strategy, null), await choiceCost(strategy, 'session-0123456789')]
  console.log(
    `resolve a model, five targets, ${strategy}: ${free.toFixed(2)} µs; with a session ${session.toFixed(2)} µs`,
  )
}
