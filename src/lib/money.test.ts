import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { decimalOf, dollars, fromNano, isWholeNano, largestAmount } from './money.ts'

test('accepts amounts of whole nano-dollars and rejects smaller fractions', () => {
  fc.assert(fc.property(fc.integer({ min: 1, max: largestAmount * 1e9 }), (nano) => isWholeNano(fromNano(nano))))
  expect(isWholeNano(0.1 + 0.2)).toBe(true)
  for (const amount of [0.1234567891, 1e-12, 1.4e-9, 2.0000000005]) expect(isWholeNano(amount)).toBe(false)
})

test('writes every digit of an amount and no exponent', () => {
  expect([0, 1, 34_374_000_000, 1_000_000_000, 10_500_000_000].map(decimalOf)).toEqual([
    ...['0', '0.000000001', '34.374', '1', '10.5'],
  ])
  expect([-1, -2_500_000_000, -0].map(decimalOf)).toEqual(['-0.000000001', '-2.5', '0'])
  expect(decimalOf(largestAmount * 1e9 - 1)).toBe('8999999.999999999')
  fc.assert(
    fc.property(fc.integer({ min: 0, max: largestAmount * 1e9 }), (nano) => {
      const [whole = '', fraction = ''] = decimalOf(nano).split('.')
      expect(BigInt(whole + fraction.padEnd(9, '0'))).toBe(BigInt(nano))
      expect(fraction).not.toEndWith('0')
    }),
  )
})

test('writes an amount for a person in cents, and less than a cent in two digits', () => {
  expect([0, 0.01, 2.5, 1234.567, 0.00042, 0.009].map(dollars)).toEqual([
    ...['$0.00', '$0.01', '$2.50', '$1234.57', '$0.00042', '$0.0090'],
  ])
})
