import { expect, test } from 'bun:test'
import { type FirstHourRecords, stepsTaken } from './steps.ts'

const fresh: FirstHourRecords = {
  providers: [{ id: 'sim', kind: 'simulator', allow_unlisted_models: true }],
  failedTests: [],
  models: [{ provider_id: 'sim' }],
  tokens: [{ roles: ['owner'] }],
  request: null,
  hasPolicy: false,
  hasBudget: false,
}

test('counts neither the simulator, nor its models, nor the token of the administrator', () => {
  expect([...stepsTaken(fresh)]).toEqual([])
})

test('takes a provider that serves unlisted models for a model', () => {
  const openai = { id: 'open', kind: 'openai', allow_unlisted_models: true }
  expect([...stepsTaken({ ...fresh, providers: [openai] })]).toEqual(['provider', 'model'])
  const strict = { id: 'open', kind: 'openai', allow_unlisted_models: false }
  expect([...stepsTaken({ ...fresh, providers: [strict] })]).toEqual(['provider'])
})

test('does not count a provider whose last connection test failed', () => {
  const provider = (id: string) => ({ id, kind: 'openai', allow_unlisted_models: false })
  const failed = { ...fresh, providers: [provider('one')], failedTests: ['one'] }
  expect([...stepsTaken(failed)]).toEqual([])
  expect([...stepsTaken({ ...failed, providers: [provider('one'), provider('two')] })]).toEqual(['provider'])
})

test('counts each other step by its record', () => {
  const taken = stepsTaken({
    ...fresh,
    providers: [{ id: 'open', kind: 'openai', allow_unlisted_models: false }],
    models: [{ provider_id: 'open' }],
    tokens: [{ roles: ['owner'] }, { roles: ['member'] }],
    request: { event_id: 'id', timestamp: '2026-11-01T00:00:00.000Z' },
    hasPolicy: true,
    hasBudget: true,
  })
  expect([...taken]).toEqual(['provider', 'model', 'token', 'request', 'policy', 'budget'])
})
