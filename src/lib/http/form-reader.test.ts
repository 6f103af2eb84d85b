import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { type FormPiece, FormReader } from './form-reader.ts'
import { LineReader } from './line-reader.ts'

const form = (...parts: readonly string[]): Uint8Array =>
  new TextEncoder().encode(`${parts.map((part) => `--b\r\n${part}\r\n`).join('')}--b--\r\n`)
const field = (name: string, content: string): string =>
  `Content-Disposition: form-data; name="${name}"\r\n\r\n${content}`

/** The parts with their contents, when the body arrives in pieces of this size. */
function read(body: Uint8Array, size: number): { name: string; content: string }[] {
  const reader = new FormReader('b')
  const parts: { name: string; content: string }[] = []
  const take = (piece: FormPiece) => {
    const last = parts.at(-1)
    if ('part' in piece) parts.push({ name: piece.part.name, content: '' })
    else if (last !== undefined) last.content += new TextDecoder().decode(piece.content)
  }
  for (let at = 0; at < body.length; at += size)
    for (const piece of reader.push(body.subarray(at, at + size))) take(piece)
  expect(reader.isWhole).toBe(true)
  return parts
}

test('reads the same parts in whatever pieces a form arrives', () => {
  const content = fc
    .string({ unit: fc.constantFrom('a', '\r', '\n', '-', 'b') })
    .filter((text) => !`\r\n${text}`.includes('\r\n--b'))
  fc.assert(
    fc.property(
      fc.array(content, { minLength: 1, maxLength: 4 }),
      fc.integer({ min: 1, max: 40 }),
      (contents, size) => {
        const body = form(...contents.map((text, index) => field(`f${index}`, text)))
        expect(read(body, size)).toEqual(contents.map((text, index) => ({ name: `f${index}`, content: text })))
      },
    ),
  )
})

test('refuses a form that two parsers could read differently, and does not take a part for the whole', () => {
  const refusal = (text: string) => () => [...new FormReader('b').push(new TextEncoder().encode(text))]
  expect(refusal(`preamble\r\n--b\r\n${field('a', '1')}`)).toThrow('begin with its boundary')
  expect(refusal('--bc\r\n')).toThrow('alone in its line')
  expect(refusal('--b\r\nContent-Type: text/plain\r\n\r\n')).toThrow('form-data')
  expect(refusal(`--b\r\n${'x'.repeat(5000)}`)).toThrow('4 KiB')
  const reader = new FormReader('b')
  for (const _ of reader.push(new TextEncoder().encode(`--b\r\n${field('a', '1')}\r\n--b`)));
  expect(reader.isWhole).toBe(false)
})

test('cuts lines in whatever pieces they arrive, and keeps only the beginning of a line that is too long', () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 12 })),
      fc.integer({ min: 1, max: 9 }),
      (lines, size) => {
        const bytes = new TextEncoder().encode(lines.map((line) => `${line}\n`).join(''))
        const reader = new LineReader(8)
        const found: string[] = []
        for (let at = 0; at < bytes.length; at += size) {
          for (const line of reader.push(bytes.subarray(at, at + size))) {
            found.push(new TextDecoder().decode(line.bytes) + (line.isTooLong ? '…' : ''))
          }
        }
        expect(found).toEqual(lines.map((line) => (line.length > 8 ? `${line.slice(0, 8)}…` : line)))
        expect([...reader.end()]).toEqual([])
      },
    ),
  )
  const reader = new LineReader(8)
  const lines = [...reader.push(new TextEncoder().encode('one\r\ntwo')), ...reader.end()]
  expect(lines.map(({ bytes }) => new TextDecoder().decode(bytes))).toEqual(['one', 'two'])
})
