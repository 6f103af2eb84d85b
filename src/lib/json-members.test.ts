import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { jsonMembers, replaceValue } from './json-members.ts'

test('jsonMembers finds each outermost value where JSON.parse finds it', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.nat({ max: 4 }), (object, indent) => {
      const text = JSON.stringify(object, null, indent)
      const { names, spans, repeated } = jsonMembers(text, 1000)
      expect(repeated).toBe(false)
      const read = names.map((name, index) => [name, JSON.parse(text.slice(...(spans[index] ?? [0, 0])))] as const)
      expect(new Map(read)).toEqual(new Map(Object.entries(JSON.parse(text))))
    }),
  )
})

test('jsonMembers notices a name given twice, however it is written', () => {
  expect(jsonMembers('{"model":"a","model":"b"}', 64).repeated).toBe(true)
  expect(jsonMembers('{"model":"a","mod\\u0065l":"b"}', 64).repeated).toBe(true)
  expect(jsonMembers('{"a":{"model":1},"model":2}', 64).repeated).toBe(false)
  expect(jsonMembers('{"a":"\\"model\\":","model":2}', 64).repeated).toBe(false)
})

test('jsonMembers refuses nesting beyond the limit', () => {
  const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
  expect(() => jsonMembers(nested(64), 64)).not.toThrow()
  expect(() => jsonMembers(nested(65), 64)).toThrow(RangeError)
})

test('jsonMembers ends on anything, valid JSON or not', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('{', '}', '[', ']', '"', '\\\\', ',', ':', 'a', ' ') }), (text) => {
      jsonMembers(text, 1000)
    }),
  )
  jsonMembers('{"a":"\\', 64)
})

test('replaceValue changes one value and keeps everything else', () => {
  const text = '{ "a" : 1.0,\n"model":  "alias" , "z":"é" }'
  const { names, spans } = jsonMembers(text, 64)
  const span = spans[names.indexOf('model')]
  if (span === undefined) throw new Error('The member was not found')
  expect(replaceValue(text, span, '"real"')).toBe('{ "a" : 1.0,\n"model":  "real" , "z":"é" }')
})
