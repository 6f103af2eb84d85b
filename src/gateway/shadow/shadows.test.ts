/** What is sent to a shadow target, what is recorded of it, and that no caller is touched by it. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { eventually } from '../../../test/support/eventually.ts'
import type { Event } from '../../events/event.ts'
import { compilePolicySet } from '../../policies/chain.ts'
import { compilePrice } from '../../providers/prices/price-record.ts'
import { noLimits } from '../../usage/limits.ts'
import { InMemoryLimits } from '../../usage/testing/in-memory-limits.ts'
import { completion, question, startTestGateway, type TestGateway } from '../testing/gateway.ts'
import { eventStream, policy, streamOf } from '../testing/policies.ts'
import { testModel, testProvider } from '../testing/worker.ts'
import { mostShadows } from './shadows.ts'

type Upstream = (request: Request, body: string) => Response | Promise<Response>

const price = compilePrice({ input_per_million: 2, output_per_million: 4 }, 'operator')
const usage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 }
const ordinary: Upstream = (_, body) =>
  JSON.parse(body).stream ? new Response(streamOf('Hel', 'lo'), eventStream) : Response.json({ ...completion, usage })

let running: TestGateway
/** The requests that the shadow target received. */
let seen: string[]
let answer: Upstream
let second: ReturnType<typeof Bun.serve>
beforeEach(() => {
  seen = []
  answer = () => Response.json({ ...completion, usage, choices: [{ index: 0, message: { content: 'Hi' } }] })
  second = Bun.serve({
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const body = await request.clone().text()
      seen.push(body)
      return await answer(request, body)
    },
  })
})
afterEach(async () => {
  await running.stop()
  await second.stop(true)
})

async function start(shadow: object = {}, upstream = ordinary, settings = {}) {
  running = await startTestGateway(upstream, { path_retries: 2, drain_seconds: 0, ...settings })
  const target = { id: 'p2', name: 'two', baseUrl: `http://127.0.0.1:${second.port}`, allowUnlistedModels: false }
  running.worker.upstreams.push(testProvider(target))
  const given = { providerId: 'p2', upstreamModel: 'candidate', share: 100, ...shadow }
  running.worker.catalog.push(
    testModel({ id: 'gpt-test', price, shadow: given, maxOutputTokens: 50 }),
    testModel({ id: 'candidate-record', providerId: 'p2', upstreamModel: 'candidate', price, maxOutputTokens: 50 }),
  )
}
const ask = async (body: object = question, secret = running.secret) => {
  const { status, headers, body: stream } = await running.chat(body, { secret })
  return { status, headers, text: await new Response(stream).text() }
}
const recorded = () => [...running.worker.journal.refused, ...[...running.worker.journal.closed.values()].flat()]
const shadows = () => recorded().filter(({ event_type }) => event_type === 'gateway.shadow.outcome')
async function shadowOf(): Promise<Event> {
  await eventually(() => shadows().length === 1)
  const [event] = shadows()
  if (event === undefined) throw new Error('There is no shadow')
  return event
}
const budget = {
  id: 'b',
  per: null,
  maxBudget: 10_000_000,
  window: 'total' as const,
  scope: { kind: 'organization' as const, id: null },
}
/** Long enough for what would be sent to be sent. */
const settle = () => Bun.sleep(60)

describe('a request', () => {
  test('is sent a second time after its answer, and both are compared in an event of its own', async () => {
    await start()
    const { status, text } = await ask({ ...question, temperature: 0 })
    expect([status, JSON.parse(text).choices[0].message.content]).toEqual([200, 'Hello'])
    const event = await shadowOf()
    const [outcome] = running.worker.journal.outcomes()
    expect(seen.map((body) => JSON.parse(body))).toEqual([{ ...question, temperature: 0, model: 'candidate' }])
    expect(event).toMatchObject({
      verdict: 'allow',
      reason_code: 'ok',
      request_id: outcome?.request_id,
      details: {
        model: 'gpt-test',
        provider: 'two',
        status: 200,
        answer_characters: 2,
        compared: {
          exchange_id: outcome?.exchange_id,
          provider: 'upstream',
          model: 'gpt-test',
          verdict: 'allow',
          answer_characters: 5,
          output_tokens: 7,
          cost: outcome?.event_cost_attribution?.cost,
        },
      },
      event_cost_attribution: { provider: 'two', spend_owner: 'organization', output_tokens: 7, cost: 0.00005 },
    })
    expect(event.exchange_id).not.toBe(outcome?.exchange_id)
    expect(running.worker.journal.outcomes().length).toBe(1)
    expect(running.worker.journal.attempts().length).toBe(1)
  })

  test('that streams is compared by its stream', async () => {
    answer = ordinary
    await start()
    await ask({ ...question, stream: true })
    const { details } = await shadowOf()
    expect(details).toMatchObject({ stream: true, answer_characters: 5, compared: { answer_characters: 5 } })
    expect(JSON.parse(seen[0] ?? '').stream).toBe(true)
  })

  test('is translated for a target of another language', async () => {
    answer = () =>
      Response.json({
        ...{ id: 'm', type: 'message', role: 'assistant', model: 'claude', stop_reason: 'end_turn' },
        content: [{ type: 'text', text: 'Salut' }],
        usage: { input_tokens: 3, output_tokens: 4 },
      })
    await start({ upstreamModel: 'claude' })
    Object.assign(running.worker.upstreams[1] ?? {}, { kind: 'anthropic' })
    await ask()
    expect((await shadowOf()).details).toMatchObject({ status: 200, answer_characters: 5 })
    expect(JSON.parse(seen[0] ?? '')).toMatchObject({ model: 'claude', messages: [{ role: 'user' }] })
  })

  test('that its provider stores is not stored a second time', async () => {
    await start()
    await ask({ ...question, store: true })
    await shadowOf()
    expect([running.seen[0]?.body, seen[0]].map((body) => JSON.parse(body ?? '').store)).toEqual([true, false])
  })

  test('is one of the share', async () => {
    await start({ share: 50 })
    for (let count = 0; count < 60; count++) {
      await ask()
      await Bun.sleep(2)
    }
    await settle()
    expect(seen.length).toBeGreaterThan(12)
    expect(seen.length).toBeLessThan(48)
  })
})

