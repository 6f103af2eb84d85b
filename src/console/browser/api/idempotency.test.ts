import { expect, test } from 'bun:test'
import { idempotencyOf } from './idempotency.ts'

const post = (body: object) => idempotencyOf('POST', '/v1/tokens', body)

test('repeats a body whose answer was lost under its key, and gives other and later bodies a new key', () => {
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

test('gives the same body a new key after any other write was answered', () => {
  const claim = idempotencyOf('POST', '/v1/escalations/1/claim', {})
  claim.ended('unknown')
  idempotencyOf('PATCH', '/v1/policies/1', {}).ended('decided')
  expect(idempotencyOf('POST', '/v1/escalations/1/claim', {}).key).not.toBe(claim.key)
})

test('gives no key to a read, which leaves the keys of writes unchanged', () => {
  const lost = post({ name: 'c' })
  lost.ended('unknown')
  for (const path of ['/v1/policies/test', '/v1/policies/1/replay', '/v1/auth/login', '/v1/oauth/authorize/preview']) {
    const asked = idempotencyOf('POST', path, {})
    expect(asked.key).toBeNull()
    asked.ended('decided')
  }
  expect(post({ name: 'c' }).key).toBe(lost.key)
})
