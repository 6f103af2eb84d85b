import { expect, test } from 'bun:test'
import { isPosted } from '../languages/families.ts'
import { poolOf } from '../lib/http/connection-pools.ts'
import { anthropic, messagesBaseOf } from './kinds/anthropic.ts'
import { azureOpenai } from './kinds/azure-openai.ts'
import { gemini, geminiBaseOf } from './kinds/gemini.ts'
import { baseOf, openai } from './kinds/openai.ts'
import type { Provider, ProviderKind, UpstreamCall } from './provider.ts'

const provider = (members: Partial<Provider>): Provider => ({
  id: 'p',
  name: 'p',
  kind: 'openai',
  baseUrl: 'https://host',
  apiKey: 'sk-operator',
  headers: {},
  allowUnlistedModels: true,
  ...members,
})

const call = (members: Partial<UpstreamCall> = {}): UpstreamCall => ({
  family: 'chat',
  model: 'm',
  stream: false,
  body: new Uint8Array([1, 2]),
  contentType: 'application/json',
  headers: {},
  signal: new AbortController().signal,
  answerLimit: 1_000_000,
  ...members,
})

async function sent(kind: ProviderKind, to: Provider, what: UpstreamCall) {
  const seen: { url: string; init: BunFetchRequestInit }[] = []
  await kind.send(to, what, async (url, init) => {
    seen.push({ url, init })
    return new Response()
  })
  const [first] = seen
  if (first === undefined) throw new Error('Nothing was sent')
  return { url: first.url, init: first.init, headers: new Headers(first.init.headers) }
}

test('baseOf follows the convention of OPENAI_BASE_URL, which includes /v1', () => {
  expect(baseOf('http://host:11434')).toBe('http://host:11434/v1')
  expect(baseOf('http://host/')).toBe('http://host/v1')
  expect(baseOf('https://api.openai.com/v1/')).toBe('https://api.openai.com/v1')
  expect(baseOf('https://host/openai/v1')).toBe('https://host/openai/v1')
})

test('messagesBaseOf follows the convention of ANTHROPIC_BASE_URL, which may leave /v1 out', () => {
  expect(messagesBaseOf('https://api.anthropic.com')).toBe('https://api.anthropic.com/v1')
  expect(messagesBaseOf('https://host/v1/')).toBe('https://host/v1')
  expect(messagesBaseOf('https://host/anthropic/')).toBe('https://host/anthropic/v1')
})

test('openai sends the bytes with the operator’s credential and headers, which a caller cannot override', async () => {
  const what = call({ headers: { 'x-org': 'theirs', accept: '*/*', authorization: 'Bearer theirs' } })
  const { url, init } = await sent(openai, provider({ headers: { 'X-Org': 'ours' } }), what)
  expect(url).toBe('https://host/v1/chat/completions')
  expect(init).toMatchObject({
    method: 'POST',
    redirect: 'manual',
    headers: {
      accept: '*/*',
      'accept-encoding': 'identity',
      authorization: 'Bearer sk-operator',
      'content-type': 'application/json',
      'x-org': 'ours',
    },
  })
  expect(init.body).toBe(what.body)
})

test('openai has a path for each of its families', async () => {
  const urls = await Promise.all(
    openai.families
      .filter(isPosted)
      .map(async (family) => [family, (await sent(openai, provider({}), call({ family }))).url]),
  )
  expect(Object.fromEntries(urls)).toEqual({
    chat: 'https://host/v1/chat/completions',
    responses: 'https://host/v1/responses',
    embeddings: 'https://host/v1/embeddings',
    transcriptions: 'https://host/v1/audio/transcriptions',
    translations: 'https://host/v1/audio/translations',
    speech: 'https://host/v1/audio/speech',
    completions: 'https://host/v1/completions',
    moderations: 'https://host/v1/moderations',
    images: 'https://host/v1/images/generations',
    image_edits: 'https://host/v1/images/edits',
    rerank: 'https://host/v1/rerank',
  })
})

test('a multipart body keeps the boundary that its Content-Type names', async () => {
  const contentType = 'multipart/form-data; boundary=7Mp'
  const { headers } = await sent(openai, provider({}), call({ family: 'transcriptions', contentType }))
  expect(headers.get('content-type')).toBe(contentType)
})

