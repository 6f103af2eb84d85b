import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { eventLineHead } from '../../protocol/wire.ts'
import { parseLines } from './events.ts'

const encode = (text: string): Uint8Array => new TextEncoder().encode(text)
const digest = 'a'.repeat(64)
const eventLine = (n: number, of: string, body: string): string => `${eventLineHead(n, of)}${body}}`

test('takes an event body byte for byte from its line', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.json().map((json) => `{"x": ${json.replaceAll('\n', ' ')} }`),
        { maxLength: 20 },
      ),
      (bodies) => {
        const text = bodies.map((body, index) => eventLine(index + 1, digest, body)).join('\n')
        expect(parseLines(encode(text))).toEqual(bodies.map((body, index) => ({ n: index + 1, digest, body })))
      },
    ),
  )
})

test('takes a line with any characters in an event', () => {
  const text = fc.string({
    unit: fc.oneof(fc.constantFrom('\u2028', '\u2029', '\u0085', '\r'), fc.string({ unit: 'grapheme' })),
  })
  fc.assert(
    fc.property(text, (model) => {
      const body = JSON.stringify({ details: { model } })
      expect(parseLines(encode(eventLine(1, digest, body)))).toEqual([{ n: 1, digest, body }])
    }),
  )
})

test('accepts exactly the lines that the pattern describes', () => {
  const whole = /^\{"n":(\d{1,15}),"digest":"([0-9a-f]{64})","body":(\{.*\})\}$/s
  const part = fc.oneof(
    fc.constantFrom(
      '{',
      '}',
      '{}',
      '}}',
      '{}}',
      '{"n":',
      '1',
      '9'.repeat(15),
      ',"digest":"',
      digest,
      '","body":',
      '\r',
    ),
    fc.string({ maxLength: 3 }),
  )
  const nearly = fc
    .tuple(fc.constantFrom(eventLineHead(1, digest), eventLineHead(10 ** 15 - 1, digest), ''), fc.array(part))
    .map(([head, parts]) => `${head}${parts.join('')}`.replaceAll('\n', ''))
    .filter((line) => line !== '')
  fc.assert(
    fc.property(nearly, (line) => {
      const [, n, of, body] = whole.exec(line.toWellFormed()) ?? []
      if (n === undefined) expect(() => parseLines(encode(line))).toThrow()
      else expect(parseLines(encode(line))).toEqual([{ n: Number(n), digest: of ?? '', body: body ?? '' }])
    }),
    { numRuns: 1000 },
  )
})

test('refuses a malformed body, too many lines, and bytes that are not UTF-8', () => {
  const refused = expect.objectContaining({ code: 'invalid_parameter' })
  const line = eventLine(1, digest, '{}')
  expect(() => parseLines(encode(line.replace('"n":1', '"n": 1')))).toThrow(refused)
  expect(() => parseLines(encode(eventLine(1, 'A'.repeat(64), '{}')))).toThrow(refused)
  expect(() => parseLines(encode(Array.from({ length: 501 }, () => line).join('\n')))).toThrow(refused)
  expect(() => parseLines(new Uint8Array([0xff, 0xfe]))).toThrow(refused)
})
