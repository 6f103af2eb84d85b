/**
 * What a request reserves of its limits, and what is booked of it in the end. Longer than most: every case stands on one
 * model, one question and their prices.
 */
import { afterEach, describe, expect, test } from 'bun:test'
import { eventually } from '../../../test/support/eventually.ts'
import type { CatalogModel } from '../../fleet/protocol/worker.ts'
import { compilePolicySet } from '../../policies/chain.ts'
import { compilePrice } from '../../providers/prices/price-record.ts'
import type { GovernedToken } from '../../tokens/governed-token.ts'
import { noLimits } from '../../usage/limits.ts'
import { InMemoryLimits } from '../../usage/testing/in-memory-limits.ts'
import { completion, startTestGateway, type TestGateway } from '../testing/gateway.ts'
import { testModel, testPolicy } from '../testing/worker.ts'

type Upstream = (request: Request, body: string) => Response | Promise<Response>

/** Two dollars a million tokens in, four out: 2000 and 4000 nano-dollars a token. */
const price = compilePrice({ input_per_million: 2, output_per_million: 4, cached_input_per_million: 1 }, 'operator')
const model = testModel({ id: 'gpt-test', price, maxOutputTokens: 50 })
const question = { model: 'gpt-test', messages: [{ role: 'user', content: 'Good morning' }] }
/** What the question costs at most before its output: bytes, and the allowances of a request and of a message. */
const inputBound = (JSON.stringify(question).length + 64 + 16) * 2000
const outputBound = 50 * 4000
const answered: Upstream = () => Response.json(completion)
/** 11 tokens in, 3 of them cached, 7 out. */
const answerCost = 8 * 2000 + 3 * 1000 + 7 * 4000

let running: TestGateway
afterEach(() => running.stop())

async function start(
  upstream: Upstream,
  {
    usageLimits,
    token = {},
    models = [model],
  }: { usageLimits: InMemoryLimits; token?: Partial<GovernedToken>; models?: CatalogModel[] },
) {
  running = await startTestGateway(upstream, {
    drain_seconds: 0,
    idle_timeout_seconds: 0.2,
    first_byte_timeout_seconds: 0.2,
  })
  Object.assign(running.worker, { usageLimits })
  running.worker.catalog.push(...models)
  const accounts = [{ id: 't', maxRequests: 5, maxBudget: 10_000_000_000, rateLimitRpm: null, rateLimitTpm: null }]
  const secret = running.worker.addToken({ accounts, ...token })
  return (body: unknown = question, signal?: AbortSignal) =>
    running.chat(body, { secret, ...(signal ? { signal } : {}) })
}
const limits = (money: number, requests = 5) =>
  new InMemoryLimits({ 'token/t/money': money, 'token/t/requests': requests })
const lastOutcome = () => running.worker.journal.outcomes().at(-1)

