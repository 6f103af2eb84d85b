import { afterEach, expect, test } from 'bun:test'
import { completion, question, startTestGateway, type TestGateway } from '../testing/gateway.ts'

let gateway: TestGateway
afterEach(() => gateway.stop())

const count = async (name: string): Promise<number> => {
  const text = await gateway.gateway.metrics().metrics()
  const line = text.split('\n').find((each) => each.startsWith(`${name} `))
  return Number(line?.slice(name.length + 1) ?? Number.NaN)
}

test('counts usage by model and refusals by code', async () => {
  gateway = await startTestGateway(() => Response.json(completion))
  expect(await count('gatehouse_cost_usd_total')).toBe(0)
  await (await gateway.chat(question)).text()
  await (await gateway.chat(question, { secret: 'nobody' })).text()
  expect(await count('gatehouse_tokens_total{direction="input"}')).toBe(11)
  expect(await count('gatehouse_tokens_total{direction="output"}')).toBe(7)
  expect(await count('gatehouse_refusals_total{code="invalid_api_token"}')).toBe(1)
  expect(await count('gatehouse_request_duration_seconds_count{family="chat"}')).toBe(2)
})

test('shows a path that keeps failing as an open circuit', async () => {
  gateway = await startTestGateway(() => new Response('no', { status: 500 }), { circuit_failures: 1, path_retries: 0 })
  expect(await count('gatehouse_circuits_open')).toBe(0)
  await (await gateway.chat(question)).text()
  expect(await count('gatehouse_circuits_open')).toBe(1)
  const target = '{provider="upstream",model="*"}'
  expect(await count(`gatehouse_target_calls${target}`)).toBe(1)
  expect(await count(`gatehouse_target_error_ratio${target}`)).toBe(1)
  expect(await count(`gatehouse_target_in_flight${target}`)).toBe(0)
  expect(await count('gatehouse_upstream_errors_total{reason="provider.error"}')).toBe(1)
})
