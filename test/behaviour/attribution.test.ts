/** Dimensions of attribution from outside: what is refused, what events say, and budgets and rates for each value. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { z } from 'zod'
import { api, createToken } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'

setDefaultTimeout(120_000)

let gatehouse: Gatehouse
let token: string

const question = { model: 'simulator/lorem', max_tokens: 20, messages: [{ role: 'user', content: 'hello' }] }
/** US dollars: the simulator costs one dollar a million tokens. */
const worstCase = (JSON.stringify(question).length + 64 + 16 + 20) * 1e-6

const post = (path: string, body: object) => api(gatehouse, path, { method: 'POST', body })

const ask = (customer: string | null) =>
  fetch(`${gatehouse.gatewayUrl}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      ...(customer !== null && { 'x-customer-id': customer }),
    },
    body: JSON.stringify(question),
  })

const codeSchema = z.looseObject({ error: z.looseObject({ code: z.string() }) })
const codeOf = async (answer: Response) => [answer.status, codeSchema.parse(await answer.json()).error.code]

beforeAll(async () => {
  gatehouse = await startGatehouse({ env: { SERVICE_GATEWAY_WORKERS: '2' } })
  token = (await createToken(gatehouse, { metadata_trust: 'caller' })).token_value
  await post('/v1/attribution-dimensions', {
    name: 'customer',
    source: { kind: 'header', key: 'x-customer-id' },
    max_values: 4,
  })
}, 240_000)
afterAll(() => gatehouse?.stop())

test('no value of a dimension spends more than a budget for each value, and each spends up to it', async () => {
  const max_budget = Number((3 * worstCase).toFixed(9))
  const made = await post('/v1/budgets', {
    name: 'each customer',
    max_budget,
    window: 'month',
    scope: { kind: 'organization' },
    per: 'customer',
  })
  const { id } = z.looseObject({ id: z.string() }).parse(made.body)
  const customers = ['acme', 'globex']
  await eventually(async () => {
    const { body } = await api(gatehouse, `/v1/budgets/${id}`)
    expect(body).toMatchObject({ per: 'customer' })
  })
  const answers = await Promise.all(customers.flatMap((customer) => Array.from({ length: 30 }, () => ask(customer))))
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 402]))
  await eventually(async () => {
    const report = await api(gatehouse, '/v1/usage/report?since=1h&by=dimension:customer')
    const { rows } = z
      .object({
        rows: z.array(z.looseObject({ group: z.record(z.string(), z.string().nullable()), cost: z.number() })),
      })
      .parse(report.body)
    const costs = new Map(rows.map(({ group, cost }) => [group['dimension:customer'], cost]))
    for (const customer of customers) {
      expect(costs.get(customer)).toBeGreaterThan(0)
      expect(costs.get(customer)).toBeLessThanOrEqual(max_budget)
    }
    const { body } = await api(gatehouse, `/v1/budgets/${id}`)
    const total = [...costs.values()].reduce((sum, cost) => sum + cost, 0)
    expect(z.looseObject({ current_spend: z.number() }).parse(body).current_spend).toBeCloseTo(total, 9)
  })
  const events = await eventually(async () => {
    const found = await api(
      gatehouse,
      '/v1/events?since=1h&limit=100&event_type=gateway.request.outcome&dimension=customer%3Dacme',
    )
    const page = z.looseObject({ events: z.array(z.looseObject({})) }).parse(found.body)
    expect(page.events).toHaveLength(30)
    return page.events
  })
  expect(events[0]).toMatchObject({ event_attribution: { dimensions: { customer: 'acme' } } })
})

test('refuses one more value than the dimension allows with 402, while known values go on', async () => {
  expect((await ask('third')).status).toBe(200)
  expect((await ask(null)).status).toBe(200)
  expect(await codeOf(await ask('fifth'))).toEqual([402, 'usage_authorization_too_many_values'])
  expect((await ask('third')).status).toBe(200)
})

test('a limit names a dimension that exists, and a dimension that a limit names cannot be deleted', async () => {
  const unknown = await post('/v1/budgets', {
    name: 'x',
    max_budget: 1,
    window: 'day',
    scope: { kind: 'organization' },
    per: 'nothing',
  })
  expect(unknown.status).toBe(422)
  const { body } = await api(gatehouse, '/v1/attribution-dimensions')
  const [dimension] = z.looseObject({ dimensions: z.array(z.looseObject({ id: z.string() })) }).parse(body).dimensions
  const removed = await api(gatehouse, `/v1/attribution-dimensions/${dimension?.id}`, { method: 'DELETE' })
  expect(removed.status).toBe(409)
  expect(await codeOf(await ask('fifth'))).toEqual([402, 'usage_authorization_too_many_values'])
  const refusedAt = performance.now()
  const changed = await api(gatehouse, `/v1/attribution-dimensions/${dimension?.id}`, {
    method: 'PATCH',
    body: { required: true, max_values: 5 },
  })
  expect(changed.status).toBe(200)
  await eventually(async () => expect((await ask('fifth')).status).toBe(200))
  // A gateway keeps a refusal for 5 s, if its limit does not change.
  expect(performance.now() - refusedAt).toBeLessThan(4500)
  await eventually(async () => expect(await codeOf(await ask(null))).toEqual([422, 'attribution_refused']))
})
