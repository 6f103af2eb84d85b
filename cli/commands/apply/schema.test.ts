import { expect, test } from 'bun:test'
import Ajv from 'ajv'
import { fileSchema } from './schema.ts'

const validate = new Ajv({ strict: false, validateFormats: false }).compile(fileSchema())

test('the schema for editors takes what apply takes', () => {
  const file = {
    teams: [{ name: 'platform' }],
    users: [{ email: 'ada@example.com', name: 'Ada', teams: ['platform'] }],
    providers: [
      { preset: 'groq', api_key: { env: 'KEY' } },
      { name: 'a', kind: 'openai', api_key: 'vault://a#b' },
    ],
    models: [{ name: 'a/b', targets: [{ provider: 'groq' }], shadow: { provider: 'a', share: 5 } }],
    budgets: [{ name: 'b', max_budget: 1, window: 'day', scope: { kind: 'team', name: 'platform' } }],
    managed_settings: [{ name: 'm', settings: {}, teams: ['platform'] }],
    policies: [{ name: 'p', kind: 'term-filter', stages: ['pre_request'], config: { terms: ['x'], action: 'block' } }],
  }
  expect(validate(file)).toBe(true)
})

test.each([
  ['an unknown list', { provders: [] }],
  ['an unknown field', { teams: [{ name: 'a', colour: 'red' }] }],
  ['a secret itself', { providers: [{ name: 'a', kind: 'openai', api_key: 'sk-1' }] }],
  ["the API's name of a reference", { managed_settings: [{ name: 'm', settings: {}, team_ids: [] }] }],
  ['a policy of no kind', { policies: [{ name: 'p', kind: 'none', stages: ['pre_request'], config: {} }] }],
])('the schema for editors refuses %s', (_, file) => {
  expect(validate(file)).toBe(false)
})
