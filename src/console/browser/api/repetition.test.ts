import { expect, test } from 'bun:test'
import { repeatable } from './repetition.ts'

const post = (body: object) => repeatable('POST', '/v1/tokens', body)

test('a content whose answer was lost goes again under its key, another one and a later one under a new one', () => {
  const first = post({ name: 'a' })
  first.ended('unknown')
  expect(first.key).toMatch(/^[\x21-\x7e]{7,255}$/)
  expect(post({ name: 'b' }).key).not.toBe(first.key)
  const second = post({ name: 'a' })
  expect(second.key).toBe(first.key)
  second.ended('unknown')
  expect(post({ name: 'a' }).key).toBe(first.key)
  post({ name: 'a' }).ended('decided')
  expect(post({ name: 'a' }).key).not.toBe(first.key)
})

test('any other write that was answered makes the same content a new one', () => {
  const claim = repeatable('POST', '/v1/escalations/1/claim', {})
  claim.ended('unknown')
  repeatable('PATCH', '/v1/policies/1', {}).ended('decided')
  expect(repeatable('POST', '/v1/escalations/1/claim', {}).key).not.toBe(claim.key)
})

test('what changes nothing has no key, and comes between nothing', () => {
  const lost = post({ name: 'c' })
  lost.ended('unknown')
  for (const path of ['/v1/policies/test', '/v1/policies/1/replay', '/v1/auth/login', '/v1/oauth/authorize/preview']) {
    const asked = repeatable('POST', path, {})
    expect(asked.key).toBeNull()
    asked.ended('decided')
  }
  expect(post({ name: 'c' }).key).toBe(lost.key)
})
