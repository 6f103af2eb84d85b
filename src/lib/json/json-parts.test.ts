import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { countParts } from './json-parts.ts'

const parts = (value: unknown): number => {
  if (typeof value !== 'object' || value === null) return 1
  const names = Array.isArray(value) ? 0 : Object.keys(value).length
  return Object.values(value).reduce((sum: number, inner) => sum + parts(inner), names)
}

test('every name, string, number and word of a JSON text counts as one, and counting ends past the most', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.nat(5), (value, most) => {
      const text = JSON.stringify(value, null, 1)
      expect(countParts(text, 10_000)).toBe(parts(value))
      expect(countParts(text, most)).toBe(Math.min(parts(value), most + 1))
    }),
  )
  expect(countParts(String.raw`{"a\\":"\"","b":[-1.5e3,true,null]}`, 10)).toBe(6)
})
