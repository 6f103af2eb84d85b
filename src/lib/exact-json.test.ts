import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { parseExactly, withDoubles } from './exact-json.ts'

const through = (text: string): string => JSON.stringify(parseExactly(text))
const big = '12345678901234567890'

test('a number that a double cannot hold comes out as it went in', () => {
  for (const number of [
    big,
    `-${big}`,
    '9007199254740993',
    '-0',
    '-0.0',
    '1e400',
    '1e-400',
    '0.10000000000000000001',
  ]) {
    const text = `{"a":${number},"b":[${number}, ${number}]}`
    expect(through(text)).toBe(text.replace(', ', ','))
  }
})

test('every other value is what it is without it, and integers of any length are kept', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 2 }), (value) => {
      const text = JSON.stringify(value)
      expect(parseExactly(text)).toEqual(JSON.parse(text))
    }),
  )
  fc.assert(
    fc.property(fc.bigInt(), (integer) => {
      expect(through(`[${integer}]`)).toBe(`[${integer}]`)
    }),
  )
  expect(parseExactly('[1.50, 1e23, 100000000000000000000, 1.0]')).toEqual([1.5, 1e23, 1e20, 1])
})

test('a text with such a number is read as JSON.parse reads it, white space, escapes and odd names included', () => {
  const odd = fc.dictionary(
    fc.oneof(fc.string({ unit: 'grapheme' }), fc.constantFrom('__proto__', 'a\\"', '\\')),
    fc.jsonValue(),
  )
  fc.assert(
    fc.property(odd, fc.nat(4), (value, indent) => {
      const text = JSON.stringify({ value, big: 0 }, null, indent).replace(/"big": ?0/, `"big": ${big}`)
      expect(withDoubles(parseExactly(text))).toEqual(JSON.parse(text))
      expect(through(text)).toContain(JSON.stringify(value))
    }),
    { numRuns: 40 },
  )
  expect(() => parseExactly(`{"a":${big},}`)).toThrow(SyntaxError)
})
