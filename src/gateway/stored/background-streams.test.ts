/** Responses in the background whose caller leaves, or whose stream or call ends before the response does. */
import { afterEach, describe, expect, test } from 'bun:test'
import { StoredResponses } from '../../../test/fakes/stored-responses.ts'
import { eventually } from '../../../test/support/eventually.ts'
import { compilePolicySet } from '../../policies/chain.ts'
import { InMemoryLimits } from '../../usage/testing/in-memory-limits.ts'
import { startTestGateway, type TestGateway } from '../testing/gateway.ts'
import { price } from '../testing/translating.ts'
import { testModel, testPolicy } from '../testing/worker.ts'

const money = 10_000_000
/** 11 tokens in, 7 out, a thousand nano-dollars each. */
const cost = 18 * 1000

let running: TestGateway
let store: StoredResponses
let limits: InMemoryLimits
let secret: string
let hook: Bun.Server<unknown> | null = null
afterEach(async () => {
  await running.stop()
  await hook?.stop(true)
  hook = null
})

type Upstream = (request: Request, body: string) => Response | Promise<Response>

/** `made` answers the request that makes a response; the store answers all others. */
async function start(
  made: Upstream = (request, body) => store.answer(request, body),
  settings: Parameters<typeof startTestGateway>[1] = {},
): Promise<void> {
  store = new StoredResponses()
  const isMade = (request: Request) => request.method === 'POST' && request.url.endsWith('/responses')
  running = await startTestGateway(
    (request, body) => (isMade(request) ? made(request, body) : store.answer(request, body)),
    { drain_seconds: 0, webhook_addresses: 'any', ...settings },
  )
  limits = new InMemoryLimits({ 'token/t/money': money, 'token/t/requests': 5 })
  Object.assign(running.worker, { usageLimits: limits })
  running.worker.catalog.push(testModel({ id: 'gpt', price: price(1), maxOutputTokens: 50 }))
  const accounts = [{ id: 't', maxRequests: 5, maxBudget: money, rateLimitRpm: null, rateLimitTpm: null }]
  secret = running.worker.addToken({ accounts })
}

/** A webhook judges every answer, and allows it after `answer`. */
function judge(answer: () => Promise<unknown>): void {
  hook = Bun.serve({
    port: 0,
    async fetch() {
      await answer()
      return Response.json({ verdict: 'allow' })
    },
  })
  const config = { url: `http://127.0.0.1:${hook.port}/`, timeout_ms: 5000 }
  running.worker.policies = compilePolicySet([
    testPolicy({ id: 'hook', kind: 'webhook', stages: ['pre_response'], config }),
  ])
}

const post = (members: object = {}, signal: AbortSignal | null = null) =>
  fetch(`${running.url}/v1/responses`, {
    method: 'POST',
    signal,
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'gpt', input: 'Take your time', background: true, ...members }),
  })
const left = () => limits.balances.get('token/t/money') ?? 0
const outcomes = () => running.worker.journal.outcomes()
const looks = () => running.seen.filter(({ request }) => request.method === 'GET').length
const held = () =>
  [...running.worker.journal.opened.values()]
    .flatMap(({ settlements }) => settlements ?? [])
    .find(({ account }) => account === 'token/t/money')?.amount ?? 0
const endAll = () => {
  for (const id of store.responses.keys()) store.end(id)
}
const streamed = (body: ReadableStream<Uint8Array>) =>
  new Response(body, { headers: { 'content-type': 'text/event-stream' } })

/** The store's stream up to its first two frames, then whatever `ends` does. */
function brokenAfter(ends: (controller: ReadableStreamDefaultController<Uint8Array>) => void): Upstream {
  return (request, body) => {
    const whole = store.answer(request, body).body?.getReader()
    let reads = 0
    return streamed(
      new ReadableStream({
        async pull(controller) {
          reads += 1
          const { value } = reads <= 2 ? ((await whole?.read()) ?? {}) : {}
          if (value !== undefined) return controller.enqueue(value)
          await whole?.cancel()
          await Bun.sleep(20)
          ends(controller)
        },
      }),
    )
  }
}

async function costsItsUsage(): Promise<void> {
  endAll()
  await eventually(() => outcomes().length === 1)
  expect(outcomes()).toMatchObject([{ verdict: 'allow', reason_code: 'ok' }])
  expect(left()).toBe(money - cost)
}

