/** Which target and which key answer a request, and what moves a session. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import type { Settings } from '../../../config.ts'
import type { CatalogModel } from '../../../fleet/protocol/worker.ts'
import type { TargetStrategy } from '../../../providers/catalog/target-strategy.ts'
import type { Provider } from '../../../providers/provider.ts'
import { completion, question, startTestGateway, type TestGateway } from '../../testing/gateway.ts'
import { testModel, testProvider } from '../../testing/worker.ts'

type Answer = (request: Request) => Response | Promise<Response>

let running: TestGateway
/** By the name of the provider: how it answers, and how often it was called. */
let answers: Record<string, Answer>
let calls: Record<string, number>
const ok: Answer = () => Response.json(completion)
const refused = (status: number, headers: Record<string, string> = {}): Answer => {
  return () => Response.json({ error: { message: `status ${status}` } }, { status, headers })
}

beforeEach(() => {
  answers = {}
  calls = {}
})
afterEach(() => running.stop())

/** Three providers `a`, `b` and `c` that one upstream plays by the path of their base URLs. */
async function start(settings: Partial<Settings> = {}) {
  running = await startTestGateway((request) => {
    const name = new URL(request.url).pathname.split('/')[1] ?? ''
    calls[name] = (calls[name] ?? 0) + 1
    return (answers[name] ?? ok)(request)
  }, settings)
  const [first] = running.worker.upstreams.splice(0)
  const base = first?.baseUrl ?? ''
  for (const name of ['a', 'b', 'c']) {
    const provider = { id: `id-${name}`, name, baseUrl: `${base}/${name}`, allowUnlistedModels: false }
    running.worker.upstreams.push(testProvider(provider))
  }
}

function addModel(
  strategy: TargetStrategy,
  members: readonly Partial<CatalogModel>[],
  more: Partial<CatalogModel> = {},
) {
  const targets: CatalogModel[] = []
  for (const each of members) {
    targets.push(testModel({ id: 'shared', strategy, targets, ...more, ...each }))
  }
  const [first] = targets
  if (first === undefined) throw new Error('A model needs a target')
  running.worker.catalog.push(first)
}
const three = [{ providerId: 'id-a' }, { providerId: 'id-b' }, { providerId: 'id-c' }]

async function ask(session?: string, model = 'shared'): Promise<number> {
  const headers: Record<string, string> = session === undefined ? {} : { 'x-session-id': session }
  const answer = await running.chat({ ...question, model }, { headers })
  await answer.text()
  return answer.status
}
const many = async (count: number, session?: (index: number) => string) => {
  for (let index = 0; index < count; index++) expect(await ask(session?.(index))).toBe(200)
}
const counted = () => ['a', 'b', 'c'].map((name) => calls[name] ?? 0)

function withKeys(name: string, keys: readonly string[]): void {
  const index = running.worker.upstreams.findIndex((provider) => provider.name === name)
  const found = running.worker.upstreams[index]
  const [apiKey] = keys
  if (found === undefined || apiKey === undefined) throw new Error('No such provider')
  const provider: Provider = { ...found, apiKey, keys: keys.map((key) => ({ ...found, apiKey: key })) }
  running.worker.upstreams[index] = provider
}

test('uses targets in the order of the record by default', async () => {
  await start()
  addModel('priority', three)
  await many(5)
  expect(counted()).toEqual([5, 0, 0])
})

test('shares requests by weight, and leaves a target of weight 0 for when no other answers', async () => {
  await start({ path_retries: 0 })
  addModel('weighted', [
    { providerId: 'id-a', weight: 3 },
    { providerId: 'id-b', weight: 1 },
    { providerId: 'id-c', weight: 0 },
  ])
  await many(400)
  const [a = 0, b = 0, c = 0] = counted()
  expect(c).toBe(0)
  expect(a).toBeGreaterThan(260)
  expect(b).toBeGreaterThan(60)
  answers.a = refused(500)
  answers.b = refused(500)
  expect(await ask()).toBe(200)
  expect(calls.c).toBe(1)
})

test('uses the cheapest target, and one without a price last', async () => {
  await start()
  const price = (input: number) => ({ ...testPrice, tiers: [{ ...testTier, input }] })
  addModel('lowest_cost', [
    { providerId: 'id-a' },
    { providerId: 'id-b', price: price(9) },
    { providerId: 'id-c', price: price(2) },
  ])
  await many(4)
  expect(counted()).toEqual([0, 0, 4])
  answers.c = refused(503)
  await many(1)
  expect(counted()).toEqual([0, 1, 5])
})
const testTier = {
  fromInputTokens: 0,
  input: 1,
  output: 1,
  reasoning: 1,
  cachedInput: 1,
  cacheWrite: 1,
  cacheWriteHour: 1,
  audioInput: 1,
  audioOutput: 1,
}
const testPrice = { tiers: [testTier], audioHour: null, character: null, toolUse: 0, request: 0, source: 'operator' }

