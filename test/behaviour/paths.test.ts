/**
 * Providers, models and paths on the real executable: what an operator sets in the catalog is what requests go by, a
 * provider that fails is passed over, and every call to one is on record.
 */
import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import { z } from 'zod'
import {
  type FakeUpstream,
  jsonReply,
  type Reply,
  silentReply,
  startFakeUpstream,
  streamReply,
} from '../fakes/upstream.ts'
import { api, chat, createToken, expectAnswer } from '../support/client.ts'
import { eventually, until } from '../support/eventually.ts'
import { type Gatehouse, operate, run, startGatehouse } from '../support/harness.ts'
import { eventsInLedger, eventsOfRequest } from '../support/recorded.ts'

setDefaultTimeout(120_000)

const keys = { one: 'sk-one-4f2c8a', two: 'sk-two-9b1d7e', rotated: 'sk-rotated-3c6e' }
const record = z.looseObject({ id: z.string(), version: z.number() })

let one: FakeUpstream
let two: FakeUpstream
let gatehouse: Gatehouse
let token: string
const ids = { one: '', two: '' }

const make = async (path: string, body: object) => expectAnswer(await api(gatehouse, path, { body }), 201, record)

beforeAll(async () => {
  one = await startFakeUpstream()
  two = await startFakeUpstream()
  const env = { SERVICE_FIRST_BYTE_TIMEOUT_SECONDS: '1', SERVICE_CIRCUIT_FAILURES: '0' }
  gatehouse = await startGatehouse({ env })
  token = (await createToken(gatehouse)).token_value
  const provider = (name: 'one' | 'two', { baseUrl }: FakeUpstream) =>
    make('/v1/catalog/providers', { name, kind: 'openai', base_url: baseUrl, api_key: keys[name] })
  ids.one = (await provider('one', one)).id
  ids.two = (await provider('two', two)).id
  await make('/v1/catalog/models', { id: 'maker/spare', provider_id: ids.two, upstream_model: 'spare-upstream' })
  const main = { id: 'maker/main', provider_id: ids.one, upstream_model: 'main-upstream', fallbacks: ['maker/spare'] }
  await make('/v1/catalog/models', main)
  await until('the gateway has the new models and their keys', async () => {
    const answer = await chat(gatehouse, { token, model: 'maker/main' })
    await answer.text()
    return answer.status === 200
  })
}, 240_000)
afterAll(async () => {
  await gatehouse?.stop()
  await one?.close()
  await two?.close()
})
beforeEach(() => {
  one.forget()
  two.forget()
  one.when('main-upstream', jsonReply())
})

const failing = (status: number, headers: Record<string, string> = {}): Reply => ({
  ...jsonReply(Buffer.from('{"error":{"message":"not now"}}')),
  status,
  headers: { 'content-type': 'application/json', ...headers },
})

/** Asks, says when an answer has begun, and gives the status with the calls to providers that are on record. */
async function asked(request: { model?: string; stream?: boolean; token?: string } = {}, begun = () => {}) {
  const requestId = `paths-${crypto.randomUUID()}`
  const answer = await chat(gatehouse, { token, model: 'maker/main', ...request, requestId })
  begun()
  const text = await answer.text()
  const recorded = await eventsOfRequest(gatehouse, requestId)
  const attempts = recorded
    .filter(({ event_type }) => event_type === 'gateway.provider.attempt')
    .map(({ details, reason_code }) => [details?.provider, reason_code])
  return { status: answer.status, text, attempts }
}

test('a catalog model is called by its alias at its provider with the stored key', async () => {
  expect((await asked()).attempts).toEqual([['one', 'ok']])
  expect(one.calls.map(({ model, headers }) => [model, headers.authorization])).toEqual([
    ['main-upstream', `Bearer ${keys.one}`],
  ])
})

test('a provider that refuses connections is retried, then skipped, and each attempt is an event', async () => {
  await one.refuseDuring(async () => {
    expect(await asked()).toMatchObject({
      status: 200,
      attempts: [
        ['one', 'provider.unreachable'],
        ['one', 'provider.unreachable'],
        ['two', 'ok'],
      ],
    })
  })
  expect(two.calls.map(({ model, headers }) => [model, headers.authorization])).toEqual([
    ['spare-upstream', `Bearer ${keys.two}`],
  ])
})

