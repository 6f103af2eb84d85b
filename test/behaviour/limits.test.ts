/** Limits a minute and prices from outside: what callers are told, on one gateway and on three. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { z } from 'zod'
import { chatAnswer } from '../fakes/chat.ts'
import { type FakeUpstream, jsonReply, startFakeUpstream } from '../fakes/upstream.ts'
import { createdToken } from '../support/answers.ts'
import { api, chat, createToken, expectAnswer, installation } from '../support/client.ts'
import { type Gatehouse, operate, startGatehouse } from '../support/harness.ts'
import { type MoreGateway, startMoreGateway } from '../support/more-gateways.ts'
import { eventsOfRequest, outcomesOf } from '../support/recorded.ts'

setDefaultTimeout(120_000)

let upstream: FakeUpstream
let gatehouse: Gatehouse
const more: MoreGateway[] = []

beforeAll(async () => {
  upstream = await startFakeUpstream()
  gatehouse = await startGatehouse({ upstream })
}, 240_000)
afterAll(async () => {
  await Promise.all(more.map((gateway) => gateway[Symbol.asyncDispose]()))
  await gatehouse?.stop()
  await upstream?.close()
})

const madeSchema = z.looseObject({ id: z.uuid(), name: z.string() })
/** Under a name of its own: a test that is tried again finds nothing in its way. */
const make = async (path: string, limits: object) =>
  expectAnswer(await api(gatehouse, path, { body: { name: crypto.randomUUID(), ...limits } }), 201, madeSchema)
const refusalSchema = z.object({ error: z.object({ code: z.string(), type: z.string(), message: z.string() }) })

async function refusal(answer: Response) {
  const { error } = refusalSchema.parse(await answer.json())
  return { status: answer.status, code: error.code, type: error.type, message: error.message }
}

/** The gateway of the installation and two beside it, started once. */
async function threeGateways(): Promise<Gatehouse[]> {
  while (more.length < 2) more.push(await startMoreGateway(gatehouse, `more-${more.length}`))
  return [gatehouse, ...more.map(({ url }) => ({ ...gatehouse, gatewayUrl: url }))]
}

const derive = async (id: string, how: 'clone' | 'rotate', body: object = {}) =>
  expectAnswer(await api(gatehouse, `/v1/tokens/${id}/${how}`, { body }), 201, createdToken)

