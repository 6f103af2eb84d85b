import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { isNumber, isObject, parseExactly, parseSpelt, withDoubles } from './exact-json.ts'
import { memberCount } from './json-members.ts'

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

/** How many times 10^-500 a number's text says; null for no number, and for -0, which has a sign that no integer has. */
function scaled(text: string): bigint | null {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/.exec(text) ?? []
  const digits = BigInt(whole + fraction)
  if (digits === 0n && sign !== '') return null
  return BigInt(`${sign}1`) * digits * 10n ** BigInt(500 + Number(exponent) - fraction.length)
}

test('no number of any form comes out as another', () => {
  const digits = (most: number) => fc.bigInt({ min: 0n, max: 10n ** BigInt(most) }).map(String)
  const exponent = fc.constantFrom(
    '',
    ...[1, 9, 22, 99, 290, 299, 300, 308, 309, 323, 400].flatMap((e) => [`e${e}`, `e-${e}`]),
  )
  const fraction = fc.option(digits(12), { nil: null }).map((some) => (some === null ? '' : `.${some}`))
  fc.assert(
    fc.property(fc.constantFrom('', '-'), digits(20), fraction, exponent, (sign, whole, after, power) => {
      const number = `${sign}${whole}${after}${power}`
      const out = through(`[${number}]`).slice(1, -1)
      if (out !== number) expect(scaled(out)).toBe(scaled(number))
    }),
  )
})

test('parses every other value like JSON.parse and keeps integers of any length', () => {
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

test('parseSpelt keeps the spelling of every number', () => {
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

test('an exact number is known from an object that only looks like one', () => {
  const own = { rawJSON: '9007199254740993' }
  expect([isNumber(own), isObject(own), memberCount(own)]).toEqual([false, true, 1])
  const exact = parseExactly('[9007199254740993, -0]')
  expect(Array.isArray(exact) && exact.every((each) => isNumber(each) && !isObject(each))).toBe(true)
  expect(memberCount({ id: exact })).toBe(1)
  expect([null, 'x', true, [], undefined].map(isNumber)).toEqual([false, false, false, false, false])
})
