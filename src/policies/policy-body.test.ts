import { expect, test } from 'bun:test'
import { changedContent, checkContent, type PolicyContent } from './policy-body.ts'

const content = (change: Partial<PolicyContent>): PolicyContent => ({
  kind: 'term-filter',
  stages: ['pre_response'],
  config: { terms: ['a'], action: 'redact' },
  when: 'response.status == 200',
  targets: {},
  mode: 'enforce',
  whenBroken: 'deny',
  enabled: true,
  ...change,
})

test('refuses a condition by which a policy would change a stream that it has to wait for', () => {
  for (const wrong of [
    content({}),
    content({ when: 'request.stream && size(response.tool_calls) > 0' }),
    content({
      kind: 'response-rewrite',
      config: { replacements: [{ find: 'a', replace: 'b' }] },
    }),
  ]) {
    expect(() => checkContent(wrong)).toThrow(expect.objectContaining({ status: 422, param: 'when' }))
  }
  for (const right of [
    content({ when: 'request.text.contains("response")' }),
    content({ when: null }),
    content({ mode: 'monitor' }),
    content({ config: { terms: ['a'], action: 'block' } }),
  ]) {
    expect(() => checkContent(right)).not.toThrow()
  }
})

test('a changed config has the defaults of its kind, so that only what was changed differs from the version before', () => {
  const before = content({ config: { terms: ['a'], action: 'redact', case_sensitive: false } })
  expect(changedContent(before, { config: { terms: ['b'], action: 'redact' } }).config).toEqual(
    changedContent(before, { config: { terms: ['b'], action: 'redact', case_sensitive: false } }).config,
  )
  expect(() => changedContent(before, { config: { terms: 'b' } })).toThrow(
    expect.objectContaining({ param: 'config.terms' }),
  )
})