describe('a response in the background whose caller leaves', () => {
  test('before its stream has named it is awaited and followed', async () => {
    const named = Promise.withResolvers<void>()
    await start((request, body) => {
      const whole = store.answer(request, body).body?.getReader()
      return streamed(
        new ReadableStream({
          async start(controller) {
            controller.enqueue(Buffer.from(': keep-alive\n\ndata: {"type":"keepalive"}\n\n'))
            await named.promise
            controller.enqueue((await whole?.read())?.value ?? new Uint8Array(0))
          },
          cancel: () => whole?.cancel(),
        }),
      )
    })
    const leaving = new AbortController()
    const call = post({ stream: true }, leaving.signal).catch((thrown: unknown) => thrown)
    await eventually(() => running.seen.length === 1)
    await Bun.sleep(150)
    leaving.abort()
    await call
    await Bun.sleep(50)
    expect([outcomes(), running.aborted()]).toEqual([[], 0])
    named.resolve()
    await eventually(() => running.aborted() === 1)
    await costsItsUsage()
  })

  test('before a call that fails is not made again', async () => {
    await start(
      async () => {
        await Bun.sleep(250)
        return new Response('{}', { status: 500 })
      },
      { path_retries: 2 },
    )
    const leaving = new AbortController()
    const call = post({}, leaving.signal).catch((thrown: unknown) => thrown)
    await eventually(() => running.seen.length === 1)
    await Bun.sleep(100)
    leaving.abort()
    await call
    await eventually(() => outcomes().length === 1)
    expect([outcomes()[0]?.reason_code, running.seen.length]).toEqual(['client.left', 1])
  })

  test('while a policy judges the queued answer is followed after the decision', async () => {
    await start()
    judge(() => Bun.sleep(400))
    const leaving = new AbortController()
    const call = post({}, leaving.signal).catch((thrown: unknown) => thrown)
    await eventually(() => store.responses.size === 1)
    await Bun.sleep(100)
    leaving.abort()
    await call
    await eventually(() => looks() === 1)
    await costsItsUsage()
    expect(outcomes()[0]?.details?.policy_results).toMatchObject([{ policy_id: 'hook', verdict: 'allow' }])
  })

  test('while a policy holds its stream costs its usage', async () => {
    await start()
    judge(() => Bun.sleep(10))
    const leaving = new AbortController()
    const call = post({ stream: true }, leaving.signal).catch((thrown: unknown) => thrown)
    await eventually(() => store.responses.size === 1)
    await Bun.sleep(150)
    leaving.abort()
    await call
    await Bun.sleep(50)
    expect([outcomes(), running.aborted()]).toEqual([[], 0])
    endAll()
    await eventually(() => outcomes().length === 1)
    expect(outcomes()).toMatchObject([{ reason_code: 'client.left' }])
    expect(left()).toBe(money - cost)
  })
})

describe('a response in the background whose stream ends before it', () => {
  test('is followed when the connection to the provider breaks', async () => {
    await start(brokenAfter((controller) => controller.error(new Error('reset'))))
    expect(await (await post({ stream: true })).text()).toContain('"type":"error"')
    expect(outcomes()).toEqual([])
    await costsItsUsage()
  })

  test('is followed when the provider sends an error', async () => {
    const error = 'data: {"type":"error","sequence_number":2,"code":"server_error","message":"Broken"}\n\n'
    await start(
      brokenAfter((controller) => {
        controller.enqueue(Buffer.from(error))
        controller.close()
      }),
    )
    expect(await (await post({ stream: true })).text()).toContain('Broken')
    expect(outcomes()).toEqual([])
    await costsItsUsage()
  })

  test('is followed when the provider is silent for too long', async () => {
    await start(undefined, { idle_timeout_seconds: 1 })
    expect(await (await post({ stream: true })).text()).toContain('"type":"error"')
    expect(outcomes()).toEqual([])
    await costsItsUsage()
  })

  test('is followed and not made again when the stream breaks while a policy holds it', async () => {
    await start(
      brokenAfter((controller) => controller.error(new Error('reset'))),
      { path_retries: 2 },
    )
    judge(() => Bun.sleep(1))
    const answer = await post({ stream: true })
    await answer.text()
    expect([outcomes(), store.responses.size]).toEqual([[], 1])
    await costsItsUsage()
  })

  test('is charged its bound when the gateway stops', async () => {
    await start()
    const answer = await post({ stream: true })
    const bound = held()
    const [text] = await Promise.all([answer.text(), running.gateway.drain()])
    expect(text).toContain('"type":"error"')
    expect(outcomes()).toMatchObject([{ reason_code: 'gateway.drained' }])
    expect(left()).toBe(money - bound)
  })

  test('is charged its bound when it is not at its end in time', async () => {
    await start(undefined, { total_timeout_seconds: 1 })
    const answer = await post({ stream: true })
    const bound = held()
    expect(await answer.text()).toContain('"type":"error"')
    await eventually(() => outcomes().length === 1)
    expect(outcomes()).toMatchObject([{ reason_code: 'provider.timeout' }])
    expect(left()).toBe(money - bound)
  })

  test('is cancelled at the provider when its token is revoked', async () => {
    await start()
    const answer = await post({ stream: true })
    const bound = held()
    running.gateway.cutTokens([...running.worker.tokens.keys()])
    expect(await answer.text()).toContain('"type":"error"')
    await eventually(() => [...store.responses.values()][0]?.status === 'cancelled')
    expect(outcomes()).toMatchObject([{ reason_code: 'token.revoked' }])
    expect(left()).toBe(money - bound)
  })

  test('is cancelled at the provider when its token is revoked while a policy judges its answer', async () => {
    await start()
    judge(() => Bun.sleep(400))
    const call = post()
    await eventually(() => store.responses.size === 1)
    await Bun.sleep(100)
    running.gateway.cutTokens([...running.worker.tokens.keys()])
    expect((await call).status).toBe(401)
    await eventually(() => [...store.responses.values()][0]?.status === 'cancelled')
    expect(outcomes()).toMatchObject([{ reason_code: 'token.revoked' }])
  })
})

test('counts responses in the background when they are admitted, and gives back those that were refused', async () => {
  const gate = Promise.withResolvers<void>()
  await start(async (request, body) => {
    await gate.promise
    return store.answer(request, body)
  })
  Object.assign(running.worker, { usageLimits: new InMemoryLimits({}) })
  secret = running.worker.addToken({})
  const statuses: number[] = []
  const calls = Array.from({ length: 103 }, async () => {
    const { status } = await post()
    statuses.push(status)
  })
  await eventually(() => statuses.length === 3 && running.seen.length === 100)
  expect(statuses).toEqual([503, 503, 503])
  gate.resolve()
  await Promise.all(calls)
  endAll()
  await eventually(() => outcomes().filter(({ reason_code }) => reason_code === 'ok').length === 100)
  expect((await post()).status).toBe(200)
})
