/** A request whose bytes the budget does not pay for as tokens, but whose tokens it may. */
import { afterEach, expect, test } from 'bun:test'
import { z } from 'zod'
import { silentLog } from '../../lib/log/log.ts'
import { noMcpServers } from '../../mcp/no-servers.ts'
import { compilePrice } from '../../providers/prices/price-record.ts'
import { noTracer } from '../../telemetry/tracer.ts'
import { noLimits } from '../../usage/limits.ts'
import { InMemoryLimits } from '../../usage/testing/in-memory-limits.ts'
import type { UsageRefused } from '../../usage/usage-limits.ts'
import { completion, startTestGateway, type TestGateway } from '../testing/gateway.ts'
import { testModel } from '../testing/worker.ts'

/** Two dollars a million tokens in, four out: 2000 and 4000 nano-dollars a token. */
const price = compilePrice({ input_per_million: 2, output_per_million: 4 }, 'operator')
const counted = testModel({ id: 'gpt-test', upstreamModel: 'gpt-4o', price, maxOutputTokens: 50 })
const question = {
  model: 'gpt-test',
  max_tokens: 10,
  messages: [{ role: 'user', content: 'Good morning. '.repeat(100) }],
}
const allowance = 64 + 16
const byBytes = (JSON.stringify(question).length + allowance) * 2000
const byTokens = (300 + allowance) * 2000

const errorSchema = z.object({ error: z.object({ code: z.string(), message: z.string() }) })
const messageOf = async (refused: Response) => errorSchema.parse(await refused.json()).error.message

let running: TestGateway
afterEach(() => running.stop())

/** A gateway whose tokenizer gives every body 300 tokens, or fails. */
async function start(
  money: number,
  {
    model = counted,
    tokens = 300 as number | null | Error,
    reason = 'short' as UsageRefused['reason'],
    usage = completion.usage as object,
    whileCounting = () => undefined,
  } = {},
) {
  const counts: string[] = []
  const tokenCounter = {
    count: async (encoding: string) => {
      counts.push(encoding)
      whileCounting()
      if (tokens instanceof Error) throw tokens
      return tokens
    },
  }
  const settings = { drain_seconds: 0 }
  const answer = () => Response.json({ ...completion, usage })
  running = await startTestGateway(answer, settings, noTracer, noMcpServers, silentLog, tokenCounter)
  const usageLimits = new InMemoryLimits({ 'token/t/money': money })
  usageLimits.refuseWith = reason
  Object.assign(running.worker, { usageLimits })
  running.worker.catalog.push(model)
  const accounts = [{ id: 't', maxRequests: null, maxBudget: 10_000_000_000, rateLimitRpm: null, rateLimitTpm: null }]
  const secret = running.worker.addToken({ accounts })
  return { counts, usageLimits, ask: (body: unknown = question) => running.chat(body, { secret }) }
}

test('counts no tokens when the budget pays for one token a byte', async () => {
  const { counts, ask } = await start(byBytes + 10 * 4000)
  expect((await ask()).status).toBe(200)
  expect(counts).toEqual([])
})

test('counts no tokens when only the output limit is lowered', async () => {
  const { counts, ask } = await start(byBytes + 3 * 4000)
  expect((await ask()).headers.get('x-service-max-output-tokens')).toBe('3')
  expect(counts).toEqual([])
})

test('serves a request whose counted tokens the budget pays for and lowers its output', async () => {
  const { counts, usageLimits, ask } = await start(byTokens + 7 * 4000)
  const answer = await ask()
  expect([answer.status, answer.headers.get('x-service-max-output-tokens')]).toEqual([200, '7'])
  expect(counts).toEqual(['o200k_base'])
  expect(usageLimits.balances.get('token/t/money')).toBe(byTokens + 7 * 4000 - (11 * 2000 + 7 * 4000))
})

test('serves it also when another limit is reserved at the control plane', async () => {
  const { usageLimits, ask } = await start(byTokens + 7 * 4000)
  usageLimits.delay = 5
  expect((await ask()).status).toBe(200)
})

test('refuses a request whose counted tokens the budget does not pay for and names the figures', async () => {
  const { counts, usageLimits, ask } = await start(byTokens + 3999)
  const refused = await ask()
  const { error } = errorSchema.parse(await refused.json())
  expect([refused.status, error.code]).toEqual([402, 'usage_authorization_budget_exceeded'])
  expect(error.message).toContain("with 380 tokens of input, as the model's tokenizer counts them, with a margin")
  expect([counts.length, running.seen.length, usageLimits.reserved]).toEqual([1, 0, 0])
})

test('counts no tokens when the budget is empty or the refusal has another cause', async () => {
  const nothing = await start(allowance * 2000 + 3999)
  expect((await nothing.ask()).status).toBe(402)
  expect(nothing.counts).toEqual([])
  await running.stop()
  for (const reason of ['exhausted', 'held'] as const) {
    const { counts, ask } = await start(byTokens + 7 * 4000, { reason })
    expect((await ask()).status).toBe(402)
    expect(counts).toEqual([])
    if (reason === 'exhausted') await running.stop()
  }
})

test('bounds by bytes for a model without a public tokenizer or whose provider exceeded a bound', async () => {
  for (const model of [testModel({ id: 'gpt-test', upstreamModel: 'claude-x', price }), counted]) {
    const { counts, ask } = await start(byTokens + 7 * 4000, { model })
    if (model === counted) {
      const excesses = new Map([[`${model.providerId}/gpt-4o`, 1]])
      Object.assign(running.worker.view, { limits: { ...noLimits, excesses } })
    }
    const refused = await ask()
    expect(refused.status).toBe(402)
    expect(await messageOf(refused)).toContain('as many as it has bytes')
    expect(counts).toEqual([])
    if (model !== counted) await running.stop()
  }
})

test('refuses by bytes a request that cannot be counted', async () => {
  for (const tokens of [null, new Error('No tokenizer')]) {
    const { ask } = await start(byTokens + 7 * 4000, { tokens })
    const refused = await ask()
    expect(refused.status).toBe(402)
    expect(await messageOf(refused)).toContain('as many as it has bytes')
    if (tokens === null) await running.stop()
  }
})

test('books the full cost when a provider charges more than the counted bound, and reports the excess', async () => {
  const usage = { prompt_tokens: 500, completion_tokens: 1, total_tokens: 501 }
  const { usageLimits, ask } = await start(byTokens + 10 * 4000, { usage })
  await ask()
  const cost = 500 * 2000 + 4000
  expect(usageLimits.balances.get('token/t/money')).toBe(byTokens + 10 * 4000 - cost)
  const excess = (cost - byTokens - 10 * 4000) / 1e9
  expect(running.worker.journal.outcomes().at(-1)?.details).toMatchObject({
    bound_exceeded: { model: 'gpt-4o', excess },
  })
})

test('refuses a request bounded by the context window of its model and names that figure', async () => {
  const { ask } = await start(1000)
  const long = { ...question, messages: [{ role: 'user', content: 'a'.repeat(150_000) }] }
  expect(await messageOf(await ask(long))).toContain('with 128000 tokens of input, as many as the model can take')
})

test('refuses a token revoked while the input is counted with 401 and keeps nothing reserved', async () => {
  const revoke = () => {
    running.worker.tokens.clear()
    return undefined
  }
  const { usageLimits, ask } = await start(byTokens + 7 * 4000, { whileCounting: revoke })
  expect((await ask()).status).toBe(401)
  expect([usageLimits.reserved, running.seen.length]).toEqual([0, 0])
})