const failures: Record<string, [Reply, string[]]> = {
  'says nothing': [silentReply, ['provider.timeout']],
  'answers 500': [failing(500), ['provider.error', 'provider.error']],
  'answers 429 and asks for a moment': [failing(429, { 'retry-after-ms': '1' }), ['provider.error', 'provider.error']],
  'resets before its headers': [
    { stop: { after: 'nothing', by: 'reset' } },
    ['provider.unreachable', 'provider.unreachable'],
  ],
}
for (const [what, [reply, reasons]] of Object.entries(failures)) {
  for (const stream of [false, true]) {
    test(`when the first provider ${what}, the second answers ${stream ? 'a stream' : 'whole'}`, async () => {
      one.when('main-upstream', reply)
      const { status, attempts } = await asked({ stream })
      expect(status).toBe(200)
      expect(attempts).toEqual([...reasons.map((reason) => ['one', reason]), ['two', 'ok']])
      await until('the first provider was let go of', () => one.running() === 0)
    })
  }
}

test('a provider that asks for a long pause gets it while another answers', async () => {
  const model = 'maker/resting'
  const fallbacks = ['maker/spare']
  await make('/v1/catalog/models', { id: model, provider_id: ids.one, upstream_model: 'resting', fallbacks })
  await until('the gateway knows it', async () => (await asked({ model })).status === 200)
  one.when('resting', failing(429, { 'retry-after': '60' }))
  const before = one.calls.length
  expect((await asked({ model })).attempts).toEqual([
    ['one', 'provider.error'],
    ['two', 'ok'],
  ])
  expect((await asked({ model })).attempts).toEqual([['two', 'ok']])
  expect(one.calls.length).toBe(before + 1)
})

test('a stream that resets in the middle ends with an error and is not retried', async () => {
  const frame = Buffer.from('data: {"choices":[{"index":0,"delta":{"content":"begun"}}]}\n\n')
  const { promise: until, resolve: begun } = Promise.withResolvers<void>()
  one.when('main-upstream', { ...streamReply(frame), stop: { after: 1, by: 'reset', until } })
  const { text, attempts } = await asked({ stream: true }, begun)
  expect(text).toContain('begun')
  expect(text).toContain('upstream_provider_error')
  expect([attempts, two.calls.length]).toEqual([[['one', 'provider.interrupted']], 0])
})

test('a client disconnect before the headers aborts the call to the provider', async () => {
  one.when('main-upstream', { ...jsonReply(), headersAfterMs: 900 })
  const leaving = new AbortController()
  const asking = chat(gatehouse, { token, model: 'maker/main', signal: leaving.signal }).catch(() => null)
  await until('the provider was asked', () => one.running() === 1)
  leaving.abort()
  await asking
  await until('it was told', () => one.calls[0]?.state === 'cancelled before headers')
  expect(two.calls.length).toBe(0)
})

test('a fallback outside the model_filter of a token is skipped', async () => {
  one.when('main-upstream', failing(500))
  const narrow = (await createToken(gatehouse, { bindings: { model_filter: ['maker/main'] } })).token_value
  expect(await asked({ token: narrow })).toMatchObject({ status: 500 })
  expect(two.calls.length).toBe(0)
})

test('a running gateway uses a new key, and no key is ever shown', async () => {
  const path = `/v1/catalog/providers/${ids.one}`
  expectAnswer(await api(gatehouse, path, { method: 'PATCH', body: { api_key: keys.rotated } }), 200, record)
  await eventually(async () => {
    await asked()
    if (one.calls.at(-1)?.headers.authorization !== `Bearer ${keys.rotated}`) throw new Error('Still the old key')
  })
  const shown = [
    (await api(gatehouse, '/v1/catalog/providers')).body,
    (await api(gatehouse, path)).body,
    await operate(gatehouse, 'provider', 'list', '--json'),
    await operate(gatehouse, 'provider', 'get', ids.one),
    eventsInLedger(gatehouse),
    [gatehouse.stdout(), gatehouse.stderr()],
  ]
  for (const key of Object.values(keys)) expect(JSON.stringify(shown)).not.toContain(key)
})

test('a record deleted from the catalog disappears from the gateway', async () => {
  await make('/v1/catalog/models', { id: 'maker/short-lived', provider_id: ids.one, upstream_model: 'main-upstream' })
  const status = async () => (await asked({ model: 'maker/short-lived' })).status
  await until('it is served', async () => (await status()) === 200)
  expect((await api(gatehouse, '/v1/catalog/models/maker%2Fshort-lived', { method: 'DELETE' })).status).toBe(200)
  await until('it is unknown', async () => (await status()) === 404)
})

