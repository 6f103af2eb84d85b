/** Limits stay exact when the model has several targets, whatever their strategy: three gateways, three providers. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { targetStrategies } from '../../src/providers/catalog/target-strategy.ts'
import { type FakeUpstream, jsonReply, startFakeUpstream } from '../fakes/upstream.ts'
import { api, chat, createToken } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import { executable } from '../support/executable.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'
import { type MoreGateway, startMoreGateway } from '../support/more-gateways.ts'
import { sumsOf } from '../support/recorded.ts'

setDefaultTimeout(180_000)

let upstreams: FakeUpstream[]
let gatehouse: Gatehouse
let more: MoreGateway[]

beforeAll(async () => {
  await executable()
  upstreams = await Promise.all([1, 2, 3].map(() => startFakeUpstream()))
  const [first] = upstreams
  gatehouse = await startGatehouse(first === undefined ? {} : { upstream: first })
  for (const [index, { baseUrl }] of upstreams.entries()) {
    // What each costs differs, so that a wrong bound would show in money.
    const default_price = { input_per_million: index + 1, output_per_million: 10 * (index + 1) }
    const body = { name: `target-${index + 1}`, kind: 'openai', base_url: baseUrl, api_key: 'sk-fake', default_price }
    expect((await api(gatehouse, '/v1/catalog/providers', { body })).status).toBe(201)
  }
  for (const strategy of targetStrategies) {
    const targets = [1, 2, 3].map((number) => ({ provider: `target-${number}`, upstream_model: 'fake-model' }))
    const body = { id: `by-${strategy}`, targets, strategy, max_output_tokens: 100 }
    const made = await api(gatehouse, '/v1/catalog/models', { body })
    expect(made.status).toBe(201)
  }
  more = await Promise.all(['second', 'third'].map((name) => startMoreGateway(gatehouse, name)))
  // One of the three fails now and then, so that requests go on to another target.
  let calls = 0
  const failure = { ...jsonReply(Buffer.from('{"error":{"message":"broken"}}')), status: 500 }
  upstreams[1]?.when('fake-model', () => (++calls % 4 === 0 ? failure : jsonReply()))
  const { token_value: token } = await createToken(gatehouse)
  await until(
    'every gateway has the models',
    async () => count(await sendMany(token, 'by-lowest_latency', 3), 200) === 3,
  )
}, 240_000)
afterAll(async () => {
  for (const gateway of more) await gateway[Symbol.asyncDispose]()
  await gatehouse.stop()
  for (const upstream of upstreams) await upstream.close()
})

const addresses = () => [gatehouse.gatewayUrl, ...more.map(({ url }) => url)]
const count = (statuses: readonly number[], status: number) => statuses.filter((each) => each === status).length
const sendMany = (token: string, model: string, count: number): Promise<number[]> =>
  Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const gatewayUrl = addresses()[index % addresses().length] ?? ''
      const answer = await chat({ ...gatehouse, gatewayUrl }, { token, model, stream: false })
      await answer.text()
      return answer.status
    }),
  )
for (const strategy of targetStrategies) {
  test(`a limit of requests is exact with ${strategy}`, async () => {
    const token = await createToken(gatehouse, { max_requests: 40 })
    const account = `token/${token.id}/requests`
    const sums = () => sumsOf(gatehouse, account)
    const statuses = await sendMany(token.token_value, `by-${strategy}`, 90)
    expect(count(statuses, 200)).toBe(40)
    expect(statuses.filter((status) => status !== 200 && status !== 402 && status !== 429)).toEqual([])
    await until('all is given back', () => Bun.deepEquals(sums(), { settled: 40, outstanding: 0 }))
  })

  test(`a budget is never exceeded with ${strategy}`, async () => {
    const budget = 0.05
    const token = await createToken(gatehouse, { max_budget: budget })
    const account = `token/${token.id}/money`
    const sums = () => sumsOf(gatehouse, account)
    const statuses: number[] = []
    for (let round = 0; round < 5; round++) {
      statuses.push(...(await sendMany(token.token_value, `by-${strategy}`, 60)))
    }
    await until('all is given back', () => sums().outstanding === 0 && sums().settled > 0)
    expect(sums().settled).toBeGreaterThan(0)
    expect(sums().settled).toBeLessThanOrEqual(budget * 1e9)
    expect(count(statuses, 200)).toBeGreaterThan(0)
    expect(statuses.filter((status) => ![200, 402, 403, 429].includes(status))).toEqual([])
  })
}
