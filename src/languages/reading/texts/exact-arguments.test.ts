import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { parseExactly } from '../../../lib/json/exact-json.ts'
import { isObject, type JsonObject } from '../json-value.ts'
import { readArgumentsExactly } from './exact-arguments.ts'
import { isArgumentsObject } from './texts.ts'

const read = (text: string): JsonObject => {
  const body: JsonObject = JSON.parse(text)
  readArgumentsExactly(body, text)
  return body
}

/** The arguments of a body as they are written, wherever they stand. */
function argumentsIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(argumentsIn)
  if (!isObject(value)) return []
  return Object.entries(value).flatMap(([name, inner]) =>
    isArgumentsObject(name, inner, value) ? [JSON.stringify(inner)] : argumentsIn(inner),
  )
}

/** A name or word with some of its letters spelt in escapes. */
const spelt = (word: string) =>
  fc
    .array(fc.integer({ min: 0, max: 3 }), { minLength: word.length, maxLength: word.length })
    .map((choices) =>
      [...word]
        .map((letter, index) =>
          choices[index] === 0 ? `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}` : letter,
        )
        .join(''),
    )

const number = fc.constantFrom('1', '9007199254740993', '-0', '1e400', '0.10000000000000000001')
const name = fc.oneof(...['arguments', 'input', 'other'].flatMap((word) => [fc.constant(word), spelt(word)]))
const type = fc.oneof(...['tool_use', 'server_tool_use', 'text'].flatMap((word) => [fc.constant(word), spelt(word)]))

test('arguments keep the digits that they came with, however their names are spelt', () => {
  let kept = 0
  const body = fc.tuple(name, number, type, fc.boolean()).map(([member, digits, of, isArray]) => {
    const item = `{"type":"${of}","${member}":{"id":${digits}}}`
    return isArray ? `{"list":[${item}]}` : `{"one":${item}}`
  })
  fc.assert(
    fc.property(body, (text) => {
      const found = argumentsIn(read(text))
      kept += found.length
      expect(found).toEqual(argumentsIn(parseExactly(text)))
    }),
    { numRuns: 1000 },
  )
  expect(kept).toBeGreaterThan(100)
})

test('every other number stays a double', () => {
  expect(read('{"seed":9007199254740993,"tools":[{"arguments":{"id":9007199254740993}}]}')).toMatchObject({
    seed: 9007199254740992,
  })
})
