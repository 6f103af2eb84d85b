/** Rates and budgets for each value of a dimension: on several workers and hosts, and after a kill. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { z } from 'zod'
import { api, createToken, expectAnswer } from '../support/client.ts'
import { eventually, until } from '../support/eventually.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'
import { type MoreGateway, startMoreGateway } from '../support/more-gateways.ts'
import { isAlive, signal } from '../support/processes.ts'

setDefaultTimeout(120_000)

let gatehouse: Gatehouse
let other: MoreGateway

beforeAll(async () => {
  gatehouse = await startGatehouse({ env: { SERVICE_GATEWAY_WORKERS: '2' } })
  other = await startMoreGateway(gatehouse, 'other')
  const dimension = { name: 'customer', source: { kind: 'header', key: 'x-customer-id' } }
  await expectAnswer(await api(gatehouse, '/v1/attribution-dimensions', { body: dimension }), 201, z.looseObject({}))
}, 240_000)
afterAll(async () => {
  await other?.[Symbol.asyncDispose]()
  await gatehouse?.stop()
})

const policySchema = z.looseObject({ id: z.string(), per: z.string() })

async function tokenOf(scope: 'token' | 'shared', requestsPerMinute: number) {
  const body = { name: crypto.randomUUID(), requests_per_minute: requestsPerMinute, scope, per: 'customer' }
  const policy = await expectAnswer(await api(gatehouse, '/v1/access-policies', { body }), 201, policySchema)
  const make = async () =>
    (await createToken(gatehouse, { access_policy_ids: [policy.id], metadata_trust: 'caller' })).token_value
  return { policy, make }
}

async function ask(gateway: string, token: string, customer: string | null): Promise<number> {
  const answer = await fetch(`${gateway}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      ...(customer !== null && { 'x-customer-id': customer }),
    },
    body: JSON.stringify({
      model: 'simulator/lorem',
      max_tokens: 5,
      messages: [{ role: 'user', content: 'hello' }],
    }),
  })
  await answer.text()
  return answer.status
}

const passed = (statuses: readonly number[]): number => statuses.filter((status) => status === 200).length

test('each customer has exactly the rate of the policy, on two workers and another host, after kill -9', async () => {
  const limit = 12
  const { make } = await tokenOf('shared', limit)
  const tokens = [await make(), await make()]
  const gateways = [gatehouse.gatewayUrl, other.url]
  const sum = { acme: 0, globex: 0 }
  const burst = async (customer: keyof typeof sum, count: number) => {
    const asked = Array.from({ length: count }, (_, index) =>
      ask(gateways[index % 2] ?? '', tokens[(index >> 1) % 2] ?? '', customer),
    )
    sum[customer] += passed(await Promise.all(asked))
  }
  const began = Date.now()
  await Promise.all([burst('acme', 5), burst('globex', 3)])
  expect(sum).toEqual({ acme: 5, globex: 3 })
  const pid = gatehouse.gatewayPid()
  signal(pid, 'SIGKILL')
  await until('the worker is gone', () => !isAlive(pid))
  await other.restart()
  await eventually(async () => expect((await fetch(`${gatehouse.gatewayUrl}/readyz`)).status).toBe(200), {
    withinMs: 20_000,
  })
  await eventually(
    async () => {
      await Promise.all([burst('acme', 8), burst('globex', 8)])
      expect(sum).toEqual({ acme: limit, globex: limit })
    },
    { withinMs: 25_000 },
  )
  await Promise.all([burst('acme', 10), burst('globex', 10)])
  // Slots that were used are free again after a minute.
  expect(Date.now() - began).toBeLessThan(60_000)
  expect(sum).toEqual({ acme: limit, globex: limit })
})

test('each customer spends at most a budget for each value, on two workers and another host, through kill -9', async () => {
  const max_budget = 0.0004
  const body = { name: 'each', max_budget, window: 'month', scope: { kind: 'token' }, per: 'customer' }
  const budget = await expectAnswer(
    await api(gatehouse, '/v1/budgets', { body }),
    201,
    z.looseObject({ id: z.string() }),
  )
  const token = (await createToken(gatehouse, { metadata_trust: 'caller', bindings: { budget_id: budget.id } }))
    .token_value
  const gateways = [gatehouse.gatewayUrl, other.url]
  const customers = ['acme', 'globex', null] as const
  const burst = (count: number) =>
    Promise.all(
      customers.flatMap((customer) =>
        Array.from({ length: count }, (_, index) => ask(gateways[index % 2] ?? '', token, customer).catch(() => 0)),
      ),
    )
  const first = burst(30)
  const pid = gatehouse.gatewayPid()
  signal(pid, 'SIGKILL')
  await first
  await until('the worker is gone', () => !isAlive(pid))
  await other.restart()
  await burst(30)
  const valuesSchema = z.object({ values: z.array(z.looseObject({ value: z.string().nullable(), spend: z.number() })) })
  await eventually(
    async () => {
      const statuses = await burst(10)
      expect(new Set(statuses)).toEqual(new Set([402]))
      const { values } = valuesSchema.parse((await api(gatehouse, `/v1/budgets/${budget.id}/values`)).body)
      expect(values.map(({ value }) => value).toSorted()).toEqual(['acme', 'globex', null])
      for (const { spend } of values) {
        expect(spend).toBeGreaterThan(max_budget / 2)
        expect(spend).toBeLessThanOrEqual(max_budget)
      }
    },
    { withinMs: 40_000 },
  )
})

test('with rates for each token, each token has the rate for each customer, and requests without one share it', async () => {
  const { policy, make } = await tokenOf('token', 2)
  const [first, second] = [await make(), await make()]
  const of = async (token: string, customer: string | null) => {
    const statuses: number[] = []
    for (let index = 0; index < 3; index++) statuses.push(await ask(gatehouse.gatewayUrl, token, customer))
    return statuses
  }
  const twoOfThree = [200, 200, 503]
  expect(await of(first, 'acme')).toEqual(twoOfThree)
  expect(await of(first, 'globex')).toEqual(twoOfThree)
  expect(await of(second, 'acme')).toEqual(twoOfThree)
  expect(await of(second, null)).toEqual(twoOfThree)
  const deleted = await api(gatehouse, '/v1/attribution-dimensions', {})
  const { dimensions } = z.looseObject({ dimensions: z.array(z.looseObject({ id: z.string() })) }).parse(deleted.body)
  const refused = await api(gatehouse, `/v1/attribution-dimensions/${dimensions[0]?.id}`, { method: 'DELETE' })
  expect(refused.status).toBe(409)
  expect(JSON.stringify(refused.body)).toContain(`the access policy ${z.string().parse(policy.name)}`)
})
