import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import OpenAI from 'openai'
import { providerError } from '../fakes/chat.ts'
import { failedResponsesStream, responsesAnswer, responsesStream } from '../fakes/responses.ts'
import { splitPlans } from '../fakes/splits.ts'
import { type FakeUpstream, jsonReply, startFakeUpstream, streamReply } from '../fakes/upstream.ts'
import { createToken } from '../support/client.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'
import { eventsOfRequest, outcomesOf } from '../support/recorded.ts'

setDefaultTimeout(120_000)

let upstream: FakeUpstream
let gatehouse: Gatehouse
let token: string
let client: OpenAI

beforeAll(async () => {
  upstream = await startFakeUpstream()
  gatehouse = await startGatehouse({ upstream })
  token = (await createToken(gatehouse)).token_value
  client = new OpenAI({ apiKey: token, baseURL: `${gatehouse.gatewayUrl}/v1`, maxRetries: 0 })
}, 240_000)
beforeEach(() => upstream?.forget())
afterAll(async () => {
  await gatehouse?.stop()
  await upstream?.close()
})

const asked = { model: 'fake-model', input: 'hello', store: false }
const stored = { model: 'fake-model', input: 'hello' }
const wholeText = 'Grüße aus 東京'
const post = (body: unknown, headers: Record<string, string> = {}) =>
  fetch(`${gatehouse.gatewayUrl}/v1/responses`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })

test('the official client reads a whole response, byte for byte', async () => {
  upstream.next(jsonReply(responsesAnswer()))
  const response = await client.responses.create(asked)
  expect(response.output_text).toBe(wholeText)
  expect(upstream.calls.at(-1)?.path).toBe('/v1/responses')
  upstream.next(jsonReply(responsesAnswer()))
  expect(await (await post(asked)).text()).toBe(responsesAnswer().toString())
})

test('the official client reads a streamed response and collects it', async () => {
  upstream.next(streamReply(responsesStream()))
  let text = ''
  for await (const event of await client.responses.create({ ...asked, stream: true })) {
    if (event.type === 'response.output_text.delta') text += event.delta
  }
  expect(text).toBe(wholeText)
  upstream.next(streamReply(responsesStream()))
  const final = await client.responses.stream(asked).finalResponse()
  expect(final.output_text).toBe(wholeText)
})

test('a streamed response comes back byte for byte at every split', async () => {
  for (const [name, split] of Object.entries(splitPlans)) {
    upstream.next({ ...streamReply(responsesStream()), split })
    const answer = await post({ ...asked, stream: true })
    expect([name, await answer.text()]).toEqual([name, responsesStream().toString()])
  }
})

test('a stored response comes back byte for byte but for its id, whole and at every split', async () => {
  const withoutSeal = (text: string) => text.replaceAll(/"resp_[0-9a-f]{100,}"/g, '"resp_fake"')
  upstream.next(jsonReply(responsesAnswer()))
  expect(withoutSeal(await (await post(stored)).text())).toBe(responsesAnswer().toString())
  for (const [name, split] of Object.entries(splitPlans)) {
    upstream.next({ ...streamReply(responsesStream()), split })
    const text = await (await post({ ...stored, stream: true })).text()
    expect(text).not.toContain('"resp_fake"')
    expect([name, withoutSeal(text)]).toEqual([name, responsesStream().toString()])
  }
})

test('the usage of a streamed response is recorded', async () => {
  upstream.next(streamReply(responsesStream()))
  await (await post({ ...asked, stream: true }, { 'x-request-id': 'responses-usage' })).text()
  const [outcome] = outcomesOf(await eventsOfRequest(gatehouse, 'responses-usage'), 'responses-usage')
  expect(outcome).toMatchObject({
    verdict: 'allow',
    event_cost_attribution: { input_tokens: 11, output_tokens: 7, cached_input_tokens: 4, estimated: false },
  })
})

test('a response that breaks or fails raises an error in the client and is recorded', async () => {
  for (const [id, body] of [
    ['responses-broken', responsesStream({ completed: false })],
    ['responses-failed', failedResponsesStream()],
  ] as const) {
    upstream.next(streamReply(body))
    const failing = client.responses.stream(asked, { headers: { 'x-request-id': id } }).finalResponse()
    expect(await failing.catch((error: unknown) => error)).toBeInstanceOf(OpenAI.APIError)
    const [outcome] = outcomesOf(await eventsOfRequest(gatehouse, id), id)
    expect(outcome?.verdict).toBe('error')
  }
  upstream.next(streamReply(failedResponsesStream()))
  expect(await (await post({ ...asked, stream: true })).text()).toBe(failedResponsesStream().toString())
})

test('refusals and provider errors have the error envelope', async () => {
  const refused = await post({ ...asked, response_format: { type: 'json_object' }, text: { format: { type: 'text' } } })
  expect(refused.status).toBe(422)
  expect(await refused.json()).toMatchObject({ error: { code: 'invalid_parameter', param: 'response_format' } })
  upstream.when('busy', { ...jsonReply(providerError('busy')), status: 429 })
  const busy = client.responses.create({ ...asked, model: 'busy' })
  expect(await busy.catch((error: unknown) => error)).toBeInstanceOf(OpenAI.RateLimitError)
  const silent = await upstream.refuseDuring(() => post({ ...asked, stream: true }))
  expect([silent.status, silent.headers.get('content-type')]).toEqual([502, 'application/json'])
  expect(await silent.json()).toMatchObject({ error: { code: 'provider_primary_path_error', type: 'server_error' } })
})
