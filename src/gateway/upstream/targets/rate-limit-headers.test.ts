import { expect, test } from 'bun:test'
import { resetAfter, restByRateLimits } from './rate-limit-headers.ts'

const now = Date.parse('2026-01-01T00:00:00Z')

test('reads resets as durations, as seconds and as times', () => {
  expect(
    ['6m0s', '1.5s', '250ms', '30', '2026-01-01T00:00:10Z', 'soon', ''].map((text) => resetAfter(text, now)),
  ).toEqual([360_000, 1500, 250, 30_000, 10_000, null, null])
})

test('asks for a rest when hardly anything of a limit is left', () => {
  const rest = (headers: Record<string, string>, inFlight = 0) => restByRateLimits(new Headers(headers), inFlight, now)
  expect(rest({})).toBe(null)
  expect(rest({ 'x-ratelimit-remaining-requests': '5' })).toBe(null)
  expect(rest({ 'x-ratelimit-remaining-requests': '5', 'x-ratelimit-reset-requests': '2s' }, 5)).toBe(2000)
  expect(rest({ 'x-ratelimit-remaining-tokens': '0' })).toBe(1000)
  const anthropic = {
    'anthropic-ratelimit-input-tokens-limit': '1000',
    'anthropic-ratelimit-input-tokens-remaining': '20',
    'anthropic-ratelimit-input-tokens-reset': '2026-01-01T00:00:30Z',
  }
  expect(rest(anthropic)).toBe(30_000)
  expect(rest({ ...anthropic, 'anthropic-ratelimit-input-tokens-remaining': '21' })).toBe(null)
})
