/** Which of a model's targets answers: retries, fallbacks, circuits, and what the caller gets where all of them fail. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { createServer } from 'node:net'
import {
  type FakeUpstream,
  jsonReply,
  type Reply,
  startFakeUpstream,
  streamReply,
} from '../../../test/fakes/upstream.ts'
import { eventually } from '../../../test/support/eventually.ts'
import type { Settings } from '../../config.ts'
import { compilePolicySet } from '../../policies/chain.ts'
import { question, startTestGateway, type TestGateway } from '../testing/gateway.ts'
import { testModel, testPolicy, testProvider } from '../testing/worker.ts'

let primary: FakeUpstream
let fallback: FakeUpstream
let running: TestGateway

async function start(settings: Partial<Settings> = {}) {
  running = await startTestGateway(() => new Response(), settings)
  running.worker.upstreams.splice(
    0,
    1,
    testProvider({ id: 'p1', name: 'one', baseUrl: primary.baseUrl, allowUnlistedModels: false }),
    testProvider({ id: 'p2', name: 'two', baseUrl: fallback.baseUrl, allowUnlistedModels: false }),
  )
  running.worker.catalog.push(
    testModel({ id: 'main', providerId: 'p1', upstreamModel: 'main-up', fallbacks: ['spare'] }),
    testModel({ id: 'spare', providerId: 'p2', upstreamModel: 'spare-up' }),
    testModel({ id: 'alone', providerId: 'p1', upstreamModel: 'main-up' }),
  )
}

beforeEach(async () => {
  primary = await startFakeUpstream()
  fallback = await startFakeUpstream()
})
afterEach(async () => {
  await running.stop()
  await primary.close()
  await fallback.close()
})

const ask = (model = 'main', more: object = {}, init: Parameters<TestGateway['chat']>[1] = {}) =>
  running.chat({ ...question, model, ...more }, init)
const failing = (status: number, headers: Record<string, string> = {}): Reply => ({
  ...jsonReply(Buffer.from(`{"error":{"message":"status ${status}"}}`)),
  status,
  headers: { 'content-type': 'application/json', ...headers },
})
async function expectUnreachable(answer: Response) {
  expect(answer.status).toBe(502)
  expect(await answer.json()).toMatchObject({ error: { code: 'provider_primary_path_error' } })
}
const attempts = () =>
  running.worker.journal
    .attempts()
    .map(({ reason_code, details }) => [details?.provider, reason_code, details?.status ?? null])
const models = ({ calls }: FakeUpstream) => calls.map(({ model }) => model)

for (const status of [408, 409, 429, 500, 503, 529]) {
  test(`retries a ${status} on its path, then on the fallback, and records each attempt`, async () => {
    await start()
    primary.when('main-up', failing(status))
    const answer = await ask()
    expect(answer.status).toBe(200)
    expect(await answer.json()).toMatchObject({ object: 'chat.completion' })
    expect([models(primary), models(fallback)]).toEqual([['main-up', 'main-up'], ['spare-up']])
    expect(attempts()).toEqual([
      ['one', 'provider.error', status],
      ['one', 'provider.error', status],
      ['two', 'ok', 200],
    ])
    const [outcome] = running.worker.journal.outcomes()
    expect(outcome).toMatchObject({
      verdict: 'allow',
      details: { model: 'main', provider: 'two', attempts: 3 },
      event_cost_attribution: { provider: 'two', model: 'spare' },
    })
  })
}

for (const status of [400, 401, 403, 404, 422]) {
  test(`does not retry a ${status}, which only the caller can correct`, async () => {
    await start()
    primary.when('main-up', failing(status))
    expect((await ask()).status).toBe(status)
    expect([primary.calls.length, fallback.calls.length]).toEqual([1, 0])
  })
}

test('sends each path the same request with its own model and Idempotency-Key', async () => {
  await start()
  primary.when('main-up', failing(500))
  const body = '{"model" : "main", "messages":[], "unknown": 1.0}'
  await running.chat(body, { headers: { 'idempotency-key': 'key-1' } })
  const sent = [...primary.calls, ...fallback.calls]
  expect(sent.map((call) => Buffer.from(call.body).toString())).toEqual([
    body.replace('main', 'main-up'),
    body.replace('main', 'main-up'),
    body.replace('main', 'spare-up'),
  ])
  expect(sent.map((call) => call.headers['idempotency-key'])).toEqual(['key-1', 'key-1', 'key-1'])
})

const unanswered: Record<string, Reply> = {
  'resets before its headers': { stop: { after: 'nothing', by: 'reset' } },
  'closes before its headers': { stop: { after: 'nothing', by: 'close' } },
  'answers with what is no HTTP': { raw: Buffer.from('what?\r\n\r\n') },
}
for (const [what, reply] of Object.entries(unanswered)) {
  test(`answers from the next provider when the first ${what}`, async () => {
    await start()
    primary.when('main-up', reply)
    expect((await ask()).status).toBe(200)
    expect(attempts().at(-1)).toEqual(['two', 'ok', 200])
    expect(attempts()[0]).toEqual(['one', 'provider.unreachable', null])
  })
}

test('answers from the next path when connections are refused, or 502 provider_primary_path_error without one', async () => {
  await start()
  await primary.refuseDuring(async () => {
    expect((await ask()).status).toBe(200)
    await expectUnreachable(await ask('alone'))
  })
  expect((await ask()).status).toBe(200)
})

test('drops a provider that is silent until its deadline, does not retry it, and uses the next one', async () => {
  await start({ first_byte_timeout_seconds: 1 })
  primary.when('main-up', { stop: { after: 'nothing', by: 'stall' } })
  expect((await ask()).status).toBe(200)
  expect(attempts()).toEqual([
    ['one', 'provider.timeout', null],
    ['two', 'ok', 200],
  ])
  await eventually(() => primary.running() === 0)
})

test('does not retry a path whose connection is not established in time', async () => {
  await start({ connect_timeout_seconds: 1 })
  // It takes the call, answers nothing, and is connected to no more.
  const silent = createServer(() => silent.close())
  await new Promise<void>((listening) => silent.listen(0, '127.0.0.1', listening))
  const address = silent.address()
  const baseUrl = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`
  running.worker.upstreams.splice(0, 1, testProvider({ id: 'p1', name: 'one', baseUrl }))
  expect((await ask()).status).toBe(200)
  expect(attempts()).toEqual([
    ['one', 'provider.unreachable', null],
    ['two', 'ok', 200],
  ])
})

test('applies the deadline of the provider instead of the setting', async () => {
  await start({ first_byte_timeout_seconds: 60 })
  running.worker.upstreams.splice(
    0,
    1,
    testProvider({
      id: 'p1',
      name: 'one',
      baseUrl: primary.baseUrl,
      timeouts: { connectSeconds: null, firstByteSeconds: 1, idleSeconds: null, totalSeconds: null },
    }),
  )
  primary.when('main-up', { stop: { after: 'nothing', by: 'stall' } })
  await expectUnreachable(await ask('alone'))
  expect(attempts()).toEqual([['one', 'provider.timeout', null]])
})

test('waits for Retry-After, or uses the next path or answers the caller when it is too long', async () => {
  await start({ retry_wait_seconds: 1 })
  primary.next(failing(429, { 'retry-after-ms': '300' }))
  const asked = performance.now()
  expect((await ask('alone')).status).toBe(200)
  expect(performance.now() - asked).toBeGreaterThanOrEqual(295)
  primary.when('main-up', failing(429, { 'retry-after': '7' }))
  primary.forget()
  expect((await ask()).status).toBe(200)
  const refused = await ask('alone')
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '7'])
  expect(primary.calls.length).toBe(2)
})

test('does not retry a provider that says a retry is pointless, but uses another', async () => {
  await start()
  primary.when('main-up', failing(500, { 'x-should-retry': 'false' }))
  expect((await ask()).status).toBe(200)
  expect([primary.calls.length, fallback.calls.length]).toEqual([1, 1])
})

test('answers with the last error when all paths fail', async () => {
  await start({ path_retries: 0 })
  primary.when('main-up', { stop: { after: 'nothing', by: 'reset' } })
  fallback.when('spare-up', failing(503))
  const answer = await ask()
  expect([answer.status, await answer.text()]).toEqual([503, '{"error":{"message":"status 503"}}'])
  expect(running.worker.journal.outcomes()[0]).toMatchObject({ verdict: 'error', reason_code: 'provider.error' })
})

const frameless: Record<string, Reply> = {
  'breaks off': { ...streamReply(Buffer.from('data: {"choi')), stop: { after: 1, by: 'reset' } },
  'ends at once': streamReply(Buffer.from('')),
}
for (const [what, reply] of Object.entries(frameless)) {
  test(`tries a stream that ${what} before its first frame elsewhere`, async () => {
    await start()
    primary.when('main-up', reply)
    const answer = await ask('main', { stream: true })
    expect([answer.status, (await answer.text()).endsWith('data: [DONE]\n\n')]).toEqual([200, true])
    expect(attempts().map(([provider, reason]) => [provider, reason])).toEqual([
      ['one', 'provider.interrupted'],
      ['one', 'provider.interrupted'],
      ['two', 'ok'],
    ])
  })
}

test('records the policy decisions of the attempt that answered, not of a stream that failed before', async () => {
  await start()
  running.worker.policies = compilePolicySet([
    testPolicy({
      id: 'pii',
      kind: 'pii',
      config: { types: ['email'], action: 'redact' },
      stages: ['post_request'],
    }),
  ])
  primary.when('main-up', streamReply(Buffer.from('')))
  expect((await (await ask('main', { stream: true })).text()).endsWith('data: [DONE]\n\n')).toBe(true)
  expect(running.worker.journal.outcomes()[0]?.details?.policy_results).toMatchObject([{ policy_id: 'pii' }])
})

test('answers an error and retries nowhere when a stream breaks after its first frame', async () => {
  await start()
  const frame = Buffer.from('data: {"choices":[{"index":0,"delta":{"content":"Hello"}}]}\n\n')
  const { promise: until, resolve: begun } = Promise.withResolvers<void>()
  primary.when('main-up', { ...streamReply(frame), stop: { after: 1, by: 'reset', until } })
  const answer = await ask('main', { stream: true })
  begun()
  const text = await answer.text()
  expect(text).toContain('Hello')
  expect(text).toContain('upstream_provider_error')
  expect([primary.calls.length, fallback.calls.length]).toEqual([1, 0])
})

test('answers 502 for an unusable whole answer, charges for it once and retries nowhere', async () => {
  await start()
  primary.when('main-up', jsonReply(Buffer.from('{"choices": [')))
  expect((await ask()).status).toBe(502)
  expect([primary.calls.length, fallback.calls.length]).toEqual([1, 0])
})

test('skips an open circuit until its time is over, then lets one request try', async () => {
  await start({ path_retries: 0, circuit_failures: 2, circuit_open_seconds: 1 })
  primary.when('main-up', failing(500))
  for (let round = 0; round < 5; round++) expect((await ask()).status).toBe(200)
  expect(primary.calls.length).toBe(2)
  expect((await ask('alone')).status).toBe(500)
  expect(primary.calls.length).toBe(3)
  await Bun.sleep(1050)
  primary.when('main-up', jsonReply())
  await Promise.all(Array.from({ length: 5 }, () => ask()))
  expect(primary.calls.length).toBeGreaterThan(3)
  primary.forget()
  expect((await ask()).status).toBe(200)
  expect(primary.calls.length).toBe(1)
})

test('closes the circuit of a path whose answer a policy stopped', async () => {
  await start({ path_retries: 0, circuit_failures: 1, circuit_open_seconds: 1 })
  primary.when('main-up', failing(500))
  await ask()
  primary.when('main-up', jsonReply())
  running.worker.policies = compilePolicySet([
    testPolicy({
      id: 'all',
      kind: 'condition',
      config: { verdict: 'block', reason_code: 'test.all' },
      stages: ['post_request'],
      when: 'response.status == 200',
    }),
  ])
  await Bun.sleep(1050)
  primary.forget()
  for (let round = 0; round < 2; round++) expect((await ask()).status).toBe(400)
  expect(primary.calls.length).toBe(2)
})

test('keeps requests of one session on one path', async () => {
  await start({ path_retries: 0, circuit_failures: 1 })
  const session = { headers: { 'x-session-id': 'session-1' } }
  for (let round = 0; round < 3; round++) await ask('main', {}, session)
  expect([primary.calls.length, fallback.calls.length]).toEqual([3, 0])
  primary.when('main-up', failing(500))
  for (let round = 0; round < 3; round++) await ask('main', {}, session)
  expect([primary.calls.length, fallback.calls.length]).toEqual([4, 3])
})

test('ends at once when the client disconnects before the headers or during a retry delay', async () => {
  await start({ retry_wait_seconds: 30 })
  primary.when('main-up', { stop: { after: 'nothing', by: 'stall' } })
  const leaving = new AbortController()
  const first = ask('main', {}, { signal: leaving.signal }).catch(() => null)
  await eventually(() => primary.running() === 1)
  leaving.abort()
  await first
  await eventually(() => primary.calls[0]?.state === 'cancelled before headers')
  primary.when('main-up', failing(429, { 'retry-after': '20' }))
  const leavingLater = new AbortController()
  const second = ask('main', {}, { signal: leavingLater.signal }).catch(() => null)
  await eventually(() => primary.calls.length === 2 && primary.calls[1]?.state === 'answered')
  await Bun.sleep(30)
  leavingLater.abort()
  await second
  await eventually(() => running.worker.journal.outcomes().length === 2)
  expect(running.worker.journal.outcomes().map(({ reason_code }) => reason_code)).toEqual([
    'client.left',
    'client.left',
  ])
  expect(fallback.calls.length).toBe(0)
})

test('skips a fallback that the token, the family or the gateway cannot use', async () => {
  await start({ path_retries: 0 })
  primary.when('main-up', failing(500))
  const only = running.worker.addToken({ modelFilter: ['main'] })
  expect((await ask('main', {}, { secret: only })).status).toBe(500)
  const bound = running.worker.addToken({ provider: 'one' })
  expect((await ask('main', {}, { secret: bound })).status).toBe(500)
  running.worker.catalog.splice(1, 1, testModel({ id: 'spare', providerId: 'p2', families: ['embeddings'] }))
  expect((await ask()).status).toBe(500)
  running.worker.catalog.splice(1, 1, testModel({ id: 'spare', providerId: 'elsewhere' }))
  expect((await ask()).status).toBe(500)
  expect(fallback.calls.length).toBe(0)
})

test('refuses a token that is revoked during a retry delay', async () => {
  await start({ retry_wait_seconds: 5 })
  primary.when('main-up', failing(429, { 'retry-after-ms': '200' }))
  const secret = running.worker.addToken({ id: 'revoked-meanwhile' })
  const asking = ask('main', {}, { secret })
  await eventually(() => primary.calls.length === 1)
  const hash = new Bun.CryptoHasher('sha256').update(secret).digest('hex')
  running.worker.revocations.add(hash)
  expect((await asking).status).toBe(401)
  expect(running.worker.journal.outcomes()).toMatchObject([{ verdict: 'deny', reason_code: 'invalid_api_token' }])
  expect([primary.calls.length, fallback.calls.length]).toEqual([1, 0])
})
