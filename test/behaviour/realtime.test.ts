/** Realtime sessions through the executable: recorded once, ended by a revocation, settled after a kill. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import {
  answering,
  clientOf,
  type RealtimeProvider,
  spoken,
  startRealtimeProvider,
} from '../../src/gateway/testing/realtime.ts'
import { openSocket } from '../../src/gateway/testing/socket.ts'
import { api, createToken, revoke } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'
import { isAlive, signal } from '../support/processes.ts'
import { eventsInLedger } from '../support/recorded.ts'

setDefaultTimeout(120_000)

let provider: RealtimeProvider
let gatehouse: Gatehouse
beforeAll(async () => {
  provider = startRealtimeProvider()
  gatehouse = await startGatehouse({ upstream: provider })
}, 240_000)
afterAll(async () => {
  await gatehouse?.stop()
  await provider?.stop()
})

async function connect(fields: object = {}) {
  const { id, token_value: secret } = await createToken(gatehouse, fields)
  const address = `${gatehouse.gatewayUrl.replace('http', 'ws')}/v1/realtime?model=gpt-realtime`
  return { id, client: clientOf(await openSocket(address, { authorization: `Bearer ${secret}` })) }
}
const outcomesOf = (tokenId: string) =>
  eventsInLedger(gatehouse).filter(
    ({ event_type, event_attribution: by }) => event_type === 'gateway.request.outcome' && by?.token_id === tokenId,
  )

test('a response has one outcome with its cost, and a policy that is saved meanwhile holds for the next', async () => {
  provider.script.on = answering((count) => spoken({ id: `resp_a${count}`, words: ['a secret word'] }))
  const { id, client } = await connect()
  client.send({ type: 'response.create' })
  expect(await client.next('response.done')).toMatchObject({ response: { status: 'completed' } })
  await until('the outcome is recorded', () => outcomesOf(id).length === 1)
  expect(outcomesOf(id)).toMatchObject([
    { reason_code: 'ok', event_cost_attribution: { input_tokens: 40, output_tokens: 20, cost: 0.00204 } },
  ])
  const config = { terms: ['secret word'], action: 'block' }
  const body = { name: 'terms', kind: 'term-filter', stages: ['pre_response'], config, targets: { tokens: [id] } }
  expect((await api(gatehouse, '/v1/policies', { body })).status).toBe(201)
  await until('the policy holds', async () => {
    client.send({ type: 'response.create' })
    const { response } = await client.next('response.done')
    return JSON.stringify(response).includes('content_filter')
  })
  client.socket.close()
})

test('a revocation ends the session with 1008', async () => {
  const { id, client } = await connect()
  await client.next('session.created')
  const revoked = performance.now()
  await revoke(gatehouse, id)
  expect(await client.next('error')).toMatchObject({ error: { code: 'invalid_api_token' } })
  expect((await client.socket.ended).code).toBe(1008)
  expect(performance.now() - revoked).toBeLessThan(3000)
})

test('a gateway that is killed within a response leaves one outcome, with the whole reservation', async () => {
  provider.script.on = answering(() => spoken({ id: 'resp_killed' }).slice(0, 6))
  const { id, client } = await connect({ max_budget: 100 })
  client.send({ type: 'response.create' })
  await client.next('response.output_audio.delta')
  const pid = gatehouse.gatewayPid()
  signal(pid, 'SIGKILL')
  await until('it is gone', () => !isAlive(pid))
  await until('the outcome is recorded', () => outcomesOf(id).length === 1, { withinMs: 60_000 })
  expect(outcomesOf(id)).toMatchObject([
    { reason_code: 'gateway.interrupted', event_cost_attribution: { estimated: true } },
  ])
  // The window of the model at the price of sound, and the most that it answers.
  expect(outcomesOf(id)[0]?.event_cost_attribution?.cost).toBeGreaterThan(1)
})
