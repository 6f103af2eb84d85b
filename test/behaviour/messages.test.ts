import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import { providerError } from '../fakes/chat.ts'
import { failedMessagesStream, messagesAnswer, messagesError, messagesStream } from '../fakes/messages.ts'
import { splitPlans } from '../fakes/splits.ts'
import { type FakeUpstream, jsonReply, startFakeUpstream, streamReply } from '../fakes/upstream.ts'
import { createToken } from '../support/client.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'
import { eventsOfRequest, outcomesOf } from '../support/recorded.ts'

setDefaultTimeout(120_000)

let upstream: FakeUpstream
let gatehouse: Gatehouse
let token: string
let client: Anthropic

beforeAll(async () => {
  upstream = await startFakeUpstream()
  gatehouse = await startGatehouse({ upstream })
  token = (await createToken(gatehouse)).token_value
  client = new Anthropic({ apiKey: token, baseURL: gatehouse.gatewayUrl, maxRetries: 0 })
}, 240_000)
beforeEach(() => upstream?.forget())
afterAll(async () => {
  await gatehouse?.stop()
  await upstream?.close()
})

const asked = { model: 'fake-model', max_tokens: 50, messages: [{ role: 'user' as const, content: 'hello' }] }
const wholeText = 'Grüße aus 東京'
const post = (body: unknown, headers: Record<string, string> = {}) =>
  fetch(`${gatehouse.gatewayUrl}/v1/messages`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })

test('the official client reads a whole message, byte for byte', async () => {
  upstream.next(jsonReply(messagesAnswer()))
  const message = await client.messages.create(asked)
  expect(message.content).toEqual([{ type: 'text', text: wholeText } as never])
  upstream.next(jsonReply(messagesAnswer()))
  expect(await (await post(asked)).text()).toBe(messagesAnswer().toString())
})

test('the official client reads a streamed message and collects it', async () => {
  upstream.next(streamReply(messagesStream()))
  let text = ''
  for await (const event of await client.messages.create({ ...asked, stream: true })) {
    if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') text += event.delta.text
  }
  expect(text).toBe(wholeText)
  upstream.next(streamReply(messagesStream()))
  expect(await client.messages.stream(asked).finalText()).toBe(wholeText)
})

test('a streamed message comes back byte for byte at every split', async () => {
  for (const [name, split] of Object.entries(splitPlans)) {
    upstream.next({ ...streamReply(messagesStream()), split })
    const answer = await post({ ...asked, stream: true })
    expect([name, await answer.text()]).toEqual([name, messagesStream().toString()])
  }
})

test('the recorded usage of a message is the last report, with cache reads and writes', async () => {
  for (const [id, stream] of [
    ['messages-usage', false],
    ['messages-stream-usage', true],
  ] as const) {
    upstream.next(stream ? streamReply(messagesStream()) : jsonReply(messagesAnswer()))
    await (await post({ ...asked, stream }, { 'x-request-id': id })).text()
    const [outcome] = outcomesOf(await eventsOfRequest(gatehouse, id), id)
    expect(outcome).toMatchObject({
      verdict: 'allow',
      event_cost_attribution: { input_tokens: 11, output_tokens: 9, cached_input_tokens: 3, estimated: false },
    })
  }
})

test('a message that breaks or fails raises an error in the client and is recorded', async () => {
  for (const [id, body] of [
    ['messages-broken', messagesStream({ stopped: false })],
    ['messages-failed', failedMessagesStream()],
  ] as const) {
    upstream.next(streamReply(body))
    const failing = client.messages.stream(asked, { headers: { 'x-request-id': id } }).finalMessage()
    const error = await failing.catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(Anthropic.APIError)
    const [outcome] = outcomesOf(await eventsOfRequest(gatehouse, id), id)
    expect(outcome?.verdict).toBe('error')
  }
})

test('every refusal has the messages form, with the id where its clients read it', async () => {
  const create = (apiKey: string, body: object = {}) =>
    new Anthropic({ apiKey, baseURL: gatehouse.gatewayUrl, maxRetries: 0 }).messages
      .create({ ...asked, ...body }, { headers: { 'x-request-id': 'refused-1' } })
      .catch((error: unknown) => error)
  const unknown = await create('gth_nothing')
  expect(unknown).toBeInstanceOf(Anthropic.AuthenticationError)
  expect(unknown).toMatchObject({
    requestID: 'refused-1',
    error: {
      type: 'error',
      error: { type: 'authentication_error', code: 'invalid_api_token' },
      request_id: 'refused-1',
    },
  })
  const narrow = await createToken(gatehouse, { bindings: { model_filter: ['simulator/*'] } })
  expect(await create(narrow.token_value)).toBeInstanceOf(Anthropic.PermissionDeniedError)
  expect(await create(token, { response_format: { type: 'json_object' } })).toMatchObject({
    status: 422,
    error: { error: { type: 'invalid_request_error', code: 'invalid_parameter', param: 'response_format' } },
  })
  const broken = await post('{"model":')
  expect(broken.headers.get('x-should-retry')).toBe('false')
  expect(await broken.json()).toMatchObject({
    type: 'error',
    error: { type: 'invalid_request_error', code: 'invalid_json' },
  })
})

test('an unreachable provider is upstream_error, as JSON even for a stream', async () => {
  const answer = await upstream.refuseDuring(() => post({ ...asked, stream: true }))
  expect([answer.status, answer.headers.get('content-type'), answer.headers.has('x-should-retry')]).toEqual([
    502,
    'application/json',
    false,
  ])
  expect(await answer.json()).toMatchObject({ type: 'error', error: { type: 'api_error', code: 'upstream_error' } })
})

test("provider errors raise the client's typed errors", async () => {
  const create = (model: string) => client.messages.create({ ...asked, model }).catch((error: unknown) => error)
  upstream.when('overloaded', { ...jsonReply(messagesError('overloaded_error')), status: 529 })
  expect(await create('overloaded')).toMatchObject({
    status: 529,
    error: { type: 'error', error: { type: 'overloaded_error', message: 'Said by the provider' } },
  })
  upstream.when('busy', { ...jsonReply(providerError('busy')), status: 429 })
  expect(await create('busy')).toBeInstanceOf(Anthropic.RateLimitError)
})
