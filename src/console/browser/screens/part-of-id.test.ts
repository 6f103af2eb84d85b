import { expect, test } from 'bun:test'
import { partOfId, timeOfPrefix } from './part-of-id.ts'

test('takes 8 and more characters of an id, also after the dots of a list, and no other words', () => {
  expect(partOfId('0199A2B3')).toBe('0199a2b3')
  expect(partOfId('0199a2b3-c4d5-7')).toBe('0199a2b3-c4d5-7')
  expect(partOfId('…9f8e7d6c')).toBe('9f8e7d6c')
  for (const other of ['0199a2b', 'checkout', '0199a2b3 c4d5', 'g199a2b3']) expect(partOfId(other)).toBeNull()
})

test('bounds when a request ended by how its id begins', () => {
  const now = Date.UTC(2026, 10, 23)
  const id = `${now.toString(16).padStart(12, '0').slice(0, 8)}-${now.toString(16).padStart(12, '0').slice(8)}`
  const whole = timeOfPrefix(id, now)
  expect(whole).toEqual({ since: '2026-11-23T00:00:00.000Z', until: '2026-11-23T01:00:00.000Z' })
  const { since, until } = timeOfPrefix(id.slice(0, 8), now) ?? { since: '', until: '' }
  expect(Date.parse(since)).toBeLessThanOrEqual(now)
  expect(Date.parse(since)).toBeGreaterThan(now - 65_537)
  expect(Date.parse(until)).toBeGreaterThan(now)
})

test('knows no time for the end of an id', () => {
  expect(timeOfPrefix('9f8e7d6c', Date.UTC(2026, 10, 23))).toBeNull()
})
