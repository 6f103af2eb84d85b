import { expect, test } from 'bun:test'
import { dearest } from './dearest.ts'

const spent = (...costs: number[]) => costs.map((cost) => ({ rest: false, cost }))
const costsOf = (keys: readonly { cost: number }[]) => keys.map(({ cost }) => cost)

test('leaves a line for all others where there are too many keys, so that no spend is lost', () => {
  const { shown, others } = dearest(spent(1, 4, 2, 3), 3)
  expect(costsOf(shown)).toEqual([4, 3])
  expect(costsOf(others)).toEqual([2, 1])
  expect(dearest(spent(1, 3, 2), 3).others).toEqual([])
})

test('counts the sum of the other keys to the others, however dear it is', () => {
  const rest = { rest: true, cost: 9 }
  expect(dearest([rest, ...spent(1, 2)], 3).shown.at(-1)).toEqual(rest)
  expect(dearest([rest, ...spent(1, 2, 3)], 3).others.at(-1)).toEqual(rest)
})

test('leaves out what cost nothing beside what cost something', () => {
  expect(costsOf(dearest(spent(0, 2), 3).shown)).toEqual([2])
  expect(costsOf(dearest(spent(0, 0), 3).shown)).toEqual([0, 0])
})
