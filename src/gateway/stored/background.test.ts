/** Responses in the background: how they are followed, what they cost, and what ends them. */
import { afterEach, describe, expect, test } from 'bun:test'
import OpenAI from 'openai'
import { StoredResponses } from '../../../test/fakes/stored-responses.ts'
import { eventually } from '../../../test/support/eventually.ts'
import { InMemoryLimits } from '../../usage/testing/in-memory-limits.ts'
import { startTestGateway, type TestGateway } from '../testing/gateway.ts'
import { price } from '../testing/translating.ts'
import { testModel } from '../testing/worker.ts'

/** A dollar a million tokens: a thousand nano-dollars each. */
const model = testModel({ id: 'gpt', price: price(1), maxOutputTokens: 50 })
const money = 10_000_000
/** 11 tokens in, 7 out. */
const cost = 18 * 1000

let running: TestGateway
let store: StoredResponses
let limits: InMemoryLimits
let openai: OpenAI
let secret: string
afterEach(() => running.stop())

/** What the provider's answers wait for. */
let gate: Promise<void>

async function start(settings: Parameters<typeof startTestGateway>[1] = {}): Promise<void> {
  store = new StoredResponses()
  gate = Promise.resolve()
  const upstream = async (request: Request, body: string) => {
    await gate
    return store.answer(request, body)
  }
  running = await startTestGateway(upstream, { drain_seconds: 0, ...settings })
  limits = new InMemoryLimits({ 'token/t/money': money, 'token/t/requests': 5 })
  Object.assign(running.worker, { usageLimits: limits })
  running.worker.catalog.push(model)
  const accounts = [{ id: 't', maxRequests: 5, maxBudget: money, rateLimitRpm: null, rateLimitTpm: null }]
  secret = running.worker.addToken({ accounts })
  openai = new OpenAI({ apiKey: secret, baseURL: `${running.url}/v1`, maxRetries: 0 })
}

const create = (members: object = {}) =>
  openai.responses.create({ model: 'gpt', input: 'Take your time', background: true, stream: false, ...members })
const left = () => limits.balances.get('token/t/money') ?? 0
const outcomesOf = (route: string) =>
  running.worker.journal.outcomes().filter(({ details }) => details?.route === route)
const made = () => outcomesOf('POST /v1/responses')
const held = () =>
  [...running.worker.journal.opened.values()]
    .flatMap(({ settlements }) => settlements ?? [])
    .find(({ account }) => account === 'token/t/money')?.amount ?? 0
const providerId = () => [...store.responses.keys()][0] ?? ''

