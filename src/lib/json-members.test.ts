import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { jsonMembers, replaceBytes } from './json-members.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder()

const spaced = (value: unknown, indent: number) => encoder.encode(JSON.stringify(value, null, indent))

test('jsonMembers finds each outermost value where JSON.parse finds it', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.nat({ max: 4 }), (object, indent) => {
      const bytes = spaced(object, indent)
      const parsed: unknown = JSON.parse(decoder.decode(bytes))
      const { values, repeated } = jsonMembers(bytes, 1000)
      expect(repeated).toBeNull()
      const read = [...values].map(([name, [start, end]]) => [
        name,
        JSON.parse(decoder.decode(bytes.subarray(start, end))),
      ])
      expect(new Map(read.map(([name, value]) => [name, value]))).toEqual(new Map(Object.entries(Object(parsed))))
    }),
  )
})

test('jsonMembers notices a name given twice, however it is written', () => {
  expect(jsonMembers(encoder.encode('{"model":"a","model":"b"}'), 64).repeated).toBe('model')
  expect(jsonMembers(encoder.encode('{"model":"a","mod\\u0065l":"b"}'), 64).repeated).toBe('model')
  expect(jsonMembers(encoder.encode('{"a":{"model":1},"model":2}'), 64).repeated).toBeNull()
  expect(jsonMembers(encoder.encode('{"a":"\\"model\\":","model":2}'), 64).repeated).toBeNull()
})

test('jsonMembers refuses nesting beyond the limit', () => {
  const nested = (depth: number) => encoder.encode('['.repeat(depth) + ']'.repeat(depth))
  expect(() => jsonMembers(nested(64), 64)).not.toThrow()
  expect(() => jsonMembers(nested(65), 64)).toThrow(RangeError)
})

test('jsonMembers ends on anything, valid JSON or not', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      jsonMembers(bytes, 1000)
    }),
  )
  jsonMembers(encoder.encode('{"a":"\\'), 64)
})

test('replaceBytes changes one value and keeps every other byte', () => {
  const bytes = encoder.encode('{ "a" : 1.0,\n"model":  "alias" , "z":"é" }')
  const span = jsonMembers(bytes, 64).values.get('model')
  if (span === undefined) throw new Error('The member was not found')
  expect(decoder.decode(replaceBytes(bytes, span, encoder.encode('"real"')))).toBe(
    '{ "a" : 1.0,\n"model":  "real" , "z":"é" }',
  )
})
