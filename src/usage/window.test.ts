import { expect, test } from 'bun:test'
import { bookedBudget, windowAt } from './window.ts'

const at = (text: string): number => Date.parse(text)

test('windows begin at midnight UTC: days, weeks on Monday, months on the first', () => {
  const now = at('2026-11-21T23:59:59.999Z')
  expect(windowAt('day', now)).toEqual({ start: at('2026-11-21T00:00:00Z'), end: at('2026-11-22T00:00:00Z') })
  expect(windowAt('week', now)).toEqual({ start: at('2026-11-16T00:00:00Z'), end: at('2026-11-23T00:00:00Z') })
  expect(windowAt('month', now)).toEqual({ start: at('2026-11-01T00:00:00Z'), end: at('2026-12-01T00:00:00Z') })
  expect(windowAt('total', now)).toBeNull()
})

test('a Sunday belongs to the week that began six days before', () => {
  expect(windowAt('week', at('2026-11-22T12:00:00Z'))?.start).toBe(at('2026-11-16T00:00:00Z'))
})

test('books a budget under the start of its window', () => {
  expect(bookedBudget('b', 'month', at('2026-12-31T23:00:00Z')).booked).toBe('budget/b@2026-12-01')
  expect(bookedBudget('b', 'total', 0)).toEqual({ booked: 'budget/b', until: null })
})
