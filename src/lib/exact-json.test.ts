import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { parseExactly, parseSpelt, withDoubles } from './exact-json.ts'

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

test('every number can be kept as it was spelt, and none else is more than a number', () => {
  const digits = fc.array(fc.nat(9), { minLength: 1, maxLength: 18 }).map((each) => each.join(''))
  const whole = digits.map((text) => text.replace(/^0+(?=\d)/, ''))
  const fraction = fc.oneof(
    fc.constant(''),
    digits.map((text) => `.${text}`),
  )
  const exponent = fc.oneof(fc.constant(''), fc.constantFrom('e0', 'E5', 'e+21', 'e-7', 'E400'))
  const number = fc.tuple(fc.constantFrom('', '-'), whole, fraction, exponent).map((parts) => parts.join(''))
  fc.assert(
    fc.property(fc.array(number), (numbers) => {
      const text = `{"a":[${numbers}],"b":${numbers[0] ?? '0.00000010'}}`
      expect(JSON.stringify(parseSpelt(text))).toBe(text)
    }),
  )
  expect(parseSpelt('[1, 1.5, "1.0", 1e+21]')).toEqual([1, 1.5, '1.0', 1e21])
  expect(() => parseSpelt('[1.0,]')).toThrow(SyntaxError)
})