describe('a request of a token with a budget', () => {
  test('is booked at the reported usage to the nano-dollar, with the cached part at its own price', async () => {
    const usageLimits = limits(10_000_000)
    const ask = await start(answered, { usageLimits })
    expect((await ask()).status).toBe(200)
    expect(usageLimits.balances.get('token/t/money')).toBe(10_000_000 - answerCost)
    expect(usageLimits.balances.get('token/t/requests')).toBe(4)
    expect(lastOutcome()).toMatchObject({
      event_cost_attribution: {
        cost: answerCost / 1e9,
        estimated: false,
        price_source: 'operator',
        spend_owner: 'team:team-default',
      },
      settlements: [
        { account: 'token/t/requests', amount: 1 },
        { account: 'token/t/money', amount: answerCost },
      ],
    })
  })

  test('is refused before the provider call when the budget cannot pay for its input and one output token', async () => {
    const usageLimits = limits(inputBound + 3999)
    const ask = await start(answered, { usageLimits, token: { keyClass: 'durable' } })
    const refused = await ask()
    expect([refused.status, await refused.json()]).toMatchObject([
      402,
      { error: { code: 'usage_authorization_budget_exceeded' } },
    ])
    expect(running.seen).toHaveLength(0)
    expect(usageLimits.reserved).toBe(0)
  })

  test('has its output limited to what the budget can pay, stated in the body, a header and the event', async () => {
    const ask = await start(answered, { usageLimits: limits(inputBound + 12 * 4000 + 3999) })
    const response = await ask({ ...question, max_tokens: 40 })
    expect(response.status).toBe(200)
    // The added member makes the input bound larger by as many bytes.
    const spare = 12 * 4000 + 3999 - ',"max_tokens":40'.length * 2000
    const limit = Math.floor(spare / 4000)
    expect(response.headers.get('x-service-max-output-tokens')).toBe(`${limit}`)
    expect(JSON.parse(running.seen[0]?.body ?? '')).toMatchObject({ max_tokens: limit })
    expect(lastOutcome()?.details).toMatchObject({ max_output_tokens: limit })
  })

  test('asks a limit for no more than remains and is refused only below its minimum need', async () => {
    const usageLimits = new InMemoryLimits({ 'token/t/money': 10_000_000_000 })
    const ask = await start(answered, { usageLimits, models: [testModel({ id: 'gpt-test', price })] })
    expect((await ask({ ...question, max_tokens: 1e12 })).status).toBe(200)
    const held = running.worker.journal.opened.values().next().value?.settlements
    expect(held).toContainEqual({ account: 'token/t/money', amount: 10_000_000_000 })
    const refused = await ask({ ...question, max_tokens: 1e12, n: 1e12 })
    expect([refused.status, await refused.json()]).toMatchObject([
      402,
      { error: { code: 'usage_authorization_budget_exceeded' } },
    ])
    expect(usageLimits.reserved).toBe(1)
  })

  test('is bounded by the body after policies changed it', async () => {
    const ask = await start(answered, { usageLimits: limits(1_000_000_000) })
    const added = 'Be kind. '.repeat(100)
    running.worker.policies = compilePolicySet([
      testPolicy({ id: 'prefix', kind: 'request-rewrite', config: { system_prefix: added } }),
    ])
    expect((await ask()).status).toBe(200)
    const sent = running.seen[0]?.body ?? ''
    expect(sent).toContain(added.trim())
    const [interrupted] = running.worker.journal.opened.values()
    // Two messages now, each with its allowance.
    const bound = (sent.length + 64 + 2 * 16) * 2000 + outputBound
    expect(interrupted?.settlements).toEqual([
      { account: 'token/t/requests', amount: 1 },
      { account: 'token/t/money', amount: bound },
    ])
  })

  test('keeps an output limit within the maximum of its model, and a negative limit is refused', async () => {
    const known = testModel({ id: 'gpt-test', upstreamModel: 'gpt-4o', price })
    const ask = await start(answered, { usageLimits: limits(inputBound + 30_000 * 4000), models: [known] })
    expect((await ask()).headers.get('x-service-max-output-tokens')).toBe('16384')
    await ask({ ...question, max_tokens: 29_000 })
    const refused = await ask({ ...question, max_tokens: -5 })
    expect([refused.status, await refused.json()]).toMatchObject([422, { error: { param: 'max_tokens' } }])
    const sent = running.seen.map(({ body }) => JSON.parse(body))
    expect(sent.map((body) => body.max_completion_tokens ?? body.max_tokens)).toEqual([16_384, 29_000])
  })

  test('reserves the maximum of the model for an output limit of 0, and is refused when the budget pays for less', async () => {
    const bound = inputBound + ',"max_tokens":0'.length * 2000 + outputBound
    const ask = await start(answered, { usageLimits: limits(bound + 10_000) })
    expect((await ask({ ...question, max_tokens: 0 })).status).toBe(200)
    const [reserved] = running.worker.journal.opened.values()
    expect(reserved?.settlements).toContainEqual({ account: 'token/t/money', amount: bound })
    expect(JSON.parse(running.seen[0]?.body ?? '')).toMatchObject({ max_tokens: 0 })
    const refused = await ask({ ...question, max_tokens: 0 })
    expect([refused.status, await refused.json()]).toMatchObject([422, { error: { param: 'max_tokens' } }])
  })

  test('has both names of the output limit lowered when both are given, and neither raised', async () => {
    const ask = await start(answered, { usageLimits: limits(inputBound + 20 * 4000 + 50 * 2000) })
    expect((await ask({ ...question, max_tokens: 45, max_completion_tokens: 40 })).status).toBe(200)
    const both = JSON.parse(running.seen[0]?.body ?? '')
    expect(both.max_tokens).toBeLessThan(40)
    expect(both.max_completion_tokens).toBe(both.max_tokens)
    expect((await ask({ ...question, max_tokens: 2, max_completion_tokens: 45 })).status).toBe(200)
    const one = JSON.parse(running.seen[1]?.body ?? '')
    expect([one.max_tokens, one.max_completion_tokens < 45]).toEqual([2, true])
  })

  test('reserves all its limits or none', async () => {
    const usageLimits = limits(10_000_000, 0)
    const ask = await start(answered, { usageLimits })
    expect((await ask()).status).toBe(429)
    expect(usageLimits.balances.get('token/t/money')).toBe(10_000_000)
  })

  test('is refused by name when its model has no price, and admitted without a budget', async () => {
    const free = testModel({ id: 'gpt-test' })
    const ask = await start(answered, { usageLimits: limits(1), models: [free] })
    const refused = await ask()
    expect([refused.status, await refused.json()]).toMatchObject([
      403,
      { error: { code: 'tokens.model_unpriced', param: 'model' } },
    ])
    expect((await running.chat(question)).status).toBe(200)
    expect(lastOutcome()?.event_cost_attribution).toMatchObject({ cost: null, price_source: null, input_tokens: 11 })
  })

  test('needs an unused limit even for a free model and leaves the limit unchanged', async () => {
    const nothing = compilePrice({ input_per_million: 0, output_per_million: 0 }, 'operator')
    const free = testModel({ id: 'gpt-test', price: nothing, maxOutputTokens: 50 })
    const usageLimits = limits(1)
    const ask = await start(answered, { usageLimits, models: [free] })
    expect((await ask()).status).toBe(200)
    expect([...usageLimits.balances.values()]).toEqual([1, 4])
    usageLimits.balances.set('token/t/money', 0)
    expect((await ask()).status).toBe(402)
  })

  test('is refused by name when nothing bounds its output', async () => {
    const ask = await start(answered, { usageLimits: limits(1), models: [testModel({ id: 'gpt-test', price })] })
    expect(await (await ask()).json()).toMatchObject({ error: { code: 'tokens.cost_unbounded', param: 'max_tokens' } })
  })

  test('is booked in full when the provider charges more than the bound, and the outcome reports the excess', async () => {
    const huge = { ...completion, usage: { prompt_tokens: 10, completion_tokens: 5000, total_tokens: 5010 } }
    const ask = await start(() => Response.json(huge), { usageLimits: limits(10_000_000) })
    await ask()
    const cost = 10 * 2000 + 5000 * 4000
    const excess = (cost - inputBound - outputBound) / 1e9
    expect(lastOutcome()).toMatchObject({
      details: { bound_exceeded: { provider_id: model.providerId, model: 'gpt-test', excess } },
      settlements: [{ amount: 1 }, { amount: cost }],
    })
  })

  test('reserves the excess that the provider charged before, and reports only a larger one', async () => {
    const huge = { ...completion, usage: { prompt_tokens: 10, completion_tokens: 100, total_tokens: 110 } }
    const cost = 10 * 2000 + 100 * 4000
    const excess = cost - inputBound - outputBound
    const usageLimits = limits(inputBound + outputBound + excess)
    const ask = await start(() => Response.json(huge), { usageLimits })
    const excesses = new Map([[`${model.providerId}/gpt-test`, excess]])
    Object.assign(running.worker.view, { limits: { ...noLimits, excesses } })
    await ask()
    expect(lastOutcome()?.details).not.toHaveProperty('bound_exceeded')
    expect(usageLimits.balances.get('token/t/money')).toBe(inputBound + outputBound + excess - cost)
    // What is left pays for the list price, and not for the excess.
    usageLimits.balances.set('token/t/money', inputBound + excess)
    expect((await ask()).status).toBe(402)
  })

  test('books the usage that each failed call reports, and nothing for one without a report', async () => {
    const usage = { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 }
    const cost = 3 * 2000 + 5 * 4000
    const replies = [
      Response.json({ error: { message: 'x' }, usage }, { status: 500 }),
      Response.json({ error: { message: 'x' }, usage }, { status: 400 }),
      Response.json({ error: { message: 'x' } }, { status: 400 }),
    ]
    const usageLimits = limits(10_000_000)
    const ask = await start(() => replies.shift() ?? Response.error(), { usageLimits })
    expect(await (await ask()).json()).toEqual({ error: { message: 'x' }, usage })
    expect(usageLimits.balances.get('token/t/money')).toBe(10_000_000 - 2 * cost)
    expect(lastOutcome()).toMatchObject({ event_cost_attribution: { cost: (2 * cost) / 1e9, estimated: false } })
    expect((await ask()).status).toBe(400)
    expect(usageLimits.balances.get('token/t/money')).toBe(10_000_000 - 2 * cost)
  })

  test('is booked in full when recovery after a restart ends it', async () => {
    const ask = await start(answered, { usageLimits: limits(10_000_000) })
    await ask()
    const [interrupted] = running.worker.journal.opened.values()
    expect(interrupted).toMatchObject({
      settlements: [{ amount: 1 }, { amount: inputBound + outputBound }],
      event_cost_attribution: { cost: (inputBound + outputBound) / 1e9, estimated: true },
    })
  })
})