test('avoids a slow target by its latency, and by its calls in flight', async () => {
  for (const strategy of ['lowest_latency', 'least_busy'] as const) {
    await start()
    calls = {}
    answers.a = async () => {
      await Bun.sleep(60)
      return Response.json(completion)
    }
    addModel(strategy, three)
    await Promise.all([1, 2, 3, 4].map(() => many(25)))
    const [a = 0, b = 0, c = 0] = counted()
    expect(a + b + c).toBe(100)
    expect(a).toBeLessThan(25)
    expect(Math.min(b, c)).toBeGreaterThan(10)
    if (strategy === 'lowest_latency') await running.stop()
  }
})

test('uses the next tier only when no target of a lower one can be used, and then the fallbacks', async () => {
  await start({ path_retries: 0 })
  addModel('weighted', [{ providerId: 'id-a' }, { providerId: 'id-b', tier: 2 }], { fallbacks: ['spare'] })
  running.worker.catalog.push(testModel({ id: 'spare', providerId: 'id-c' }))
  await many(10)
  expect(counted()).toEqual([10, 0, 0])
  answers.a = refused(500)
  await many(1)
  expect(counted()).toEqual([11, 1, 0])
  answers.b = refused(429)
  await many(1)
  expect(counted()).toEqual([12, 2, 1])
})

test('keeps each session at one target, on every gateway, and moves it only while that target is out', async () => {
  const first: Record<string, string> = {}
  for (const round of [1, 2]) {
    await start({ path_retries: 0 })
    addModel('least_busy', three)
    for (let session = 0; session < 40; session++) {
      const before = { ...calls }
      await many(3, () => `session-${session}`)
      const used = Object.keys(calls).filter((name) => calls[name] !== before[name])
      expect(used).toHaveLength(1)
      const [name = ''] = used
      if (round === 2) expect(first[`session-${session}`]).toBe(name)
      first[`session-${session}`] = name
    }
    if (round === 1) await running.stop()
  }
  expect(new Set(Object.values(first)).size).toBe(3)
  const session = Object.keys(first).find((name) => first[name] === 'a') ?? ''
  answers.a = refused(503)
  const others = [calls.b ?? 0, calls.c ?? 0]
  expect(await ask(session)).toBe(200)
  expect((calls.b ?? 0) + (calls.c ?? 0)).toBe((others[0] ?? 0) + (others[1] ?? 0) + 1)
  answers.a = ok
  const before = calls.a ?? 0
  expect(await ask(session)).toBe(200)
  expect(calls.a).toBe(before + 1)
})

for (const status of [401, 403, 429]) {
  test(`rests a key that gets ${status}, and answers with the provider's other keys`, async () => {
    await start()
    const used: string[] = []
    answers.a = (request) => {
      const key = request.headers.get('authorization')?.replace('Bearer ', '') ?? ''
      used.push(key)
      return key === 'sk-second-key' && used.length > 3 ? refused(status)(request) : ok(request)
    }
    running.worker.catalog.push(testModel({ id: 'shared', providerId: 'id-a' }))
    withKeys('a', ['sk-first-key', 'sk-second-key', 'sk-third-key'])
    await many(12)
    expect(new Set(used.slice(0, 3)).size).toBe(3)
    expect(used.slice(3).filter((key) => key === 'sk-second-key')).toHaveLength(1)
    const failed = running.worker.journal.attempts().filter(({ details }) => details?.status === status)
    expect(failed).toMatchObject([{ reason_code: 'provider.error', details: { key: 2 } }])
    expect(JSON.stringify([...running.worker.journal.closed.values()])).not.toContain('sk-')
  })
}

test('passes on the refusal of the last key when all are refused', async () => {
  await start()
  answers.a = (request) => refused(401)(request)
  running.worker.catalog.push(testModel({ id: 'shared', providerId: 'id-a' }))
  withKeys('a', ['sk-first-key', 'sk-second-key'])
  expect(await ask()).toBe(401)
  expect(calls.a).toBe(2)
})

test('answers from another target when the key of one is refused, and passes it over afterwards', async () => {
  await start()
  answers.a = refused(401)
  addModel('priority', three)
  await many(3)
  expect(counted()).toEqual([1, 3, 0])
})

test('passes a target over whose rate limit is nearly used up, before it refuses', async () => {
  await start()
  answers.a = () =>
    Response.json(completion, {
      headers: {
        'x-ratelimit-limit-requests': '100',
        'x-ratelimit-remaining-requests': '1',
        'x-ratelimit-reset-requests': '1m0s',
      },
    })
  addModel('priority', three.slice(0, 2))
  await many(3)
  expect(counted()).toEqual([1, 2, 0])
  answers.b = refused(500)
  expect(await ask()).toBe(200)
  expect(calls.a).toBe(2)
})

test('uses only targets of the provider that a token is bound to', async () => {
  await start()
  addModel('weighted', three)
  const secret = running.worker.addToken({ provider: 'b' })
  for (let index = 0; index < 5; index++) {
    expect((await running.chat({ ...question, model: 'shared' }, { secret })).status).toBe(200)
  }
  expect(counted()).toEqual([0, 5, 0])
  const other = running.worker.addToken({ provider: 'none' })
  expect((await running.chat({ ...question, model: 'shared' }, { secret: other })).status).toBe(403)
})
