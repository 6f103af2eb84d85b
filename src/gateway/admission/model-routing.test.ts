import { beforeAll, beforeEach, expect, test } from 'bun:test'
import fc from 'fast-check'
import { Failure } from '../../failure.ts'
import { chat } from '../../languages/chat/dialect.ts'
import { type Family, routeOf } from '../../languages/families.ts'
import { systemClock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { PriceBook } from '../../providers/prices/price-book.ts'
import type { GovernedToken } from '../../tokens/governed-token.ts'
import { noLimits } from '../../usage/limits.ts'
import { beginExchange } from '../exchange.ts'
import {
  createTestWorker,
  type TestWorker,
  testMemory,
  testModel,
  testProvider,
  testTargets,
} from '../testing/worker.ts'
import { resolveModel } from './model-routing.ts'

const prices = new PriceBook()
beforeAll(() => prices.load())

let worker: TestWorker
beforeEach(() => {
  worker = createTestWorker()
  worker.upstreams.push(
    testProvider({ id: 'p1', name: 'one' }),
    testProvider({ id: 'p2', name: 'two' }),
    testProvider({ id: 'p3', name: 'three', kind: 'anthropic' }),
    testProvider({ id: 'p4', name: 'four', kind: 'not-known-yet' }),
  )
})

function exchangeFor(model: string, members: Partial<GovernedToken> = {}, family: Family = 'chat') {
  const secret = worker.addToken(members)
  const hash = new Bun.CryptoHasher('sha256').update(secret).digest('hex')
  const exchange = beginExchange(
    {
      request: new Request('http://localhost/'),
      connection: null,
      requestId: 'r',
      route: routeOf('chat'),
      family,
      dialect: { ...chat, family },
    },
    { clock: systemClock, newId, memory: testMemory() },
  )
  exchange.facts = chat.read({ model, messages: [] })
  exchange.token = worker.tokens.get(hash) ?? null
  return exchange
}

/** The paths of a request, as `provider/upstream model`, or the code it is refused with. */
function pathsOf(model: string, members: Partial<GovernedToken> = {}, family: Family = 'chat'): string[] | string {
  const exchange = exchangeFor(model, members, family)
  try {
    resolveModel(exchange, { worker, prices, clock: systemClock, targets: testTargets() })
  } catch (thrown) {
    if (thrown instanceof Failure) return `${thrown.status} ${thrown.code} ${thrown.param}`
    throw thrown
  }
  expect(exchange.model).toBe(exchange.paths[0] ?? null)
  return exchange.paths.map(({ provider, upstreamModel }) => `${provider.name}/${upstreamModel}`)
}

test('routes an unlisted model to the first provider that accepts unlisted models', () => {
  expect(pathsOf('anything')).toEqual(['one/anything'])
  expect(pathsOf('anything', {}, 'messages')).toEqual(['three/anything'])
})

test('routes unlisted models to the provider that the token is bound to', () => {
  expect(pathsOf('anything', { provider: 'two' })).toEqual(['two/anything'])
  expect(pathsOf('anything', { provider: 'four' })).toBe('403 tokens.provider_not_allowed model')
})

test('translates for an unlisted model only when no provider speaks the language', () => {
  expect(pathsOf('anything', { provider: 'three' })).toEqual(['three/anything'])
  expect(pathsOf('anything', { provider: 'one' }, 'messages')).toEqual(['one/anything'])
  expect(pathsOf('anything', { provider: 'three' }, 'embeddings')).toBe('403 tokens.provider_not_allowed model')
})

test('routes a listed model to its provider only, even when this gateway or family cannot use it', () => {
  worker.catalog.push(
    testModel({ id: 'listed', providerId: 'p2', upstreamModel: 'up' }),
    testModel({ id: 'elsewhere', providerId: 'not-for-this-gateway' }),
    testModel({ id: 'vectors', providerId: 'p1', families: ['embeddings'] }),
    testModel({ id: 'later', providerId: 'p4' }),
  )
  expect(pathsOf('listed')).toEqual(['two/up'])
  expect(pathsOf('elsewhere')).toBe('404 model_not_found model')
  for (const id of ['vectors', 'later']) expect(pathsOf(id)).toBe('400 model_family_unsupported model')
  expect(pathsOf('vectors', {}, 'embeddings')).toEqual(['one/vectors'])
})

test('reports a model whose provider key has not arrived as unavailable, not as unknown', () => {
  worker.catalog.push(testModel({ id: 'new', providerId: 'p5' }))
  worker.closedProviders.push('p5')
  expect(pathsOf('new')).toBe('503 dependency_unavailable model')
})

test('waits for the key of an unlisted model’s provider instead of using the next provider', () => {
  worker.closedProviders.push('p1')
  expect(pathsOf('anything')).toBe('503 dependency_unavailable model')
  expect(pathsOf('anything', { provider: 'two' })).toEqual(['two/anything'])
})

test('refuses a model that the token may not use', () => {
  worker.catalog.push(testModel({ id: 'listed', providerId: 'p2' }))
  expect(pathsOf('listed', { provider: 'one' })).toBe('403 tokens.provider_not_allowed model')
  expect(pathsOf('listed', { modelFilter: ['other*'] })).toBe('403 tokens.model_not_allowed model')
})

test('tries fallbacks in order and once each, skips unusable ones, and follows no fallback of a fallback', () => {
  worker.catalog.push(
    testModel({ id: 'main', providerId: 'p1', fallbacks: ['b', 'main', 'gone', 'a', 'b', 'vectors', 'claude'] }),
    testModel({ id: 'a', providerId: 'p2', fallbacks: ['deep'] }),
    testModel({ id: 'b', providerId: 'p2', fallbacks: ['main'] }),
    testModel({ id: 'deep', providerId: 'p2' }),
    testModel({ id: 'vectors', providerId: 'p2', families: ['embeddings'] }),
    testModel({ id: 'claude', providerId: 'p3' }),
  )
  expect(pathsOf('main')).toEqual(['one/main', 'two/b', 'two/a', 'three/claude'])
  expect(pathsOf('main', { modelFilter: ['main', 'a'] })).toEqual(['one/main', 'two/a'])
  expect(pathsOf('main', { provider: 'one' })).toEqual(['one/main'])
})

test('applies an access policy to the requested model and to its fallbacks', () => {
  worker.catalog.push(
    testModel({ id: 'main', providerId: 'p1', fallbacks: ['spare', 'other'] }),
    testModel({ id: 'spare', providerId: 'p2' }),
    testModel({ id: 'other', providerId: 'p1' }),
  )
  const bounded = (models: string[] | null, providers: string[] | null) => {
    const policy = { id: 'a', requestsPerMinute: null, tokensPerMinute: null, models, providers }
    Object.assign(worker.view, { limits: { ...noLimits, accessPolicies: new Map([['a', policy]]) } })
    return pathsOf('main', { accessPolicyIds: ['a', 'deleted-since'] })
  }
  expect(bounded(['main', 'sp*'], null)).toEqual(['one/main', 'two/spare'])
  expect(bounded(null, ['one'])).toEqual(['one/main', 'one/other'])
  expect(bounded(['spare'], null)).toBe('403 tokens.model_not_allowed model')
  expect(bounded(null, ['two'])).toBe('403 tokens.provider_not_allowed model')
})

test('refuses a model name that could leave its URL segment, also in a record', () => {
  worker.upstreams.push(testProvider({ id: 'g', name: 'google', kind: 'gemini' }))
  worker.catalog.push(
    testModel({ id: 'a/../b', providerId: 'g' }),
    testModel({ id: 'climbs', providerId: 'g', upstreamModel: '../../upload' }),
    testModel({ id: 'main', providerId: 'p1', fallbacks: ['climbs', 'a/../b', 'good'] }),
    testModel({ id: 'good', providerId: 'g' }),
  )
  const names = [
    'gemini-2.5-flash-lite/../models/gemini-3-pro',
    '../../upload/v1',
    'a/../b',
    'climbs',
    '%2e%2e/a',
    'a?b',
  ]
  for (const name of names) {
    for (const family of ['chat', 'responses', 'messages', 'embeddings', 'transcriptions', 'speech'] as const)
      expect([name, String(pathsOf(name, {}, family)).slice(-21)]).toEqual([name, 'model_not_found model'])
  }
  expect(pathsOf('main')).toEqual(['one/main', 'google/good'])
})

test('refuses a Gemini model name with a colon, also in a record', () => {
  worker.upstreams.length = 0
  worker.upstreams.push(testProvider({ id: 'g', name: 'google', kind: 'gemini' }))
  worker.catalog.push(
    testModel({ id: 'old', providerId: 'g', upstreamModel: 'gemini-3-pro:streamGenerateContent' }),
    testModel({ id: 'gemini-3-pro:old', providerId: 'g' }),
  )
  for (const name of ['gemini-3-pro:generateContent', 'tunedModels/a:b', 'old', 'gemini-3-pro:old', 'gemini 3', 'a\t'])
    expect([name, pathsOf(name)]).toEqual([name, '404 model_not_found model'])
})

test('treats the two names of a Gemini model as one in filters and records', () => {
  const own = { provider: 'google' }
  worker.upstreams.push(testProvider({ id: 'g', name: 'google', kind: 'gemini' }))
  worker.catalog.push(testModel({ id: 'gemini-listed', providerId: 'g', upstreamModel: 'gemini-up' }))
  expect(pathsOf('models/gemini-3-pro', own)).toEqual(['google/gemini-3-pro'])
  expect(pathsOf('models/gemini-3-pro', { ...own, modelFilter: ['gemini-3-pro'] })).toEqual(['google/gemini-3-pro'])
  expect(pathsOf('models/gemini-3-pro', { ...own, modelFilter: ['models/*'] })).toBe(
    '403 tokens.model_not_allowed model',
  )
  expect(pathsOf('models/gemini-listed', own)).toEqual(['google/gemini-up'])
  expect(pathsOf('tunedModels/mine', own)).toEqual(['google/tunedModels/mine'])
  expect(pathsOf('publishers/google/models/gemini-3-pro', own)).toBe('403 tokens.provider_not_allowed model')
  for (const name of ['Gemini-3-Pro', 'models/GEMINI-3-pro'])
    expect([name, pathsOf(name, { ...own, modelFilter: ['gemini-3-pro'] })]).toEqual([name, ['google/gemini-3-pro']])
  expect(pathsOf('Gemini-Listed', own)).toEqual(['google/gemini-up'])
  expect(pathsOf('tunedModels/Mine', own)).toEqual(['google/tunedModels/mine'])
})

test('treats a Bedrock ARN as the model it names, and requires a record for an ARN that names none', () => {
  const own = { provider: 'aws' }
  worker.upstreams.push(testProvider({ id: 'b', name: 'aws', kind: 'bedrock', baseUrl: null }))
  const arn = (part: string) => `arn:aws:bedrock:eu-west-1:123456789012:${part}`
  const model = 'anthropic.claude-sonnet-4:0'
  expect(pathsOf(arn(`foundation-model/${model}`), { ...own, modelFilter: [model] })).toEqual([`aws/${model}`])
  const profile = arn(`inference-profile/eu.${model}`)
  expect(pathsOf(profile, { ...own, modelFilter: ['eu.*'] })).toEqual([`aws/eu.${model}`])
  expect(pathsOf(profile, { ...own, modelFilter: [model, 'us.*'] })).toBe('403 tokens.model_not_allowed model')
  const opaque = arn('application-inference-profile/abc123')
  expect(pathsOf(opaque, own)).toBe('403 tokens.provider_not_allowed model')
  worker.catalog.push(testModel({ id: 'claude', providerId: 'b', upstreamModel: opaque }))
  expect(pathsOf('claude', own)).toEqual([`aws/${opaque}`])
})

test('shares the route target of a record between requests until its provider changes', () => {
  const listed = testModel({ id: 'listed', providerId: 'p2', upstreamModel: 'up' })
  worker.catalog.push(listed)
  expect(pathsOf('listed')).toEqual(['two/up'])
  expect(pathsOf('listed', {}, 'embeddings')).toEqual(['two/up'])
  worker.upstreams[1] = testProvider({ id: 'p2', name: 'renamed' })
  expect(pathsOf('listed')).toEqual(['renamed/up'])
  expect(pathsOf('listed', {}, 'embeddings')).toEqual(['renamed/up'])
})

test('routes a bare unlisted model to the provider whose price table has it, before the first one', () => {
  expect(pathsOf('claude-sonnet-4-5')).toEqual(['three/claude-sonnet-4-5'])
  expect(pathsOf('gpt-4o')).toEqual(['one/gpt-4o'])
  worker.upstreams.push(testProvider({ id: 'g', name: 'fast', kind: 'groq' }))
  worker.upstreams.push(testProvider({ id: 't', name: 'together', kind: 'together' }))
  expect(pathsOf('llama-3.3-70b-versatile')).toEqual(['fast/llama-3.3-70b-versatile'])
  const slashed = 'meta-llama/Llama-3.3-70B-Instruct-Turbo'
  expect(pathsOf(slashed)).toEqual([`together/${slashed}`])
  expect(pathsOf('claude-sonnet-4-5', { provider: 'one' })).toEqual(['one/claude-sonnet-4-5'])
})

test('loads the price table before it chooses between providers', async () => {
  const unloaded = new PriceBook()
  const exchange = exchangeFor('claude-sonnet-4-5')
  const resolving = resolveModel(exchange, { worker, prices: unloaded, clock: systemClock, targets: testTargets() })
  expect(resolving).toBeInstanceOf(Promise)
  await resolving
  expect(exchange.model?.provider.name).toBe('three')
})

test('routes a prefixed name to the provider of that name, and without one to the preset at its own address', () => {
  worker.upstreams.push(testProvider({ id: 'g', name: 'fast', kind: 'groq', baseUrl: null }))
  worker.upstreams.push(testProvider({ id: 'm', name: 'mistral', kind: 'openai' }))
  expect(pathsOf('two/anything')).toEqual(['two/anything'])
  expect(pathsOf('fast/llama')).toEqual(['fast/llama'])
  expect(pathsOf('groq/llama')).toEqual(['fast/llama'])
  expect(pathsOf('groq/openai/gpt-oss-120b')).toEqual(['fast/openai/gpt-oss-120b'])
  expect(pathsOf('mistral/m')).toEqual(['mistral/m'])
  // No provider is at DeepSeek's own address, so the name is the model's own.
  worker.upstreams.push(testProvider({ id: 'd', name: 'own', kind: 'deepseek', baseUrl: 'https://own.example.com' }))
  expect(pathsOf('deepseek/m')).toEqual(['one/deepseek/m'])
})

test('refuses a prefixed name whose provider does not serve the family or that the token may not use', () => {
  expect(pathsOf('three/claude', {}, 'embeddings')).toBe('400 model_family_unsupported model')
  expect(pathsOf('two/m', { provider: 'one' })).toBe('403 tokens.provider_not_allowed model')
  expect(pathsOf('two/m', { modelFilter: ['two/*'] })).toBe('403 tokens.model_not_allowed model')
  expect(pathsOf('two/m', { modelFilter: ['m'] })).toEqual(['two/m'])
  expect(pathsOf('two/../m')).toBe('404 model_not_found model')
  worker.closedProviders.push('p2')
  expect(pathsOf('two/m')).toBe('503 dependency_unavailable model')
})

test('does not send a prefixed name to a provider that serves listed models only', () => {
  worker.upstreams.push(testProvider({ id: 'c', name: 'closed', allowUnlistedModels: false }))
  expect(pathsOf('closed/m')).toEqual(['one/closed/m'])
})

test('resolves a prefixed name to the record of that model at that provider, and never to one at another', () => {
  worker.catalog.push(testModel({ id: 'listed', providerId: 'p2', upstreamModel: 'up', fallbacks: ['spare'] }))
  worker.catalog.push(testModel({ id: 'spare', providerId: 'p1' }), testModel({ id: 'two/odd', providerId: 'p1' }))
  expect(pathsOf('two/listed')).toEqual(['two/up', 'one/spare'])
  expect(pathsOf('one/listed')).toEqual(['one/listed'])
  expect(pathsOf('two/odd')).toEqual(['one/two/odd'])
})

test('gives a model the same id with and without a prefix, and every other name as an alias', () => {
  worker.upstreams.push(testProvider({ id: 'g', name: 'groq', kind: 'groq' }))
  const named = (model: string) => {
    const exchange = exchangeFor(model)
    void resolveModel(exchange, { worker, prices, clock: systemClock, targets: testTargets() })
    return { id: exchange.model?.id, aliases: exchange.model?.aliases }
  }
  expect(named('groq/Llama')).toEqual({ id: 'Llama', aliases: ['llama', 'groq/Llama', 'groq/llama'] })
  expect(named('groq/openai/gpt-oss')).toEqual({
    id: 'openai/gpt-oss',
    aliases: ['gpt-oss', 'groq/openai/gpt-oss'],
  })
  worker.catalog.push(testModel({ id: 'listed', providerId: 'g' }))
  expect(named('groq/listed')).toMatchObject({ id: 'listed', aliases: ['groq/listed'] })
})

test('sends no model under a name that a denial of its id, its sent name or its written name misses', () => {
  worker.upstreams.push(
    ...['groq', 'openai', 'openrouter', 'gemini', 'vertex', 'bedrock'].map((kind) =>
      testProvider({ id: kind, name: kind, kind, baseUrl: null, headers: { region: 'eu-west-1' } }),
    ),
    testProvider({ id: 'x', name: 'x', kind: 'xai', baseUrl: null }),
  )
  worker.catalog.push(
    testModel({ id: 'gpt-4o', providerId: 'openai' }),
    testModel({ id: 'groq/odd', providerId: 'p1' }),
  )
  const words = [
    'groq',
    'xai',
    'x',
    'one',
    'openai',
    'openrouter',
    'vertex',
    'gemini',
    'bedrock',
    'models',
    'publishers',
  ]
  const models = ['gpt-4o', 'odd', 'claude-sonnet-4@20250514', 'Gemini-2.5-Pro', 'google', 'us.anthropic.claude-4:0']
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(...words), { maxLength: 4 }),
      fc.constantFrom(...models),
      fc.constantFrom<Family>('chat', 'messages', 'gemini'),
      (prefixes, last, family) => {
        const name = [...prefixes, last].join('/')
        const exchange = exchangeFor(name, {}, family)
        try {
          void resolveModel(exchange, { worker, prices, clock: systemClock, targets: testTargets() })
        } catch (thrown) {
          if (thrown instanceof Failure) return
          throw thrown
        }
        const model = exchange.model
        if (model === null) throw new Error('There is no model')
        const names = [model.id, ...model.aliases].map((each) => each.toLowerCase())
        expect(names).toContain(model.upstreamModel.toLowerCase())
        // What a filter allows is what is sent.
        expect(model.upstreamModel).toBe(model.id)
        expect(names).toContain(name.toLowerCase())
      },
    ),
    { numRuns: 3000 },
  )
})
