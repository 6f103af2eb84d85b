import { expect, test } from 'bun:test'
import { isTransient, noAdvice, retryAdvice, waitBeforeRetry } from './retry.ts'

const rules = { retries: 1, longestWait: 2000 }

test('isTransient() holds for temporary failures and for no refusal of the request', () => {
  expect([408, 409, 429, 500, 502, 503, 504, 529].every(isTransient)).toBe(true)
  expect([200, 302, 400, 401, 403, 404, 413, 422].some(isTransient)).toBe(false)
})

test('retryAdvice() reads milliseconds, seconds and dates, the most exact first', () => {
  const now = Date.parse('2026-01-01T00:00:00Z')
  const advice = (headers: Record<string, string>) => retryAdvice(new Headers(headers), now)
  expect(advice({ 'retry-after-ms': '150', 'retry-after': '9' }).after).toBe(150)
  expect(advice({ 'retry-after': '2' }).after).toBe(2000)
  expect(advice({ 'retry-after': 'Thu, 01 Jan 2026 00:00:03 GMT' }).after).toBe(3000)
  expect(advice({ 'retry-after': 'soon', 'retry-after-ms': '-5' })).toEqual(noAdvice)
  expect(advice({ 'x-should-retry': 'false' }).pointless).toBe(true)
})

test('waitBeforeRetry() waits as long as the provider asks, unless that is too long', () => {
  expect(waitBeforeRetry(1, { after: 1500, pointless: false }, rules, 0)).toBe(1500)
  expect(waitBeforeRetry(1, { after: 2500, pointless: false }, rules, 0)).toBeNull()
  expect(waitBeforeRetry(1, { after: 0, pointless: true }, rules, 0)).toBeNull()
})

test('waitBeforeRetry() backs off with jitter, bounded, and as often as configured', () => {
  expect(waitBeforeRetry(1, noAdvice, rules, 0)).toBe(100)
  expect(waitBeforeRetry(1, noAdvice, rules, 1)).toBe(200)
  expect(waitBeforeRetry(2, noAdvice, rules, 1)).toBeNull()
  expect(waitBeforeRetry(5, noAdvice, { retries: 5, longestWait: 2000 }, 1)).toBe(2000)
  expect(waitBeforeRetry(1, noAdvice, { retries: 0, longestWait: 2000 }, 1)).toBeNull()
})
