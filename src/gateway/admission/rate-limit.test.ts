import { afterEach, expect, test } from 'bun:test'
import type { GovernedToken, TokenAccount } from '../../tokens/governed-token.ts'
import type { AccessPolicy, ConsumerGroup, LimitSet } from '../../usage/limits.ts'
import { noLimits } from '../../usage/limits.ts'
import type { SlotBalance } from '../../usage/rate/rate-protocol.ts'
import { noPast } from '../../usage/rate/rates.ts'
import { WorkerRates } from '../../usage/rate/worker-rates.ts'
import { completion, question, startTestGateway, type TestGateway } from '../testing/gateway.ts'

let running: TestGateway
afterEach(() => running.stop())

const group = (members: Partial<ConsumerGroup>): ConsumerGroup => ({
  id: 'g',
  name: 'analysts',
  requestsPerMinute: null,
  tokensPerMinute: null,
  per: null,
  ...members,
})
const policy = (members: Partial<AccessPolicy>): AccessPolicy => ({
  ...group({}),
  id: 'p',
  scope: 'shared',
  models: null,
  providers: null,
  ...members,
})
const account = (members: Partial<TokenAccount>): TokenAccount => ({
  id: 't',
  maxRequests: null,
  maxBudget: null,
  rateLimitRpm: null,
  rateLimitTpm: null,
  ...members,
})

/** A gateway alone with its limits: whatever it asks for is granted, up to `slots`. */
async function start(limits: Partial<LimitSet>, token: Partial<GovernedToken>, slots = 100) {
  running = await startTestGateway(() => Response.json(completion), { drain_seconds: 0 })
  const answer = ({ account, granted, returned, want }: SlotBalance) => ({
    account,
    granted: Math.min(slots, granted + want),
    returned,
    cooling: [],
    absent: 0,
  })
  const rates = new WorkerRates({
    clock: { monotonic: () => performance.now(), host: () => performance.now() },
    process: 'test',
    past: noPast,
    sleep: async () => undefined,
    post: async (balances) => ({ balances: balances.map(answer) }),
  })
  Object.assign(running.worker, { rates })
  Object.assign(running.worker.view, { limits: { ...noLimits, ...limits } })
  const secret = running.worker.addToken(token)
  return (body: unknown = question) => running.chat(body, { secret })
}

test('answers 429 with Retry-After beyond the rate of a consumer group', async () => {
  const ask = await start({ groupsOf: new Map([['user:u', [group({ requestsPerMinute: 2 })]]]) }, { userId: 'u' }, 2)
  expect([(await ask()).status, (await ask()).status]).toEqual([200, 200])
  const refused = await ask()
  expect([refused.status, await refused.json()]).toMatchObject([
    429,
    { error: { code: 'consumer_group_rate_limit_exceeded', type: 'rate_limit_exceeded' } },
  ])
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(refused.headers.get('x-should-retry')).toBeNull()
})

test('counts each value of a dimension for itself, with the requests without a value together', async () => {
  const groupsOf = new Map([['user:u', [group({ requestsPerMinute: 1, per: 'customer' })]]])
  const source = { kind: 'header' as const, key: 'x-customer-id' }
  const dimensions = [{ name: 'customer', source, values: null, required: false, maxValues: 10_000 }]
  await start({ groupsOf, dimensions }, {}, 1)
  const secret = running.worker.addToken({ userId: 'u', metadataTrust: 'caller' })
  const status = async (headers: Record<string, string>) => (await running.chat(question, { secret, headers })).status
  for (const headers of [{ 'x-customer-id': 'acme' }, { 'x-customer-id': 'globex' }, {}]) {
    expect([await status(headers), await status(headers)]).toEqual([200, 429])
  }
  const named = running.worker.journal.outcomes().map((event) => event.event_attribution.dimensions?.customer ?? null)
  expect(named.toSorted()).toEqual(['acme', 'acme', 'globex', 'globex', null, null])
  const distrusted = running.worker.addToken({ userId: 'u' })
  const refused = await running.chat(question, { secret: distrusted, headers: { 'x-customer-id': 'initech' } })
  expect(refused.status).toBe(429)
})

test('answers 503 with Retry-After beyond the rate of an access policy or of the token', async () => {
  const accessPolicies = new Map([['p', policy({ requestsPerMinute: 1 })]])
  const ask = await start({ accessPolicies }, { accessPolicyIds: ['p'] }, 1)
  expect((await ask()).status).toBe(200)
  const refused = await ask()
  expect([refused.status, await refused.json()]).toMatchObject([
    503,
    { error: { code: 'usage_authorization_rate_limited', type: 'service_unavailable' } },
  ])
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  const own = running.worker.addToken({ accounts: [account({ rateLimitRpm: 1 })] })
  expect((await running.chat(question, { secret: own })).status).toBe(200)
  expect((await running.chat(question, { secret: own })).status).toBe(503)
})

