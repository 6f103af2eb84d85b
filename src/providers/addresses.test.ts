import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { Failure } from '../failure.ts'
import { testServiceKey } from './google/testing/service-key.ts'
import { providerKinds } from './kinds/index.ts'
import { isModelName } from './model-name.ts'
import { presets } from './presets/presets.ts'
import type { Provider, ProviderKind, UpstreamCall } from './provider.ts'

const provider = (kind: string, baseUrl: string): Provider => ({
  id: kind,
  name: kind,
  kind,
  baseUrl,
  apiKey: kind === 'vertex' ? testServiceKey('http://127.0.0.1:1/token') : 'key',
  headers: { region: 'eu-central-1' },
  allowUnlistedModels: true,
})

const call = (family: UpstreamCall['family'], model: string, stream: boolean): UpstreamCall => ({
  family,
  model,
  stream,
  body: Buffer.from('{"input":"a","model":"m"}'),
  contentType: 'application/json',
  headers: {},
  signal: new AbortController().signal,
  answerLimit: 1_000_000,
})

/** The address that a kind asks for a model; null where it refuses the model. */
async function addressOf(kind: ProviderKind, of: Provider, asked: UpstreamCall): Promise<string | null> {
  let address: string | null = null
  try {
    await kind.send(of, asked, async (url) => {
      if (url.endsWith('/token')) return Response.json({ access_token: 'token', expires_in: 3600 })
      address = url
      return Response.json({})
    })
  } catch (thrown) {
    if (address === null && !(thrown instanceof Failure && thrown.code === 'model_not_found')) throw thrown
  }
  return address
}

const pieces = [
  '..',
  '.',
  '/',
  '//',
  '\\',
  '%2e%2e',
  '%2E',
  '%2f',
  '%5c',
  '%252e',
  '?',
  '#',
  ':',
  ';',
  '@',
  '..;',
  '\n',
]
const words = ['models', 'gemini-3-pro', 'tunedModels', 'upload', 'v1beta', 'arn:aws:bedrock:eu::foundation-model', 'é']
const hostileName = fc
  .array(fc.oneof(fc.constantFrom(...pieces, ...words), fc.string({ unit: 'binary', maxLength: 4 })), { maxLength: 8 })
  .map((parts) => parts.join(''))

/** Those with a file of their own; the others are called as OpenAI is. */
const ownKinds: ReadonlySet<string> = new Set(['openai', 'anthropic', 'azure-openai', 'gemini', 'vertex', 'bedrock'])

/**
 * The number of segments that a model's address has below the base. A new kind that is reached by fetch needs a row.
 */
const segmentsOf: Readonly<Record<string, (model: string, family: string) => number>> = {
  openai: (_, family) => (family === 'chat' ? 2 : 1),
  anthropic: () => 1,
  'azure-openai': (_, family) => (family === 'chat' ? 5 : 4),
  gemini: (model) => Math.max(2, model.split('/').length),
  vertex: () => 9,
  bedrock: () => 3,
  ...Object.fromEntries(
    presets
      .filter(({ kind }) => !ownKinds.has(kind.kind))
      .map(({ name }) => [name, (_: string, family: string) => (family === 'chat' ? 2 : 1)]),
  ),
}

test("keeps a model's address below the base URL, with the segments of its kind, for any model name", async () => {
  const base = 'https://provider.example/tenant/v1'
  const azureBase = 'https://provider.example/tenant'
  const vertexBase = 'https://provider.example'
  const kinds = [...providerKinds.values()].filter(({ address }) => address !== undefined)
  expect(kinds.map(({ kind }) => kind).sort()).toEqual(Object.keys(segmentsOf).sort())
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...kinds),
      hostileName,
      fc.constantFrom('chat' as const, 'embeddings' as const),
      fc.boolean(),
      async (kind, model, family, stream) => {
        const of = provider(
          kind.kind,
          kind.kind === 'azure-openai' ? azureBase : kind.kind === 'vertex' ? vertexBase : base,
        )
        // Bedrock serves embeddings of some models only.
        const name = kind.kind === 'bedrock' && family === 'embeddings' ? `${model}/amazon.titan-embed-text` : model
        const address = await addressOf(kind, of, call(family, name, stream))
        if (address === null) {
          expect(isModelName(name)).toBe(false)
          return
        }
        const { origin, pathname, hash, search } = new URL(address)
        expect(`${origin}${pathname}`).toStartWith(`${of.baseUrl}/`)
        const below = pathname.slice(new URL(of.baseUrl ?? '').pathname.length + 1).split('/')
        expect(below).toHaveLength(segmentsOf[kind.kind]?.(model, family) ?? Number.NaN)
        expect(below).not.toContain('')
        expect(hash).toBe('')
        expect(['', '?alt=sse', '?api-version=2024-10-21']).toContain(search)
      },
    ),
    { numRuns: 3000 },
  )
})

test('asks for stored objects below the base of a provider, with its method and without a body', async () => {
  const addresses: string[] = []
  for (const [kind, baseUrl] of [
    ['openai', 'https://provider.example/tenant/v1'],
    ['azure-openai', 'https://name.openai.azure.com'],
    ['azure-openai', 'https://name.openai.azure.com/openai/v1'],
  ] as const) {
    const known = providerKinds.get(kind)
    const endpoint = { method: 'GET', path: '/responses/resp_1?stream=true' } as const
    await known?.send(
      { ...provider(kind, baseUrl), headers: { 'api-version': 'preview' } },
      { ...call('responses', 'm', false), body: new Uint8Array(0), endpoint },
      async (url, init) => {
        addresses.push(`${init.method} ${url}`)
        expect([init.body, new Headers(init.headers).get('content-type')]).toEqual([undefined, null])
        return new Response()
      },
    )
  }
  expect(addresses).toEqual([
    'GET https://provider.example/tenant/v1/responses/resp_1?stream=true',
    'GET https://name.openai.azure.com/openai/v1/responses/resp_1?stream=true',
    'GET https://name.openai.azure.com/openai/v1/responses/resp_1?stream=true&api-version=preview',
  ])
})

test('a name that could leave its segment is no name of a model', () => {
  const climbing = ['.', '..', 'a/../b', '../../upload/a', 'a/..', './a', 'a/./b', 'a/..;/b', 'a//b', '/a', 'a/', '']
  const spelt = [
    '%2e%2e',
    'a%2f..%2fb',
    'a%252e',
    'a\\..\\b',
    'a?b',
    'a#b',
    'a\nb',
    'a\u0000',
    'a\u007f',
    'a\u0085',
    'a'.repeat(2049),
    '\ud800',
    'a b',
    ' a',
    'a\u00a0',
    'a\u2028b',
    'a\ufeff',
  ]
  for (const name of [...climbing, ...spelt]) expect([name, isModelName(name)]).toEqual([name, false])
  const arn = 'arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.anthropic.claude-sonnet-4:0'
  for (const name of ['gpt-4.1', 'models/a', 'a..b', '...', 'ft:gpt-4o:org::id', '@cf/meta/llama', arn])
    expect([name, isModelName(name)]).toEqual([name, true])
})