describe('the refusal code of a used-up limit', () => {
  const cases = [
    ['disposable', 'exhausted', 0, 5, 402, 'tokens.budget_exhausted', null],
    ['disposable', 'exhausted', 10_000_000, 0, 403, 'tokens.request_limit_exhausted', null],
    ['durable', 'exhausted', 0, 5, 402, 'usage_authorization_budget_exceeded', null],
    ['virtual', 'exhausted', 10_000_000, 0, 429, 'usage_authorization_request_limit_exceeded', null],
    ['disposable', 'held', 1, 5, 402, 'usage_authorization_budget_exceeded', '1'],
    ['durable', 'unknown', 1, 5, 503, 'usage_authority_unavailable', '1'],
  ] as const
  for (const [keyClass, reason, money, requests, status, code, retryAfter] of cases) {
    test(`is ${code} for key class ${keyClass} and reason ${reason}`, async () => {
      const usageLimits = limits(money, requests)
      usageLimits.refuseWith = reason
      const ask = await start(answered, { usageLimits, token: { keyClass } })
      const refused = await ask()
      expect(refused.status).toBe(status)
      expect(await refused.json()).toMatchObject({
        error: { code, message: expect.stringMatching(/^(?:The|A|What) [a-z].* vrn:gatehouse:[^ ]+:token\//) },
      })
      expect(refused.headers.get('retry-after')).toBe(retryAfter)
      expect(refused.headers.get('x-should-retry')).toBe(status === 503 ? null : 'false')
      expect(running.seen).toHaveLength(0)
    })
  }
})

describe('a client that disconnects', () => {
  const hanging: Upstream = () =>
    new Response(
      new ReadableStream({
        start: (controller) =>
          controller.enqueue(
            new TextEncoder().encode('data: {"choices":[{"delta":{"content":"eight chars twice"}}]}\n\n'),
          ),
      }),
      { headers: { 'content-type': 'text/event-stream' } },
    )

  test('is charged for its input and the produced output', async () => {
    const usageLimits = limits(10_000_000)
    const ask = await start(hanging, { usageLimits })
    const abort = new AbortController()
    const response = await ask({ ...question, stream: true }, abort.signal)
    await response.body?.getReader().read()
    abort.abort()
    await eventually(() => running.worker.journal.outcomes().length > 0)
    // 12 characters in and 17 out, four to a token.
    expect(usageLimits.balances.get('token/t/money')).toBe(10_000_000 - (3 * 2000 + 5 * 4000))
    expect(lastOutcome()?.event_cost_attribution).toMatchObject({ estimated: true })
  })
})

test('a failed call books no cost and counts as one request', async () => {
  const usageLimits = limits(10_000_000)
  const ask = await start(() => new Response('{}', { status: 500 }), { usageLimits })
  await ask()
  expect([...usageLimits.balances.values()]).toEqual([10_000_000, 4])
})

test('refuses a used-up disposable token at authentication', async () => {
  const ask = await start(answered, { usageLimits: limits(0), token: { keyClass: 'disposable' } })
  const refused = await ask('{ no JSON')
  expect(refused.status).toBe(402)
  expect(await refused.json()).toMatchObject({ error: { code: 'tokens.budget_exhausted' } })
})

describe('books or releases every reservation exactly once, however the exchange ends', () => {
  const never: Upstream = () => new Promise<Response>(() => undefined)
  const broken: Upstream = () =>
    new Response('data: {"choices":[]}\n\n', { headers: { 'content-type': 'text/event-stream' } })
  const stream = { ...question, stream: true }
  const ways: readonly [
    name: string,
    Upstream,
    body: unknown,
    opened: boolean,
    prepare?: (usageLimits: InMemoryLimits) => void,
  ][] = [
    ['answered', answered, question, true],
    ['provider error', () => new Response('x', { status: 500 }), question, true],
    ['garbage', () => new Response('<html>'), question, true],
    ['silence', never, question, true],
    ['broken stream', broken, stream, true],
    [
      'outbox full at open',
      answered,
      question,
      false,
      () => Object.assign(running.worker.journal.full, { open: true }),
    ],
    [
      'outbox full at close',
      answered,
      question,
      true,
      () => Object.assign(running.worker.journal.full, { close: true }),
    ],
    [
      'revoked while it waited',
      answered,
      question,
      false,
      (usageLimits) => {
        usageLimits.delay = 20
        const reserve = usageLimits.reserve.bind(usageLimits)
        usageLimits.reserve = (demands, signal) => {
          running.worker.tokens.clear()
          return reserve(demands, signal)
        }
      },
    ],
  ]
  for (const [name, upstream, body, opened, prepare] of ways) {
    test(name, async () => {
      const usageLimits = limits(10_000_000)
      const ask = await start(upstream, { usageLimits })
      prepare?.(usageLimits)
      await ask(body)
        .then((response) => response.text())
        .catch(() => undefined)
      await eventually(() => usageLimits.settled + usageLimits.released > 0)
      expect([usageLimits.reserved, usageLimits.settled, usageLimits.released]).toEqual([
        1,
        opened ? 1 : 0,
        opened ? 0 : 1,
      ])
      if (!opened) expect([...usageLimits.balances.values()]).toEqual([10_000_000, 5])
    })
  }

  test('releases a reservation when the client disconnects while limits are leased', async () => {
    const usageLimits = limits(10_000_000)
    usageLimits.delay = 300
    const ask = await start(answered, { usageLimits })
    const abort = new AbortController()
    const asked = ask(question, abort.signal).catch(() => undefined)
    await Bun.sleep(30)
    abort.abort()
    await asked
    await eventually(() => running.worker.journal.outcomes().length > 0)
    expect([usageLimits.reserved, usageLimits.settled, usageLimits.released]).toEqual([0, 0, 0])
    expect([...usageLimits.balances.values()]).toEqual([10_000_000, 5])
  })
})
