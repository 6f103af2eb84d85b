import { expect, test } from 'bun:test'
import type { ClientLanguage } from '../../../../clients/recipe.ts'
import { modelsWithin, type Records } from './usable-models.ts'

const provider = (id: string, kind: string, fields: object = {}) => ({
  ...{ id, name: kind, kind, base_url: null, has_api_key: true, header_names: [], allow_unlisted_models: false },
  ...fields,
})
const records: Records = {
  models: [
    { id: 'simulator/echo', provider_id: 'p3', families: null },
    { id: 'gpt-4o', provider_id: 'p1', families: null },
    { id: 'text-embedding-3', provider_id: 'p1', families: ['embeddings'] },
    { id: 'claude-opus', provider_id: 'p2', families: null },
  ],
  providers: [provider('p3', 'simulator'), provider('p1', 'openai'), provider('p2', 'anthropic')],
  policies: [{ id: 'a1', models: ['gpt-*'], providers: null }],
  targets: [],
}
interface Asked {
  bindings?: object
  access_policy_ids?: string[]
  language?: ClientLanguage
  of?: Partial<Records>
}
const ask = ({ bindings = {}, access_policy_ids = [], language = 'chat', of = {} }: Asked = {}) =>
  modelsWithin({ bindings, access_policy_ids }, { ...records, ...of }, language)

test('a token without limits uses the models that speak the language first, the simulator last, and no embeddings', () => {
  expect(ask()).toEqual(['gpt-4o', 'claude-opus', 'simulator/echo'])
  expect(ask({ language: 'messages' })).toEqual(['claude-opus', 'gpt-4o', 'simulator/echo'])
  expect(ask({ language: 'gemini' })).toEqual(['gpt-4o', 'claude-opus', 'simulator/echo'])
})

test('a model that cannot answer comes after the simulator', () => {
  const withoutKey = records.providers.map((one) => (one.kind === 'anthropic' ? { ...one, has_api_key: false } : one))
  expect(ask({ language: 'messages', of: { providers: withoutKey } })).toEqual([
    'gpt-4o',
    'simulator/echo',
    'claude-opus',
  ])
  const target = { provider: 'openai', model: 'gpt-4o', circuit_open: true, error_ratio: 1 }
  expect(ask({ of: { targets: [target] } })).toEqual(['claude-opus', 'simulator/echo', 'gpt-4o'])
})

test('without models in the catalog, the provider that takes every name is asked for one of its own', () => {
  const providers = [provider('p3', 'simulator'), provider('p2', 'anthropic', { allow_unlisted_models: true })]
  const of = { models: records.models.slice(0, 1), providers }
  expect(ask({ language: 'messages', of })).toEqual(['claude-sonnet-4-5', 'simulator/echo'])
  const elsewhere = [{ ...providers[1], base_url: 'https://models.example.com' }]
  expect(ask({ language: 'messages', of: { models: [], providers: elsewhere } })).toEqual([])
})

test('the filter, the provider and the access policies of a token each leave models out', () => {
  expect(ask({ bindings: { model_filter: ['claude-*'] } })).toEqual(['claude-opus'])
  expect(ask({ bindings: { provider: 'openai' } })).toEqual(['gpt-4o'])
  expect(ask({ access_policy_ids: ['a1'] })).toEqual(['gpt-4o'])
  expect(ask({ bindings: { provider: 'anthropic' }, access_policy_ids: ['a1'] })).toEqual([])
})

test('an exact name of the filter is usable where the catalog does not list it', () => {
  expect(ask({ bindings: { model_filter: ['claude-*', 'o9.mini'] } })).toEqual(['o9.mini', 'claude-opus'])
})

test('a Vertex provider without a key works by the account of its host', () => {
  const models = [
    { id: 'simulator/echo', provider_id: 'p3', families: null },
    { id: 'gemini-pro', provider_id: 'p4', families: null },
  ]
  const providers = [provider('p3', 'simulator'), provider('p4', 'vertex', { has_api_key: false })]
  expect(ask({ language: 'gemini', of: { models, providers } })).toEqual(['gemini-pro', 'simulator/echo'])
})

test('a name that the catalog or the filter has is not listed again for the provider that takes every name', () => {
  const providers = [provider('p1', 'openai', { allow_unlisted_models: true }), provider('p2', 'anthropic')]
  expect(ask({ of: { models: [{ id: 'gpt-4o', provider_id: 'p1', families: null }], providers } })).toEqual(['gpt-4o'])
  expect(ask({ bindings: { model_filter: ['gpt-4o'] }, of: { models: [], providers } })).toEqual(['gpt-4o'])
  const elsewhere = [{ id: 'gpt-4o', provider_id: 'p2', families: null }]
  expect(ask({ bindings: { provider: 'openai' }, of: { models: elsewhere, providers } })).toEqual([])
})
