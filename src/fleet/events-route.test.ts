import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { parseLines } from './events-route.ts'
import { eventLineHead } from './wire.ts'

const encode = (text: string): ArrayBuffer => new TextEncoder().encode(text).buffer
const digest = 'a'.repeat(64)
const eventLine = (n: number, of: string, body: string): string => `${eventLineHead(n, of)}${body}}`

test('a body is taken as it stands in its line, to the byte', () => {
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

test('whatever characters a caller puts into an event, its line is taken', () => {
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

test('refuses what is not of the form, too much of it, and what is not UTF-8', () => {
  const refused = expect.objectContaining({ code: 'invalid_parameter' })
  const line = eventLine(1, digest, '{}')
  expect(() => parseLines(encode(line.replace('"n":1', '"n": 1')))).toThrow(refused)
  expect(() => parseLines(encode(eventLine(1, 'A'.repeat(64), '{}')))).toThrow(refused)
  expect(() => parseLines(encode(Array.from({ length: 501 }, () => line).join('\n')))).toThrow(refused)
  expect(() => parseLines(new Uint8Array([0xff, 0xfe]).buffer)).toThrow(refused)
})