test('anthropic sends x-api-key and its usual version, or the caller’s', async () => {
  const plain = await sent(anthropic, provider({ kind: 'anthropic' }), call({ family: 'messages' }))
  expect(plain.url).toBe('https://host/v1/messages')
  expect(plain.headers.get('x-api-key')).toBe('sk-operator')
  expect(plain.headers.get('authorization')).toBeNull()
  expect(plain.headers.get('anthropic-version')).toBe('2023-06-01')
  const headers = { 'anthropic-version': '2099-01-01', 'anthropic-beta': 'x' }
  const versioned = await sent(anthropic, provider({ kind: 'anthropic' }), call({ family: 'messages', headers }))
  expect(versioned.headers.get('anthropic-version')).toBe('2099-01-01')
  expect(versioned.headers.get('anthropic-beta')).toBe('x')
  const pinned = provider({ kind: 'anthropic', headers: { 'Anthropic-Version': '2024-01-01' } })
  const operator = await sent(anthropic, pinned, call({ family: 'messages', headers }))
  expect(operator.headers.get('anthropic-version')).toBe('2024-01-01')
})

const azure = (members: Partial<Provider> = {}) =>
  provider({ kind: 'azure-openai', baseUrl: 'https://name.openai.azure.com', ...members })

test('azure-openai puts the deployment in the path and the version in the query', async () => {
  const { url, headers } = await sent(azureOpenai, azure(), call({ model: 'my@gpt' }))
  expect(url).toBe('https://name.openai.azure.com/openai/deployments/my%40gpt/chat/completions?api-version=2024-10-21')
  expect(headers.get('api-key')).toBe('sk-operator')
  expect(headers.get('authorization')).toBeNull()
  const versioned = azure({
    baseUrl: 'https://name.openai.azure.com/openai/',
    headers: { 'Api-Version': '2025-01-01' },
  })
  const other = await sent(azureOpenai, versioned, call({ family: 'embeddings' }))
  expect(other.url).toBe('https://name.openai.azure.com/openai/deployments/m/embeddings?api-version=2025-01-01')
  expect(other.headers.get('api-version')).toBeNull()
})

test('azure-openai by the v1 surface is like OpenAI itself, and responses always go there', async () => {
  const unified = azure({ baseUrl: 'https://name.openai.azure.com/openai/v1/' })
  expect((await sent(azureOpenai, unified, call())).url).toBe(
    'https://name.openai.azure.com/openai/v1/chat/completions',
  )
  expect((await sent(azureOpenai, azure(), call({ family: 'responses' }))).url).toBe(
    'https://name.openai.azure.com/openai/v1/responses',
  )
})

test('azure-openai without a base URL fails as a call, not as the gateway', async () => {
  const sending = azureOpenai.send(azure({ baseUrl: null }), call(), async () => new Response())
  await expect(sending).rejects.toThrow('base URL')
})

test('gemini takes the model and the stream in the path, and its key in a header', async () => {
  const to = provider({ kind: 'gemini', baseUrl: null })
  const { url, headers } = await sent(gemini, to, call({ model: 'gemini-2.5-pro' }))
  expect(url).toBe('https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:generateContent')
  expect(headers.get('x-goog-api-key')).toBe('sk-operator')
  expect(headers.has('authorization')).toBe(false)
  const streamed = await sent(gemini, provider({ kind: 'gemini' }), call({ model: 'tunedModels/my@one', stream: true }))
  expect(streamed.url).toBe('https://host/v1beta/tunedModels/my%40one:streamGenerateContent?alt=sse')
  expect(geminiBaseOf('https://host/proxy/v1/')).toBe('https://host/proxy/v1')
})

test('a call beyond the first pool gets TLS options of its own, without which it has none', async () => {
  expect((await sent(openai, provider({}), call({ slot: 59 }))).init).not.toHaveProperty('tls')
  expect((await sent(openai, provider({ baseUrl: 'http://host' }), call({ slot: 500 }))).init).not.toHaveProperty('tls')
  expect((await sent(openai, provider({}), call({ slot: 60 }))).init.tls).toEqual(poolOf('https://host', 60))
})