describe('the caller', () => {
  test('has its answer while the target is silent, fails, or cannot be reached', async () => {
    const held = Promise.withResolvers<Response>()
    for (const other of [() => held.promise, () => new Response('no', { status: 500 })] satisfies Upstream[]) {
      answer = other
      await start()
      const { status, text } = await ask()
      expect([status, JSON.parse(text).choices[0].message.content]).toEqual([200, 'Hello'])
      await eventually(() => seen.length > 0)
      await running.stop()
      // It is called once, whatever it answers.
      expect(seen.length).toBe(1)
      seen.length = 0
    }
    await start()
    Object.assign(running.worker.upstreams[1] ?? {}, { baseUrl: 'http://127.0.0.1:1' })
    expect((await ask()).status).toBe(200)
    expect(await shadowOf()).toMatchObject({ verdict: 'error', details: { status: 502 } })
    held.resolve(new Response())
  })

  test('is served by the path of the shadow however often the shadow fails', async () => {
    answer = () => new Response('no', { status: 500 })
    await start({}, ordinary, { circuit_failures: 1 })
    for (let count = 1; count <= 3; count++) {
      await ask()
      await eventually(() => shadows().length === count)
    }
    answer = ordinary
    const { status } = await ask({ ...question, model: 'candidate-record' })
    expect(status).toBe(200)
  })

  test('waits for none of many, which are bounded', async () => {
    const held = Promise.withResolvers<undefined>()
    answer = async () => {
      await held.promise
      return Response.json(completion)
    }
    await start()
    for (let count = 0; count < mostShadows + 4; count++) expect((await ask()).status).toBe(200)
    await settle()
    expect(seen.length).toBe(mostShadows)
    expect(await running.gateway.metrics().metrics()).toContain('gatehouse_shadow_requests_total{result="skipped"} 4')
    held.resolve(undefined)
    await eventually(() => shadows().length === mostShadows)
    await ask()
    await eventually(() => seen.length === mostShadows + 1)
  })
})

