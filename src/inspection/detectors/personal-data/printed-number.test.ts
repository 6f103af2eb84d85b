import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { printedForm } from './printed-number.ts'

test('returns how a JSON reader prints a number', () => {
  for (const [source, ...readings] of [
    ['4.111111111111111e15', '4111111111111111'],
    ['0.4111111111111111E+16', '4111111111111111'],
    ['-41111111111111110e-1', '-4111111111111111'],
    ['4111111111111111.0', '4111111111111111'],
    ['4111111111111111.0001', '4111111111111111'],
    ['1.50', '1.5'],
    ['25e-3', '0.025'],
    ['0e7', '0'],
    ['12', ...[]],
    ['0.1', ...[]],
    ['1e400000000', ...[]],
    ['true', ...[]],
    ['1e', ...[]],
  ] as const) {
    expect([source, ...printedForm(source)]).toEqual([source, ...readings])
  }
})

test('prints the same digits for every spelling of a whole number', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1 }), fc.nat(20), fc.nat(20), (number, noughts, shift) => {
      const digits = `${number}${'0'.repeat(noughts)}`
      const spelt = `0.${'0'.repeat(shift)}${digits}e${String(number).length + shift}`
      expect(printedForm(spelt)).toEqual([String(number)])
    }),
  )
})