test('counts nothing for a request that is refused for another reason', async () => {
  const ask = await start({}, { accounts: [account({ rateLimitRpm: 1 })] }, 1)
  running.worker.journal.full = { open: true }
  expect((await ask()).status).toBe(503)
  running.worker.journal.full = {}
  expect((await ask()).status).toBe(200)
})

test('books tokens a minute by the usage in the answer', async () => {
  // The answer uses 18 tokens, the question is estimated at 3.
  const ask = await start({}, { accounts: [account({ rateLimitTpm: 20 })] }, 20)
  expect((await ask()).status).toBe(200)
  expect((await ask()).status).toBe(503)
})

test('admits one of many concurrent requests without an output limit when the model may use the whole minute', async () => {
  const ask = await start({}, { accounts: [account({ rateLimitTpm: 1000 })] }, 1000)
  const answers = await Promise.all(Array.from({ length: 20 }, () => ask()))
  const statuses = answers.map(({ status }) => status).sort()
  expect(statuses).toEqual([200, ...Array.from({ length: 19 }, () => 503)])
})

test('treats an output limit of 0 as no limit', async () => {
  const ask = await start({}, { accounts: [account({ rateLimitTpm: 1000 })] }, 1000)
  const answers = await Promise.all(Array.from({ length: 20 }, () => ask({ ...question, max_tokens: 0 })))
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
  expect(JSON.parse(running.seen[0]?.body ?? '')).toMatchObject({ max_tokens: 0 })
})

test('admits concurrent requests with output limits as far as the minute allows', async () => {
  const ask = await start({}, { accounts: [account({ rateLimitTpm: 1000 })] }, 1000)
  const answers = await Promise.all(Array.from({ length: 20 }, () => ask({ ...question, max_tokens: 190 })))
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(5)
})

test('refuses a request larger than the whole minute with 400, names both figures and advises no retry', async () => {
  const ask = await start({}, { accounts: [account({ rateLimitTpm: 5 })] }, 5)
  const content = 'A question of more than five tokens, which no minute of this limit can ever hold.'
  const refused = await ask({ ...question, messages: [{ role: 'user', content }] })
  const body = await refused.json()
  expect([refused.status, body]).toMatchObject([
    400,
    { error: { code: 'request_exceeds_rate_limit', type: 'invalid_request_error' } },
  ])
  expect(JSON.stringify(body)).toMatch(/about 2\d tokens.* allows 5 a minute/)
  expect([refused.headers.get('x-should-retry'), refused.headers.get('retry-after')]).toEqual(['false', null])
})

test('restricts a token to the models and providers of its access policy', async () => {
  const models = new Map([['p', policy({ models: ['other*'] })]])
  const ask = await start({ accessPolicies: models }, { accessPolicyIds: ['p'] })
  expect(await (await ask()).json()).toMatchObject({ error: { code: 'tokens.model_not_allowed', param: 'model' } })
  const providers = new Map([['p', policy({ providers: ['elsewhere'] })]])
  Object.assign(running.worker.view, { limits: { ...noLimits, accessPolicies: providers } })
  expect(await (await ask()).json()).toMatchObject({ error: { code: 'tokens.provider_not_allowed' } })
})

test('answers 503 for a limit that was never leased while the control plane is unreachable', async () => {
  const ask = await start({}, { accounts: [account({ rateLimitRpm: 1 })] })
  let now = 0
  const rates = new WorkerRates({
    clock: { monotonic: () => now, host: () => now },
    process: 'test',
    past: noPast,
    sleep: async (milliseconds) => {
      now += milliseconds
    },
    post: async () => {
      throw new Error('unreachable')
    },
  })
  Object.assign(running.worker, { rates })
  expect(await (await ask()).json()).toMatchObject({ error: { code: 'usage_authority_unavailable' } })
})

test("counts a request of a clone on its own limit and on its source's, or on neither", async () => {
  const source = account({ id: 'source', rateLimitRpm: 2 })
  await start({}, {}, 2)
  const ask = (...accounts: TokenAccount[]) => running.chat(question, { secret: running.worker.addToken({ accounts }) })
  const clone = account({ id: 'clone', rateLimitRpm: 1 })
  expect((await ask(clone, source)).status).toBe(200)
  expect((await ask(clone, source)).status).toBe(503)
  expect((await ask(source)).status).toBe(200)
  expect((await ask(source)).status).toBe(503)
  expect((await ask(account({ id: 'other', rateLimitRpm: 1 }), source)).status).toBe(503)
  expect((await ask(account({ id: 'other', rateLimitRpm: 1 }))).status).toBe(200)
})