const message = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude-up',
  content: [{ type: 'text', text: 'Hello' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 3, output_tokens: 1 },
}

interface Served {
  kind: string
  /** The path of its base URL. */
  base: string
  model: string
  route: string
  body: string
  contentType: string
}

/** Makes a provider of this kind with one model, sends a request as soon as it is served, and gives what came of it. */
async function served({ kind, base, model, route, body, contentType }: Served) {
  const base_url = new URL(base, two.baseUrl).href
  const provider = await make('/v1/catalog/providers', { name: `a-${kind}`, kind, base_url, api_key: `sk-${kind}` })
  await make('/v1/catalog/models', { id: model, provider_id: provider.id, upstream_model: `${model}-up` })
  const headers = { authorization: `Bearer ${token}`, 'content-type': contentType }
  const text = await eventually(async () => {
    const answer = await fetch(gatehouse.gatewayUrl + route, { method: 'POST', headers, body })
    if (answer.status === 200) return await answer.text()
    throw new Error(`${answer.status}: ${await answer.text()}`)
  })
  return { text, call: two.calls.at(-1) }
}

test('an anthropic provider is called in its own language, with its key and the caller’s version header', async () => {
  two.when('claude-up', jsonReply(Buffer.from(JSON.stringify(message))))
  const body = '{"model":"claude","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}'
  const contentType = 'application/json'
  const route = '/v1/messages'
  const { text, call } = await served({ kind: 'anthropic', base: '/', model: 'claude', route, body, contentType })
  expect(text).toBe(JSON.stringify(message))
  expect(call?.headers).toMatchObject({ 'x-api-key': 'sk-anthropic', 'anthropic-version': '2023-06-01' })
  expect([call?.headers.authorization, call?.path]).toEqual([undefined, '/v1/messages'])
  expect(Buffer.from(call?.body ?? []).toString()).toBe(body.replace('"claude"', '"claude-up"'))
  const headers = {
    'content-type': contentType,
    authorization: `Bearer ${token}`,
    'anthropic-version': '2099-09-09',
  }
  await (await fetch(gatehouse.gatewayUrl + route, { method: 'POST', headers, body })).text()
  expect(two.calls.at(-1)?.headers['anthropic-version']).toBe('2099-09-09')
})

test('an azure-openai provider is called by its deployment, and a form passes with only its model changed', async () => {
  two.next(jsonReply(Buffer.from('{"text":"spoken"}')))
  const form = (model: string) =>
    `--b\r\nContent-Disposition: form-data; name="model"\r\n\r\n${model}\r\n--b\r\nContent-Disposition: form-data; ` +
    'name="file"; filename="a.wav"\r\nContent-Type: audio/wav\r\n\r\nRIFF\u0000\u0001\r\n--b--\r\n'
  const contentType = 'multipart/form-data; boundary=b'
  const { text, call } = await served({
    kind: 'azure-openai',
    base: '/openai',
    model: 'whisper',
    route: '/v1/audio/transcriptions',
    body: form('whisper'),
    contentType,
  })
  expect(text).toBe('{"text":"spoken"}')
  expect(call?.path).toBe('/openai/deployments/whisper-up/audio/transcriptions?api-version=2024-10-21')
  expect(call?.headers).toMatchObject({ 'api-key': 'sk-azure-openai', 'content-type': contentType })
  expect(Buffer.from(call?.body ?? []).toString()).toBe(form('whisper-up'))
})

test('the command line creates a provider and a model with a key from the environment', async () => {
  const env = { SERVICE_API_URL: gatehouse.baseUrl, SERVICE_API_TOKEN: gatehouse.adminToken, THE_KEY: 'sk-from-cli' }
  const made = await run(
    [
      'provider',
      'create',
      '--name',
      'three',
      '--kind',
      'openai',
      '--base-url',
      two.baseUrl,
      '--api-key-env',
      'THE_KEY',
    ],
    { env },
  )
  expect([made.code, made.stderr]).toEqual([0, ''])
  expect(made.stdout).not.toContain('sk-from-cli')
  expect((await operate(gatehouse, 'model', 'create', 'by/cli', '--provider', 'three')).code).toBe(0)
  await until('it is served', async () => (await asked({ model: 'by/cli' })).status === 200)
  expect(two.calls.at(-1)?.headers.authorization).toBe('Bearer sk-from-cli')
})