test('a consumer group answers 429 with Retry-After, an access policy 503, and the provider receives neither', async () => {
  const { teamId } = await installation(gatehouse)
  const token = await createToken(gatehouse, { bindings: { team_id: teamId } })
  await make('/v1/consumer-groups', { requests_per_minute: 2, members: { tokens: [token.id] } })
  const policy = await make('/v1/access-policies', { requests_per_minute: 1 })
  const slow = await createToken(gatehouse, { access_policy_ids: [policy.id] })
  upstream.forget()
  const statuses: number[] = []
  for (let index = 0; index < 3; index++) statuses.push((await chat(gatehouse, { token: token.token_value })).status)
  expect(statuses).toEqual([200, 200, 429])
  const grouped = await chat(gatehouse, { token: token.token_value })
  expect(Number(grouped.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(grouped.headers.get('x-should-retry')).toBeNull()
  expect(await refusal(grouped)).toMatchObject({
    code: 'consumer_group_rate_limit_exceeded',
    type: 'rate_limit_exceeded',
  })
  expect((await chat(gatehouse, { token: slow.token_value })).status).toBe(200)
  const limited = await chat(gatehouse, { token: slow.token_value })
  expect(Number(limited.headers.get('retry-after'))).toBeGreaterThan(0)
  const told = await refusal(limited)
  expect(told).toMatchObject({ status: 503, code: 'usage_authorization_rate_limited', type: 'service_unavailable' })
  expect(told.message).toContain(`token/${slow.id}`)
  expect(told.message).not.toContain(slow.token_value)
  expect(upstream.calls).toHaveLength(3)
})

test('an access policy limits each token or all tokens together, and clones share the rate of their source', async () => {
  const gateways = await threeGateways()
  const each = await make('/v1/access-policies', { requests_per_minute: 3 })
  const shared = await make('/v1/access-policies', { requests_per_minute: 3, scope: 'shared' })
  const served = async (policy: string, cloned: boolean) => {
    const first = await createToken(gatehouse, { access_policy_ids: [policy] })
    const second = cloned
      ? await derive(first.id, 'clone')
      : await createToken(gatehouse, { access_policy_ids: [policy] })
    const statuses = await Promise.all(
      Array.from({ length: 24 }, async (_, index) => {
        const { token_value: token } = index % 2 === 0 ? first : second
        const answer = await chat(gateways[index % 3] ?? gatehouse, { token })
        await answer.text()
        return answer.status
      }),
    )
    return statuses.filter((status) => status === 200).length
  }
  expect(await served(each.id, false)).toBe(6)
  expect(await served(each.id, true)).toBe(3)
  expect(await served(shared.id, false)).toBe(3)
})

test('a limit of 100 requests a minute admits exactly 100 of 500 on three gateways at once', async () => {
  const gateways = await threeGateways()
  const policy = await make('/v1/access-policies', { requests_per_minute: 100 })
  const { token_value: token } = await createToken(gatehouse, { access_policy_ids: [policy.id] })
  const ask = async (index: number) => {
    const answer = await chat(gateways[index % 3] ?? gatehouse, { token })
    await answer.text()
    return answer.status
  }
  const statuses = await Promise.all(Array.from({ length: 500 }, (_, index) => ask(index)))
  const count = (status: number) => statuses.filter((each) => each === status).length
  expect([count(200), count(503)]).toEqual([100, 400])
})

test("a rotation does not renew a rate limit, and clones share their source's exactly", async () => {
  const gateways = await threeGateways()
  const source = await createToken(gatehouse, { rate_limit_rpm: 7 })
  const clones = [await derive(source.id, 'clone'), await derive(source.id, 'clone', { rate_limit_rpm: 2 })]
  const rotated = await derive(source.id, 'rotate', { grace_period_seconds: 600 })
  const again = [await derive(clones[0]?.id ?? '', 'rotate', { grace_period_seconds: 600 })]
  const late = await derive(rotated.id, 'clone')
  const tokens = [source, ...clones, rotated, ...again, late]
  const ask = async (index: number) => {
    const token = tokens[index % tokens.length] ?? source
    const answer = await chat(gateways[index % 3] ?? gatehouse, { token: token.token_value })
    await answer.text()
    return answer.status
  }
  const statuses = await Promise.all(Array.from({ length: 10 * tokens.length }, (_, index) => ask(index)))
  const count = (status: number) => statuses.filter((each) => each === status).length
  expect([count(200), count(503)]).toEqual([7, 10 * tokens.length - 7])
  const { token_value: last } = await derive(rotated.id, 'rotate')
  expect((await chat(gatehouse, { token: last })).status).toBe(503)
})

test('a rate limit lowered by an update applies to the clones too', async () => {
  const source = await createToken(gatehouse, { rate_limit_rpm: 100 })
  const clone = await derive(source.id, 'clone')
  expect((await chat(gatehouse, { token: clone.token_value })).status).toBe(200)
  const lowered = await api(gatehouse, `/v1/tokens/${source.id}`, { method: 'PATCH', body: { rate_limit_rpm: 2 } })
  expect(lowered.status).toBe(200)
  const statuses: number[] = []
  for (let index = 0; index < 3; index++) statuses.push((await chat(gatehouse, { token: clone.token_value })).status)
  expect(statuses).toEqual([200, 503, 503])
})

test('an answer is priced by the embedded table to the nano-dollar, with the source of the price', async () => {
  const { teamId } = await installation(gatehouse)
  const { token_value: token } = await createToken(gatehouse, { bindings: { team_id: teamId } })
  const usage = { prompt_tokens: 1000, completion_tokens: 7, total_tokens: 1007 }
  upstream.next(jsonReply(chatAnswer({ model: 'gpt-4o-mini', usage })))
  const answer = await chat(gatehouse, { token, model: 'gpt-4o-mini', requestId: 'priced-by-the-table' })
  expect(answer.status).toBe(200)
  const [outcome] = outcomesOf(await eventsOfRequest(gatehouse, 'priced-by-the-table'), 'priced-by-the-table')
  expect(outcome?.event_cost_attribution).toMatchObject({
    currency: 'USD',
    cost: (1000 * 150 + 7 * 600) / 1e9,
    estimated: false,
    price_source: expect.stringMatching(/^genai-prices .*\(\d{4}-\d{2}-\d{2}\)$/),
    spend_owner: `team:${teamId}`,
  })
})

test('a model shows its price and the source of it', async () => {
  const table = await api(gatehouse, '/v1/catalog/models/gpt-4o-mini/price')
  expect(table.body).toMatchObject({
    provider: 'openai',
    price: { tiers: [{ input_per_million: 0.15, output_per_million: 0.6 }] },
  })
  const simulated = await api(gatehouse, '/v1/catalog/models/simulator%2Fecho/price')
  expect(simulated.body).toMatchObject({
    price: { source: 'operator', tiers: [{ input_per_million: 1, output_per_million: 1 }] },
  })
})

test('the price of a model is that of its first target', async () => {
  const targets = [{ provider: 'openai', price: { input_per_million: 7, output_per_million: 8 } }]
  await api(gatehouse, '/v1/catalog/models', { body: { id: 'priced-at-its-target', targets } })
  const { body } = await api(gatehouse, '/v1/catalog/models/priced-at-its-target/price')
  expect(body).toMatchObject({ price: { source: 'operator', date: null, tiers: [{ input_per_million: 7 }] } })
  const shown = await operate(gatehouse, 'model', 'get', 'priced-at-its-target')
  expect(shown.stdout).toMatch(/^effective_prices\.0\.price\.input_per_million +7$/m)
  expect(shown.stdout).toMatch(/^effective_prices\.0\.source +operator$/m)
})

test('the command line manages limits', async () => {
  const made = await operate(gatehouse, 'budget', 'create', '--name', 'Research', '--max-budget', '12.5', '--json')
  expect(made.code).toBe(0)
  const { id } = madeSchema.parse(JSON.parse(made.stdout))
  expect((await operate(gatehouse, 'budget', 'list')).stdout).toContain('Research')
  expect((await operate(gatehouse, 'budget', 'delete', id)).code).toBe(2)
  expect((await operate(gatehouse, 'budget', 'delete', id, '--yes')).code).toBe(0)
  expect((await operate(gatehouse, 'budget', 'get', id)).code).toBe(1)
  const { name } = await make('/v1/access-policies', { requests_per_minute: 1 })
  expect((await operate(gatehouse, 'access-policy', 'list')).stdout).toContain(name)
  expect((await operate(gatehouse, 'consumer-group', 'list', '--json')).code).toBe(0)
})
