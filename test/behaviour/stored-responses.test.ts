/**
 * Stored responses of the real executable: ids after a restart and between workers, owners, background and its spend.
 */
import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import OpenAI from 'openai'
import { z } from 'zod'
import { StoredResponses } from '../fakes/stored-responses.ts'
import { api, createToken, expectAnswer } from '../support/client.ts'
import { eventually, until } from '../support/eventually.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'
import { childrenOf, listensOn } from '../support/processes.ts'
import { eventsOfRequest, outcomesOf, sumsOf } from '../support/recorded.ts'

setDefaultTimeout(120_000)

let store: StoredResponses
let gatehouse: Gatehouse
const provider = Bun.serve({
  port: 0,
  idleTimeout: 0,
  fetch: async (request) => store.answer(request, await request.text()),
})

beforeAll(async () => {
  gatehouse = await startGatehouse({
    upstream: { baseUrl: `http://127.0.0.1:${provider.port}/v1` },
    env: { SERVICE_GATEWAY_WORKERS: '2' },
  })
}, 240_000)
beforeEach(() => {
  store = new StoredResponses()
})
afterAll(async () => {
  await gatehouse?.stop()
  await provider.stop(true)
})

const clientOf = (apiKey: string) => new OpenAI({ apiKey, baseURL: `${gatehouse.gatewayUrl}/v1`, maxRetries: 2 })
const killGateways = () => {
  const port = Number(new URL(gatehouse.gatewayUrl).port)
  for (const pid of childrenOf(gatehouse.supervisorPid)) if (listensOn(pid, port)) process.kill(pid, 'SIGKILL')
}
const named = z.object({ id: z.string() })
const asked = { model: 'gpt-4o-mini', input: 'Hello' }

/** In nano-dollars. */
const costOf = (outcome: { event_cost_attribution?: unknown } | undefined): number =>
  Math.round(z.object({ cost: z.number() }).parse(outcome?.event_cost_attribution).cost * 1e9)

test('a response is read by any worker, and after all of them were killed', async () => {
  const openai = clientOf((await createToken(gatehouse)).token_value)
  const { id } = await openai.responses.create(asked)
  for (let request = 0; request < 8; request++) {
    // Each connection may come to another worker.
    const answer = await fetch(`${gatehouse.gatewayUrl}/v1/responses/${id}`, {
      headers: { authorization: `Bearer ${openai.apiKey}`, connection: 'close' },
    })
    expect([answer.status, named.parse(await answer.json()).id]).toEqual([200, id])
  }
  killGateways()
  await eventually(async () => expect((await openai.responses.retrieve(id)).id).toBe(id))
})

test('a token of another team gets the answer for an unknown id', async () => {
  const openai = clientOf((await createToken(gatehouse)).token_value)
  const { id } = await openai.responses.create(asked)
  const made = await api(gatehouse, '/v1/teams', { body: { name: 'strangers' } })
  const bindings = { team_id: expectAnswer(made, 201, named).id }
  const stranger = clientOf((await createToken(gatehouse, { bindings })).token_value)
  const refusals = await Promise.all(
    [id, 'resp_unknown'].map((each) => stranger.responses.retrieve(each).catch((thrown: unknown) => thrown)),
  )
  for (const refusal of refusals) expect(refusal).toMatchObject({ status: 404, code: 'stored_object_not_found' })
})

test('a response in the background is held in the ledger and settled at its usage', async () => {
  const { id: token, token_value } = await createToken(gatehouse, { max_budget: 1 })
  const openai = clientOf(token_value)
  const headers = { 'x-request-id': 'background-settled' }
  const { id } = await openai.responses.create({ ...asked, background: true }, { headers })
  expect((await openai.responses.retrieve(id)).status).toBe('queued')
  expect(sumsOf(gatehouse, `token/${token}/money`).settled).toBe(0)
  store.end([...store.responses.keys()][0] ?? '')
  const [outcome] = outcomesOf(await eventsOfRequest(gatehouse, 'background-settled'), 'background-settled')
  const cost = costOf(outcome)
  expect(outcome?.event_cost_attribution).toMatchObject({ input_tokens: 11, output_tokens: 7, estimated: false })
  await until('it is settled', () => sumsOf(gatehouse, `token/${token}/money`).settled === cost)
})

test('a response in the background is charged its bound when its gateway is killed', async () => {
  const { id: token, token_value } = await createToken(gatehouse, { max_budget: 1 })
  const headers = { 'x-request-id': 'background-killed' }
  await clientOf(token_value).responses.create({ ...asked, background: true, max_output_tokens: 50 }, { headers })
  killGateways()
  const [outcome] = outcomesOf(await eventsOfRequest(gatehouse, 'background-killed'), 'background-killed')
  expect(outcome).toMatchObject({ reason_code: 'gateway.interrupted', event_cost_attribution: { estimated: true } })
  const bound = costOf(outcome)
  expect(bound).toBeGreaterThan(0)
  await until('it is settled', () => sumsOf(gatehouse, `token/${token}/money`).settled === bound)
})
