/** Counting the tokens of a messages request: who counts, what is refused, what is recorded and what it takes. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { compilePolicySet } from '../policies/chain.ts'
import { sentBody, startTranslating, type TranslatingGateway } from './testing/translating.ts'
import { testModel, testPolicy, testProvider } from './testing/worker.ts'

let at: TranslatingGateway
beforeAll(async () => {
  at = await startTranslating()
  at.running.worker.upstreams.push(
    testProvider({ id: 'sim', name: 'simulator', kind: 'simulator', allowUnlistedModels: false }),
  )
  at.running.worker.catalog.push(
    testModel({ id: 'simulator/echo', providerId: 'sim', upstreamModel: 'simulator/echo' }),
    testModel({ id: 'with-fallback', providerId: 'openai', upstreamModel: 'up', fallbacks: ['anthropic'] }),
  )
})
afterAll(() => at.running.stop())
beforeEach(() => {
  at.running.seen.length = 0
  at.running.worker.policies = compilePolicySet([])
  for (const path of Object.keys(at.answers)) delete at.answers[path]
})

const messages = [{ role: 'user', content: 'How many tokens are these words?' }]
const tools = [{ name: 'look', input_schema: { type: 'object', properties: {} } }]

const ask = (model: string, more: object = {}, secret = at.running.secret) =>
  fetch(`${at.running.url}/v1/messages/count_tokens?beta=true`, {
    method: 'POST',
    headers: { 'x-api-key': secret, 'content-type': 'application/json', 'anthropic-beta': 'token-counting-2024-11-01' },
    body: JSON.stringify({ model, messages, ...more }),
  })

const account = { id: 'own', maxRequests: 1, maxBudget: 1, rateLimitRpm: 1, rateLimitTpm: 1 }

const outcome = () => at.running.worker.journal.outcomes().findLast(({ reason_code }) => reason_code === 'ok')

test('passes the count of Anthropic on, with the body of the caller and its beta header', async () => {
  at.answers['/v1/messages/count_tokens'] = () => Response.json({ input_tokens: 42 })
  expect(await at.anthropic.messages.countTokens({ model: 'anthropic', messages: [] })).toMatchObject({
    input_tokens: 42,
  })
  const answer = await ask('anthropic', { tools })
  expect([answer.status, await answer.json()]).toEqual([200, { input_tokens: 42 }])
  expect(sentBody(at.running)).toEqual({ model: 'up-anthropic', messages, tools })
  expect(at.running.seen.at(-1)?.request.headers.get('anthropic-beta')).toBe('token-counting-2024-11-01')
})

test('asks Gemini in its own language', async () => {
  at.answers['/v1beta/models/up-gemini:countTokens'] = () =>
    Response.json({ totalTokens: 7, totalBillableCharacters: 9 })
  const answer = await ask('gemini', { system: 'Be short', tools })
  expect([answer.status, await answer.json()]).toEqual([200, { input_tokens: 7 }])
  expect(sentBody(at.running)).toMatchObject({
    generateContentRequest: {
      model: 'models/up-gemini',
      contents: [{ role: 'user', parts: [{ text: messages[0]?.content }] }],
      systemInstruction: { parts: [{ text: 'Be short' }] },
    },
  })
})

test('asks Bedrock for the parts of Converse that its API counts', async () => {
  at.answers['/model/anthropic.claude:0/count-tokens'] = () => Response.json({ inputTokens: 9 })
  const answer = await ask('bedrock', { system: 'Be short', max_tokens: 5 })
  expect([answer.status, await answer.json()]).toEqual([200, { input_tokens: 9 }])
  const sent = sentBody(at.running)
  expect(sent).toMatchObject({ input: { converse: { system: [{ text: 'Be short' }] } } })
  expect(JSON.stringify(sent)).not.toContain('maxTokens')
  expect(at.running.seen.at(-1)?.request.headers.get('authorization')).toContain('AWS4-HMAC-SHA256')
})

test('counts the words of a request to the simulator', async () => {
  const answer = await ask('simulator/echo', { system: 'Be short' })
  expect([answer.status, await answer.json()]).toEqual([200, { input_tokens: 8 }])
})

test('refuses with 501 when the provider counts no tokens, and never asks a fallback', async () => {
  for (const model of ['openai', 'with-fallback']) {
    const answer = await ask(model)
    expect([answer.status, answer.headers.get('x-should-retry')]).toEqual([501, 'false'])
    expect(await answer.json()).toMatchObject({
      type: 'error',
      error: { type: 'api_error', code: 'token_count_unsupported', param: 'model' },
    })
  }
  expect(at.running.seen.length).toBe(0)
  const refusals = at.running.worker.journal
    .outcomes()
    .filter(({ reason_code }) => reason_code === 'token_count_unsupported')
  expect(refusals).toMatchObject([
    { details: { status: 501, model: 'openai' } },
    { details: { model: 'with-fallback' } },
  ])
})

test("passes a provider's error on in the messages language", async () => {
  at.answers['/v1beta/models/up-gemini:countTokens'] = () =>
    Response.json({ error: { code: 400, status: 'INVALID_ARGUMENT', message: 'No such part' } }, { status: 400 })
  const answer = await ask('gemini')
  expect(answer.status).toBe(400)
  expect(await answer.json()).toMatchObject({ type: 'error', error: { message: 'No such part' } })
})

test('refuses an answer without a count with 502', async () => {
  at.answers['/v1/messages/count_tokens'] = () => Response.json({ tokens: 'many' })
  expect((await ask('anthropic')).status).toBe(502)
})

test('records an outcome of its own route, without usage and cost', async () => {
  at.answers['/v1/messages/count_tokens'] = () => Response.json({ input_tokens: 42 })
  await ask('anthropic')
  expect(outcome()).toMatchObject({
    verdict: 'allow',
    reason_code: 'ok',
    details: { route: 'POST /v1/messages/count_tokens', model: 'anthropic', status: 200 },
  })
  expect(outcome()?.event_cost_attribution).toBeUndefined()
  expect(outcome()?.settlements).toBeUndefined()
})

test('reserves nothing and takes nothing from rates', async () => {
  at.answers['/v1/messages/count_tokens'] = () => Response.json({ input_tokens: 42 })
  const { usageLimits, rates } = at.running.worker
  const asked: string[] = []
  const [reserve, take] = [usageLimits.reserve, rates.take]
  usageLimits.reserve = (demands, signal) => {
    asked.push(...demands.map(({ account }) => account))
    return reserve.call(usageLimits, demands, signal)
  }
  rates.take = (demands, signal) => {
    asked.push('rates')
    return take.call(rates, demands, signal)
  }
  try {
    const secret = at.running.worker.addToken({ accounts: [account] })
    for (let request = 0; request < 3; request++) expect((await ask('anthropic', {}, secret)).status).toBe(200)
    expect(asked).toEqual([])
  } finally {
    usageLimits.reserve = reserve
    rates.take = take
  }
})

test('refuses a missing token, another method and a model that the token may not use', async () => {
  expect((await ask('anthropic', {}, 'wrong')).status).toBe(401)
  const narrow = at.running.worker.addToken({ modelFilter: ['gemini'] })
  const answer = await ask('anthropic', {}, narrow)
  expect([answer.status, await answer.json()]).toMatchObject([403, { error: { code: 'tokens.model_not_allowed' } }])
  const read = await fetch(`${at.running.url}/v1/messages/count_tokens`)
  expect([read.status, read.headers.get('allow')]).toEqual([405, 'POST'])
  expect(at.running.seen.length).toBe(0)
})

test('applies policies to the text before it leaves for the provider', async () => {
  at.answers['/v1/messages/count_tokens'] = () => Response.json({ input_tokens: 42 })
  at.running.worker.policies = compilePolicySet([
    testPolicy({ id: 'p', kind: 'pii', config: { action: 'redact', types: ['email'] } }),
  ])
  const content = 'Write to anna@example.com'
  expect((await ask('anthropic', { messages: [{ role: 'user', content }] })).status).toBe(200)
  expect(at.running.seen.at(-1)?.body).not.toContain('anna@example.com')
})
