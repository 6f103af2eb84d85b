import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { parseFrame, withoutNonFinite } from './non-finite.ts'

/** Writes JSON as Python does: with names for the numbers that JSON does not have. */
function written(value: unknown): string {
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value)
  if (Array.isArray(value)) return `[${value.map(written).join(', ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  return `{${Object.entries(value)
    .map(([name, inner]) => `${JSON.stringify(name)}: ${written(inner)}`)
    .join(', ')}}`
}

const word = fc.constantFrom('NaN', '-Infinity', '"', '\\', 'a: Infinity, ', '\\"NaN')
const text = fc.array(fc.oneof(word, fc.string())).map((parts) => parts.join(''))
const number = fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0, 1.5)
const { value } = fc.letrec((tie) => ({
  value: fc.oneof({ depthSize: 'small' }, number, text, fc.constant(null), tie('list'), tie('object')),
  list: fc.array(tie('value'), { maxLength: 4 }),
  object: fc.dictionary(text, tie('value'), { maxKeys: 4, noNullPrototype: true }),
}))

test('an object with numbers that no JSON has is read with null in their places, and its texts as they are', () => {
  fc.assert(
    fc.property(value, (inner) => {
      const object = { said: inner }
      const data = written(object)
      expect(parseFrame(data)).toEqual(JSON.parse(JSON.stringify(object)))
      expect(JSON.parse(withoutNonFinite(data))).toEqual(JSON.parse(JSON.stringify(object)))
    }),
  )
})