describe('a response in the background', () => {
  test('holds its bound until its end, is polled and then costs its usage', async () => {
    await start()
    const { id, status } = await create()
    expect([status, (await openai.responses.retrieve(id)).status]).toEqual(['queued', 'queued'])
    expect([left(), made().length]).toEqual([money - held(), 0])
    expect(held()).toBeGreaterThan(cost)
    store.end(providerId())
    const read = await openai.responses.retrieve(id)
    expect([read.status, read.output_text]).toEqual(['completed', 'Hello from the store'])
    await eventually(() => made().length === 1)
    expect(left()).toBe(money - cost)
    expect(made()).toMatchObject([
      {
        verdict: 'allow',
        reason_code: 'ok',
        event_cost_attribution: { cost: cost / 1e9, estimated: false, input_tokens: 11, output_tokens: 7 },
        settlements: [
          { account: 'token/t/requests', amount: 1 },
          { account: 'token/t/money', amount: cost },
        ],
      },
    ])
    // Reading is no request of the token's limits.
    expect(limits.balances.get('token/t/requests')).toBe(4)
  })

  test('costs its usage when nobody fetches it', async () => {
    await start()
    await create()
    store.end(providerId())
    await eventually(() => made().length === 1)
    expect(left()).toBe(money - cost)
  })

  test('is cancelled, and then costs its input at most', async () => {
    await start()
    const { id } = await create()
    expect((await openai.responses.cancel(id)).status).toBe('cancelled')
    await eventually(() => made().length === 1)
    expect(money - left()).toBeGreaterThan(0)
    expect(money - left()).toBeLessThan(cost)
    expect(made()).toMatchObject([{ event_cost_attribution: { estimated: true } }])
  })

  test('that failed at the provider costs nothing', async () => {
    await start()
    await create()
    store.end(providerId(), 'failed', { error: { code: 'server_error', message: 'Failed' } })
    await eventually(() => made().length === 1)
    expect(left()).toBe(money)
    expect(made()).toMatchObject([{ verdict: 'error', reason_code: 'provider.error' }])
  })

  test('is charged its bound when it is deleted before its end was seen', async () => {
    await start()
    const { id } = await create()
    const bound = held()
    await openai.responses.delete(id)
    await eventually(() => made().length === 1)
    expect(left()).toBe(money - bound)
    expect(made()).toMatchObject([
      { reason_code: 'provider.response_gone', event_cost_attribution: { cost: bound / 1e9, estimated: true } },
    ])
  })

  test('is charged its bound when it is not at its end in time', async () => {
    await start({ total_timeout_seconds: 1 })
    await create()
    const bound = held()
    await eventually(() => made().length === 1)
    expect(left()).toBe(money - bound)
    expect(made()).toMatchObject([{ reason_code: 'provider.timeout' }])
  })

  test('is charged its bound when the gateway stops, and one outcome is recorded', async () => {
    await start()
    await create()
    const bound = held()
    await running.gateway.drain()
    expect(left()).toBe(money - bound)
    expect(made()).toMatchObject([{ reason_code: 'gateway.drained' }])
  })

  test('is cancelled at the provider when its token is revoked with its running requests', async () => {
    await start()
    await create()
    const bound = held()
    running.gateway.cutTokens([...running.worker.tokens.keys()])
    await eventually(() => store.responses.get(providerId())?.status === 'cancelled')
    await eventually(() => made().length === 1)
    expect(left()).toBe(money - bound)
    expect(made()).toMatchObject([{ reason_code: 'token.revoked' }])
  })

  test('survives failed looks at it, and an answer with another id', async () => {
    await start()
    await create()
    const id = providerId()
    store.end(id)
    let looks = 0
    store.lies = (body, path) => {
      if (path !== `/v1/responses/${id}`) return body
      looks += 1
      return looks === 1 ? { ...body, id: 'resp_of_another' } : body
    }
    await eventually(() => made().length === 1)
    expect([looks, left()]).toEqual([2, money - cost])
  })

  test('is followed when its caller leaves its stream, and costs its usage', async () => {
    await start()
    const stream = await openai.responses.create({ model: 'gpt', input: 'Go', background: true, stream: true })
    let id = ''
    for await (const event of stream) {
      if (event.type !== 'response.in_progress') continue
      ;({ id } = event.response)
      break
    }
    await eventually(() => running.aborted() > 0)
    expect(made()).toEqual([])
    store.end(providerId())
    const rest: string[] = []
    for await (const event of await openai.responses.retrieve(id, { stream: true, starting_after: 1 })) {
      rest.push(event.type)
    }
    expect(rest.at(-1)).toBe('response.completed')
    await eventually(() => made().length === 1)
    expect(left()).toBe(money - cost)
  })

  test('is followed when its caller leaves before the provider has answered', async () => {
    await start()
    const opened = Promise.withResolvers<void>()
    gate = opened.promise
    const leaving = new AbortController()
    const call = openai.responses
      .create({ model: 'gpt', input: 'Go', background: true }, { signal: leaving.signal })
      .catch((thrown: unknown) => thrown)
    await eventually(() => running.seen.length === 1)
    // The gateway looks for callers that left after a moment.
    await Bun.sleep(100)
    leaving.abort()
    expect(await call).toBeInstanceOf(OpenAI.APIUserAbortError)
    await Bun.sleep(50)
    expect(made()).toEqual([])
    opened.resolve()
    await eventually(() => store.responses.size === 1)
    store.end(providerId())
    await eventually(() => made().length === 1)
    expect(left()).toBe(money - cost)
  })

  test('is refused beyond a hundred of one owner, and not to another owner', async () => {
    await start()
    limits = new InMemoryLimits({})
    Object.assign(running.worker, { usageLimits: limits })
    const clientFor = (ownerId: string) =>
      new OpenAI({ apiKey: running.worker.addToken({ ownerId }), baseURL: `${running.url}/v1`, maxRetries: 0 })
    const [busy, other] = [clientFor('busy'), clientFor('other')]
    const ask = (client: OpenAI) => client.responses.create({ model: 'gpt', input: 'Go', background: true })
    await Promise.all(Array.from({ length: 100 }, () => ask(busy)))
    const refused = await ask(busy).catch((thrown: unknown) => thrown)
    expect(refused).toMatchObject({ status: 503, code: 'background_full' })
    expect((await ask(other)).status).toBe('queued')
    for (const id of store.responses.keys()) store.end(id)
    await eventually(() => made().filter(({ reason_code }) => reason_code === 'ok').length === 101)
    expect((await ask(busy)).status).toBe('queued')
  })

  test('that streams to its end costs its usage at once', async () => {
    await start()
    const stream = await openai.responses.create({ model: 'gpt', input: 'Go', background: true, stream: true })
    for await (const event of stream) if (event.type === 'response.created') store.end(providerId())
    expect(made()).toHaveLength(1)
  })

  test('is refused when it cannot be paid', async () => {
    await start()
    limits.balances.set('token/t/money', 100)
    const answer = await fetch(`${running.url}/v1/responses`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'gpt', input: 'Go', background: true }),
    })
    expect(answer.status).toBe(402)
    expect(running.seen).toEqual([])
  })
})
