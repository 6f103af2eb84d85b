import { expect, test } from 'bun:test'
import { modelsWithin } from './usable-models.ts'

const records = {
  models: [
    { id: 'gpt-4o', provider_id: 'p1', families: null },
    { id: 'text-embedding-3', provider_id: 'p1', families: ['embeddings'] },
    { id: 'claude-opus', provider_id: 'p2', families: null },
    { id: 'simulator/echo', provider_id: 'p3', families: null },
  ],
  providers: [
    { id: 'p1', name: 'openai' },
    { id: 'p2', name: 'anthropic' },
    { id: 'p3', name: 'simulator' },
  ],
  policies: [{ id: 'a1', models: ['gpt-*'], providers: null }],
}
const of = (bindings: object, access_policy_ids: string[] = []) =>
  modelsWithin({ bindings, access_policy_ids }, records)

test('a token without limits uses the offline model first, and no model of embeddings', () => {
  expect(of({})).toEqual(['simulator/echo', 'gpt-4o', 'claude-opus'])
})

test('the filter, the provider and the access policies of a token each leave models out', () => {
  expect(of({ model_filter: ['claude-*'] })).toEqual(['claude-opus'])
  expect(of({ provider: 'openai' })).toEqual(['gpt-4o'])
  expect(of({}, ['a1'])).toEqual(['gpt-4o'])
  expect(of({ provider: 'anthropic' }, ['a1'])).toEqual([])
})

test('an exact name of the filter is usable where the catalog does not list it', () => {
  expect(of({ model_filter: ['claude-*', 'o9.mini'] })).toEqual(['o9.mini', 'claude-opus'])
})
