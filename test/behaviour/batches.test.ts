/** Batches of the real executable: what they cost, through kills of the gateways that made them. */
import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import OpenAI, { toFile } from 'openai'
import { z } from 'zod'
import { FileBatches, outputLine } from '../fakes/file-batches.ts'
import { api, createToken, expectAnswer } from '../support/client.ts'
import { eventually, until } from '../support/eventually.ts'
import { type Gatehouse, operate, startGatehouse } from '../support/harness.ts'
import { childrenOf, listensOn } from '../support/processes.ts'
import { eventsInLedger } from '../support/recorded.ts'

setDefaultTimeout(120_000)

let store: FileBatches
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
  store = new FileBatches()
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

const requestsOf = (model: string, count: number): string =>
  Array.from({ length: count }, (_, number) => {
    const body = { model, max_tokens: 10, messages: [{ role: 'user', content: 'Hello' }] }
    return `${JSON.stringify({ custom_id: `r${number}`, method: 'POST', url: '/v1/chat/completions', body })}\n`
  }).join('')
const fileOf = async (openai: OpenAI, model = 'gpt-4o-mini', count = 2) =>
  await openai.files.create({
    file: await toFile(new TextEncoder().encode(requestsOf(model, count)), 'requests.jsonl'),
    purpose: 'batch',
  })
const startOf = async (openai: OpenAI, file: string) =>
  await openai.batches.create(
    { input_file_id: file, endpoint: '/v1/chat/completions', completion_window: '24h' },
    { maxRetries: 0 },
  )

const tokenAnswer = z.object({
  depletion: z.object({ current_spend: z.number(), remaining_budget: z.number(), remaining_requests: z.number() }),
})
/** What a token has used, in nano-dollars and requests of ten. */
async function usedBy(id: string): Promise<{ spend: number; requests: number }> {
  const { depletion } = expectAnswer(await api(gatehouse, `/v1/tokens/${id}`), 200, tokenAnswer)
  expect(Math.round((depletion.current_spend + depletion.remaining_budget) * 1e9)).toBe(1e9)
  return { spend: Math.round(depletion.current_spend * 1e9), requests: 10 - depletion.remaining_requests }
}
const settledEvents = (token: string) =>
  eventsInLedger(gatehouse).filter(
    ({ event_type: type, event_attribution: who }) => type === 'usage.batch_settled' && who.token_id === token,
  )
/** 10 tokens in and 5 out at 0.15 and 0.60 dollars a million, for half the price. */
const answerCost = (10 * 150 + 5 * 600) / 2
const lines = [outputLine('r0', 'Hi'), outputLine('r1', 'Hi')]
const limited = () => createToken(gatehouse, { max_budget: 1, max_requests: 10 })
const made = () => [...store.batches.keys()].at(-1) ?? ''

test('a batch whose gateways are killed is charged once, at what it used, although nobody asks for it', async () => {
  const { id, token_value } = await limited()
  const openai = clientOf(token_value)
  await startOf(openai, (await fileOf(openai)).id)
  await until('the worst case is charged', async () => (await usedBy(id)).requests === 2)
  const { spend: held } = await usedBy(id)
  expect(held).toBeGreaterThan(2 * answerCost)
  await eventually(async () => expect((await openai.batches.list()).data).toHaveLength(1))
  expect((await openai.files.list()).data).toMatchObject([{ id: (await openai.batches.list()).data[0]?.input_file_id }])
  killGateways()
  store.end(made(), { lines })
  await until('it is settled', async () => (await usedBy(id)).spend === 2 * answerCost, { withinMs: 60_000 })
  expect((await usedBy(id)).requests).toBe(2)
  expect(await operate(gatehouse, 'events', 'verify')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(' 0 findings'),
  })
  expect(settledEvents(id)).toMatchObject([{ event_cost_attribution: { input_tokens: 20, output_tokens: 10 } }])
})

test('a batch is settled once however many gateways see its end while they are killed', async () => {
  const { id, token_value } = await limited()
  const openai = clientOf(token_value)
  const batch = await startOf(openai, (await fileOf(openai)).id)
  store.end(made(), { lines: lines.slice(0, 1), status: 'expired' })
  for (let round = 0; round < 4; round++) {
    await eventually(async () => expect((await openai.batches.retrieve(batch.id)).status).toBe('expired'))
    if (round % 2 === 0) killGateways()
  }
  await until('it is settled', async () => (await usedBy(id)).spend === answerCost, { withinMs: 60_000 })
  await Bun.sleep(1500)
  expect(await usedBy(id)).toEqual({ spend: answerCost, requests: 1 })
  expect(settledEvents(id)).toHaveLength(1)
})

test('a batch that was being made when its gateway was killed stays charged in full', async () => {
  const { id, token_value } = await limited()
  const openai = clientOf(token_value)
  const file = await fileOf(openai)
  const reached = Promise.withResolvers<void>()
  store.onCreate = () => {
    reached.resolve()
    return Bun.sleep(60_000).then(() => new Response(null, { status: 500 }))
  }
  const making = startOf(openai, file.id).catch((thrown: unknown) => thrown)
  await reached.promise
  killGateways()
  expect(await making).toBeInstanceOf(Error)
  await until('it is charged', async () => (await usedBy(id)).requests === 2, { withinMs: 60_000 })
  const { spend } = await usedBy(id)
  expect(spend).toBeGreaterThan(2 * answerCost)
  const event = eventsInLedger(gatehouse).find(
    ({ event_attribution: who, details }) => who.token_id === id && details?.route === 'POST /v1/batches',
  )
  expect(event).toMatchObject({ reason_code: 'gateway.interrupted' })
})

test('what a batch holds is not there for others until it is settled', async () => {
  const { id, token_value } = await createToken(gatehouse, { max_budget: 1, max_requests: 3 })
  const openai = clientOf(token_value)
  const file = await fileOf(openai)
  await startOf(openai, file.id)
  const refused = await startOf(openai, file.id).catch((thrown: unknown) => thrown)
  expect(refused).toMatchObject({ status: 429, code: 'usage_authorization_request_limit_exceeded' })
  store.end(made(), { status: 'cancelled' })
  await until('it is settled', () => settledEvents(id).length === 1, { withinMs: 60_000 })
  await eventually(async () => expect((await startOf(openai, file.id)).status).toBe('in_progress'))
})

test('the simulator answers a batch', async () => {
  const openai = clientOf((await createToken(gatehouse)).token_value)
  // Each worker has a simulator of its own, and a connection may come to any of them.
  await eventually(async () => {
    const batch = await startOf(openai, (await fileOf(openai, 'simulator/echo', 3)).id)
    const { output_file_id: output = '' } = await openai.batches.retrieve(batch.id)
    const lines = (await (await openai.files.content(output)).text()).trim().split('\n')
    expect(lines).toHaveLength(3)
    expect(lines[0]).toContain('"content":"Hello"')
  })
})