describe('what is not sent a second time', () => {
  test('a request that was refused, failed, or whose answer was stopped', async () => {
    let status = 400
    await start({}, () => Response.json(status === 200 ? completion : { error: { message: 'no' } }, { status }))
    expect((await ask()).status).toBe(400)
    expect((await ask(question, running.worker.addToken({ modelFilter: ['other'] }))).status).toBe(403)
    status = 200
    const config = { terms: ['Hello'], action: 'block' }
    running.worker.policies = compilePolicySet([
      policy({ id: 'stop', kind: 'term-filter', config, stages: ['pre_response'] }),
    ])
    expect((await ask()).status).toBe(400)
    await settle()
    expect(seen).toEqual([])
  })

  test('what its token, its access policy or a policy keeps from that provider', async () => {
    await start()
    await ask(question, running.worker.addToken({ provider: 'upstream' }))
    const rates = { requestsPerMinute: null, tokensPerMinute: null }
    const access = { id: 'a', models: null, providers: ['upstream'], scope: 'token' as const, ...rates }
    Object.assign(running.worker.view, { limits: { ...noLimits, accessPolicies: new Map([['a', access]]) } })
    await ask(question, running.worker.addToken({ accessPolicyIds: ['a'] }))
    Object.assign(running.worker.view, { limits: noLimits })
    running.worker.policies = compilePolicySet([
      policy({
        ...{ id: 'only', kind: 'condition', config: { verdict: 'deny', reason_code: 'no.two' } },
        when: 'model.provider == "two"',
      }),
    ])
    expect((await ask()).status).toBe(200)
    running.worker.closedProviders.push('p2')
    running.worker.policies = compilePolicySet([])
    await ask()
    await settle()
    expect(seen).toEqual([])
  })

  test('a request whose token was revoked before', async () => {
    const held = Promise.withResolvers<undefined>()
    await start({}, async () => {
      await held.promise
      return Response.json(completion)
    })
    const asked = ask()
    await eventually(() => running.seen.length === 1)
    for (const { hash } of running.worker.tokens.values()) running.worker.revocations.add(hash)
    held.resolve(undefined)
    expect((await asked).status).toBe(200)
    expect(await shadowOf()).toMatchObject({ verdict: 'deny', reason_code: 'invalid_api_token' })
    expect(seen).toEqual([])
  })

  test('a request whose token is revoked while money is reserved for it', async () => {
    await start()
    const usageLimits = new InMemoryLimits({ 'budget/b': 10_000_000 })
    const limits = { ...noLimits, budgets: new Map([['b', budget]]), budgetsOf: new Map([['organization', [budget]]]) }
    Object.assign(running.worker.view, { limits })
    let reservations = 0
    const take = usageLimits.reserve.bind(usageLimits)
    usageLimits.reserve = async (...asked) => {
      const reservation = await take(...asked)
      reservations += 1
      if (reservations === 2)
        for (const { hash } of running.worker.tokens.values()) running.worker.revocations.add(hash)
      return reservation
    }
    Object.assign(running.worker, { usageLimits })
    expect((await ask()).status).toBe(200)
    expect(await shadowOf()).toMatchObject({ verdict: 'deny', reason_code: 'invalid_api_token' })
    expect([reservations, seen.length]).toEqual([2, 0])
  })

  test('what servers of the request would do twice, and long bodies', async () => {
    await start()
    await ask({ ...question, tools: [{ type: 'mcp', server_url: 'https://example.com' }] })
    await ask({ ...question, container: 'c' })
    await ask({ ...question, messages: [{ role: 'user', content: 'x'.repeat(1024 * 1024) }] })
    await settle()
    expect(seen).toEqual([])
  })

  test('an answer from the cache', async () => {
    await start()
    running.worker.policies = compilePolicySet([policy({ id: 'cache', kind: 'answer-cache', config: {} })])
    await ask()
    await eventually(() => seen.length === 1)
    expect((await ask()).headers.get('x-service-cache')).toBe('hit')
    await settle()
    expect(seen.length).toBe(1)
  })
})

describe('money', () => {
  const accounts = [{ id: 't', maxRequests: 5, maxBudget: 10_000_000, rateLimitRpm: null, rateLimitTpm: null }]
  const cost = 11 * 2000 + 7 * 4000

  async function startLimited(ofOrganization: number) {
    await start()
    const usageLimits = new InMemoryLimits({
      'token/t/money': 10_000_000,
      'token/t/requests': 5,
      'budget/b': ofOrganization,
    })
    const limits = { ...noLimits, budgets: new Map([['b', budget]]), budgetsOf: new Map([['organization', [budget]]]) }
    Object.assign(running.worker, { usageLimits })
    Object.assign(running.worker.view, { limits })
    return { usageLimits, secret: running.worker.addToken({ accounts }) }
  }

  test('of a shadow comes from budgets of the organization, and none from its token', async () => {
    const { usageLimits, secret } = await startLimited(10_000_000)
    await ask(question, secret)
    const event = await shadowOf()
    expect(event.settlements).toEqual([{ account: 'budget/b', amount: cost }])
    expect(Object.fromEntries(usageLimits.balances)).toEqual({
      'token/t/money': 10_000_000 - cost,
      'token/t/requests': 4,
      'budget/b': 10_000_000 - 2 * cost,
    })
  })

  test('that a budget of the organization lacks keeps the shadow from being sent, and nothing else', async () => {
    // Pays for the input and one token of output, once.
    const { usageLimits, secret } = await startLimited((JSON.stringify(question).length + 64 + 16) * 2000 + 4000)
    expect((await ask(question, secret)).status).toBe(200)
    expect(await shadowOf()).toMatchObject({ verdict: 'deny', reason_code: 'usage_authorization_budget_exceeded' })
    expect([seen, usageLimits.balances.get('token/t/money')]).toEqual([[], 10_000_000 - cost])
  })
})

test('policies evaluate the answer of the shadow, and an escalation of it asks nobody', async () => {
  await start()
  const config = { terms: ['Hi'], action: 'escalate' }
  running.worker.policies = compilePolicySet([
    policy({ id: 'look', kind: 'term-filter', config, stages: ['pre_response'] }),
  ])
  expect((await ask()).status).toBe(200)
  const event = await shadowOf()
  expect(event).toMatchObject({ verdict: 'escalate', details: { compared: { verdict: 'allow' } } })
  expect(event.details?.policy_results).toMatchObject([{ policy_id: 'look', verdict: 'escalate' }])
  expect(recorded().filter(({ event_type }) => event_type === 'decision')).toEqual([])
})
