import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { fromNano, isWholeNano, largestAmount } from './money.ts'

test('accepts amounts of whole nano-dollars and rejects smaller fractions', () => {
  fc.assert(fc.property(fc.integer({ min: 1, max: largestAmount * 1e9 }), (nano) => isWholeNano(fromNano(nano))))
  expect(isWholeNano(0.1 + 0.2)).toBe(true)
  for (const amount of [0.1234567891, 1e-12, 1.4e-9, 2.0000000005]) expect(isWholeNano(amount)).toBe(false)
})
