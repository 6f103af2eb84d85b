import { expect, test } from 'bun:test'
import { systemClock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log/log.ts'
import { OfferedModels } from '../catalog/offered-models.ts'
import { providerKinds } from '../kinds/index.ts'
import type { Provider, ProviderKind, UpstreamCall } from '../provider.ts'

const provider = (kind: string, baseUrl: string | null = null): Provider => ({
  id: kind,
  name: kind,
  kind,
  baseUrl,
  apiKey: 'key',
  headers: {},
  allowUnlistedModels: true,
})

const kindNamed = (name: string): ProviderKind => {
  const kind = providerKinds.get(name)
  if (kind === undefined) throw new Error(`There is no kind ${name}`)
  return kind
}

const call = (body: string, family: UpstreamCall['family'] = 'chat'): UpstreamCall => ({
  family,
  model: 'm',
  stream: false,
  body: Buffer.from(body),
  contentType: 'application/json',
  headers: {},
  signal: new AbortController().signal,
  answerLimit: 1_000_000,
})

/** The address, key and body of the request that a kind sends. */
async function sent(kind: string, asked: UpstreamCall, baseUrl: string | null = null) {
  let request: Request | null = null
  await kindNamed(kind).send(provider(kind, baseUrl), asked, async (url, init) => {
    request = new Request(url, init)
    return Response.json({})
  })
  if (request === null) throw new Error('Nothing was sent')
  const { url, headers } = request as Request
  return { url, key: headers.get('authorization'), body: await (request as Request).text() }
}

test('calls a service at its own address with its key', async () => {
  expect(await sent('groq', call('{}'))).toEqual({
    url: 'https://api.groq.com/openai/v1/chat/completions',
    key: 'Bearer key',
    body: '{}',
  })
  expect((await sent('perplexity', call('{}'))).url).toBe('https://api.perplexity.ai/chat/completions')
  expect((await sent('cohere', call('{}', 'embeddings'))).url).toBe('https://api.cohere.ai/compatibility/v1/embeddings')
})

test('calls a service at the address that the operator set', async () => {
  expect((await sent('ollama', call('{}'), 'http://gpu.internal:11434')).url).toBe(
    'http://gpu.internal:11434/v1/chat/completions',
  )
})

test('sends the output limit as max_tokens to a service that knows no max_completion_tokens', async () => {
  const body = '{"model":"m", "max_completion_tokens": 5,"n":1.0}'
  expect((await sent('mistral', call(body))).body).toBe('{"model":"m","n":1.0,"max_tokens":5}')
  expect((await sent('groq', call(body))).body).toBe(body)
  const both = '{"max_tokens":9,"max_completion_tokens":5}'
  expect((await sent('deepseek', call(both))).body).toBe('{"max_tokens":5}')
  expect((await sent('deepseek', call('{"max_tokens":9,"max_completion_tokens":null}'))).body).toBe('{"max_tokens":9}')
})

test('sends a body unchanged that only speaks of max_completion_tokens in a text', async () => {
  const body = '{"messages":[{"role":"user","content":"\\"max_completion_tokens\\" is what?"}], "seed": 1}'
  expect((await sent('mistral', call(body))).body).toBe(body)
})

test('reads the model lists of services in each of their forms', async () => {
  const offered = async (kind: string, list: unknown) => {
    const models = new OfferedModels({ fetch: async () => Response.json(list), clock: systemClock, log: silentLog })
    return [...((await models.of(provider(kind), kindNamed(kind))) ?? [])].map(([id]) => id)
  }
  expect(await offered('groq', { data: [{ id: 'llama' }] })).toEqual(['llama'])
  expect(await offered('together', [{ id: 'meta-llama/a' }, { object: 'none' }])).toEqual(['meta-llama/a'])
  expect(await offered('cohere', { models: [{ name: 'command-a' }] })).toEqual(['command-a'])
  expect(await offered('perplexity', { data: [{ id: 'sonar' }] })).toEqual([])
})
