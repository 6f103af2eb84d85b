/** Images and rerank at the gateway: what policies read, what a budget needs, what is recorded. */
import { afterEach, expect, test } from 'bun:test'
import OpenAI from 'openai'
import { compilePolicySet } from '../../policies/chain.ts'
import { compilePrice } from '../../providers/prices/price-record.ts'
import { InMemoryLimits } from '../../usage/testing/in-memory-limits.ts'
import { startTestGateway, type TestGateway } from '../testing/gateway.ts'
import { policy } from '../testing/policies.ts'
import { testModel } from '../testing/worker.ts'

let running: TestGateway | null = null
afterEach(async () => {
  await running?.stop()
  running = null
})

const free = { input_per_million: 0, output_per_million: 0 }
const made = { created: 1, data: [{ b64_json: 'AAAA' }, { b64_json: 'AAAA' }] }
const accounts = [{ id: 't', maxRequests: 9, maxBudget: 10_000_000_000, rateLimitRpm: null, rateLimitTpm: null }]

async function start(price: object, answer: () => Response = () => Response.json(made)): Promise<TestGateway> {
  running = await startTestGateway(answer, { drain_seconds: 0, path_retries: 0 })
  running.worker.catalog.push(testModel({ id: 'painter', price: compilePrice(price, 'operator') }))
  return running
}
const client = ({ url, secret }: TestGateway, apiKey = secret) =>
  new OpenAI({ apiKey, baseURL: `${url}/v1`, maxRetries: 0 })
const ask = { model: 'painter', prompt: 'Paint ann@example.com', n: 2 }

test('a policy reads the prompt of an image, of an edit and of a rerank, and its redaction is sent', async () => {
  const gateway = await start(free, () => Response.json({ ...made, results: [] }))
  gateway.worker.policies = compilePolicySet([
    policy({ id: 'p', kind: 'pii', config: { types: ['email'], action: 'redact' } }),
  ])
  const openai = client(gateway)
  await openai.images.generate(ask)
  await openai.images.edit({ ...ask, image: new File(['one'], 'a.png', { type: 'image/png' }) })
  await openai.post('/rerank', {
    body: { model: 'painter', query: 'bob@example.com', documents: [{ text: 'eve@example.com' }] },
  })
  expect(gateway.seen.map(({ request }) => new URL(request.url).pathname)).toEqual([
    '/v1/images/generations',
    '/v1/images/edits',
    '/v1/rerank',
  ])
  for (const { body } of gateway.seen) {
    expect(body).toContain('[EMAIL')
    expect(body).not.toContain('@example.com')
  }
  expect(gateway.seen[1]?.body).toContain('filename="a.png"')
})

test('a policy on answers is refused, because no policy reads images', async () => {
  const gateway = await start(free)
  gateway.worker.policies = compilePolicySet([
    policy({ id: 'p', kind: 'pii', stages: ['pre_response'], config: { types: ['email'], action: 'block' } }),
  ])
  const refusal: unknown = await client(gateway)
    .images.generate(ask)
    .catch((thrown: unknown) => thrown)
  expect(refusal).toMatchObject({ status: 400, code: 'policy.incompatible_active_chain' })
})

test('an image costs what the price of the model says, and a budget reserves that for each image', async () => {
  const gateway = await start({ ...free, per_image: 0.04 })
  const usageLimits = new InMemoryLimits({ 'token/t/money': 100_000_000 })
  Object.assign(gateway.worker, { usageLimits })
  const openai = client(gateway, gateway.worker.addToken({ accounts }))
  await openai.images.generate(ask)
  expect(usageLimits.balances.get('token/t/money')).toBe(20_000_000)
  expect(gateway.worker.journal.outcomes().at(-1)).toMatchObject({
    details: { route: 'POST /v1/images/generations' },
    event_cost_attribution: { cost: 0.08, estimated: false },
  })
  const refusal: unknown = await openai.images.generate(ask).catch((thrown: unknown) => thrown)
  expect(refusal).toMatchObject({ status: 402 })
})

test('a budget is refused a model whose price says nothing of images', async () => {
  const gateway = await start({ input_per_million: 5, output_per_million: 40 })
  Object.assign(gateway.worker, { usageLimits: new InMemoryLimits({ 'token/t/money': 100_000_000 }) })
  const openai = client(gateway, gateway.worker.addToken({ accounts }))
  const refusal: unknown = await openai.images.generate(ask).catch((thrown: unknown) => thrown)
  expect(refusal).toMatchObject({
    status: 403,
    code: 'tokens.cost_unbounded',
    message: expect.stringContaining('per_image'),
  })
  expect(gateway.seen).toEqual([])
})

test('without a budget an image is billed by its tokens where the price says nothing of images', async () => {
  const usage = { input_tokens: 10, output_tokens: 1000, total_tokens: 1010 }
  const gateway = await start({ input_per_million: 5, output_per_million: 40 }, () => Response.json({ ...made, usage }))
  await client(gateway).images.generate(ask)
  expect(gateway.worker.journal.outcomes().at(-1)?.event_cost_attribution).toMatchObject({
    cost: 0.04005,
    output_tokens: 1000,
  })
})

test('a wrong number of images, a form with another file and a rerank without documents are refused by name', async () => {
  const gateway = await start(free)
  const openai = client(gateway)
  const failed = (asked: Promise<unknown>) =>
    asked.then(
      () => null,
      (thrown: unknown) => thrown,
    )
  expect(await failed(openai.images.generate({ ...ask, n: 0 }))).toMatchObject({ status: 422, param: 'n' })
  const form = new FormData()
  for (const [name, value] of Object.entries({ model: 'painter', prompt: 'a' })) form.append(name, value)
  form.append('prompt_file', new File(['x'], 'x.txt'))
  const answer = await fetch(`${gateway.url}/v1/images/edits`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.secret}` },
    body: form,
  })
  expect([answer.status, await answer.json()]).toMatchObject([
    400,
    { error: { code: 'invalid_form', param: 'prompt_file' } },
  ])
  expect(await failed(openai.post('/rerank', { body: { model: 'painter', query: 'a' } }))).toMatchObject({
    param: 'documents',
  })
})

test('the usage of a rerank is that of Jina or of Cohere, and it is billed by it', async () => {
  for (const reported of [{ usage: { total_tokens: 1000 } }, { meta: { tokens: { input_tokens: 1000 } } }]) {
    const results = [{ index: 0, relevance_score: 0.5 }]
    const gateway = await start({ ...free, input_per_million: 1 }, () => Response.json({ results, ...reported }))
    await client(gateway).post('/rerank', { body: { model: 'painter', query: 'a', documents: ['b'] } })
    expect(gateway.worker.journal.outcomes().at(-1)?.event_cost_attribution).toMatchObject({
      cost: 0.001,
      input_tokens: 1000,
    })
    await gateway.stop()
    running = null
  }
})
