import { expect, test } from 'bun:test'
import { sinceInstant, sinceSchema } from './since.ts'

const now = Date.parse('2026-03-10T12:00:00.000Z')

test.each([
  ['5m', '2026-03-10T11:55:00.000Z'],
  ['36h', '2026-03-09T00:00:00.000Z'],
  ['2d', '2026-03-08T12:00:00.000Z'],
  ['1w', '2026-03-03T12:00:00.000Z'],
  ['0m', '2026-03-10T12:00:00.000Z'],
  ['999999999w', '1970-01-01T00:00:00.000Z'],
  ['2026-03-10T10:00:00Z', '2026-03-10T10:00:00.000Z'],
  ['2026-03-10T10:00:00.123+02:00', '2026-03-10T08:00:00.123Z'],
  ['2026-03-10t10:00:00z', '2026-03-10T10:00:00.000Z'],
])('%s means %s', (since, instant) => {
  expect(sinceSchema.safeParse(since).success).toBe(true)
  expect(new Date(sinceInstant(since, now)).toISOString()).toBe(instant)
})

test.each([
  '',
  '5',
  'm',
  '5s',
  '-5m',
  '1.5h',
  '5 m',
  '5mm',
  'yesterday',
  '2026-03-10',
  '2026-03-10T10:00:00',
  '2026-13-10T10:00:00Z',
])('%p is refused', (since) => {
  expect(sinceSchema.safeParse(since).success).toBe(false)
})
