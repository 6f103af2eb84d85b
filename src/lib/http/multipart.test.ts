import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { boundaryOf, editForm, formParts } from './multipart.ts'

/** A form as a standard client writes it, with its boundary. */
async function written(form: FormData): Promise<{ body: Uint8Array; boundary: string }> {
  const request = new Request('http://localhost/', { method: 'POST', body: form })
  const boundary = boundaryOf(request.headers.get('content-type') ?? '')
  if (boundary === null) throw new Error('The client named no boundary')
  return { body: await request.bytes(), boundary }
}

const field = (name: string, text: string) => `Content-Disposition: form-data; name="${name}"\r\n\r\n${text}`
const form = (...parts: string[]) =>
  new TextEncoder().encode(`${parts.map((part) => `--b\r\n${part}\r\n`).join('')}--b--\r\n`)

test('boundaryOf reads the boundary of a form only', () => {
  expect(boundaryOf('multipart/form-data; boundary=abc')).toBe('abc')
  expect(boundaryOf('Multipart/Form-Data; charset=utf-8; Boundary="a b"')).toBe('a b')
  for (const type of ['', 'application/json', 'multipart/mixed; boundary=a', 'multipart/form-data']) {
    expect(boundaryOf(type)).toBeNull()
  }
  expect(boundaryOf(`multipart/form-data; boundary=${'a'.repeat(71)}`)).toBeNull()
  expect(boundaryOf('multipart/form-data; boundary="a\r\nb"')).toBeNull()
})

test('formParts finds the fields of a client, with any content', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.stringMatching(/^[a-z_]{1,8}(\[\])?$/), fc.string({ unit: 'binary' })), { maxLength: 5 }),
      fc.uint8Array(),
      async (fields, file) => {
        const data = new FormData()
        for (const [name, text] of fields) data.append(name, text)
        data.append('file', new Blob([new Uint8Array(file)]), 'a "b".wav')
        const { body, boundary } = await written(data)
        const { parts } = formParts(body, boundary)
        const read = parts.map(({ name, span }) => [name, Buffer.from(body.subarray(...span)).toString('latin1')])
        // WHATWG HTML: the line ends of a text field become CRLF.
        const sent = (text: string) => Buffer.from(text.replaceAll(/\r\n|\r|\n/g, '\r\n')).toString('latin1')
        const expected = fields.map(([name, text]) => [name, sent(text)])
        expected.push(['file', Buffer.from(file).toString('latin1')])
        expect(read).toEqual(expected)
        expect(parts.at(-1)?.filename).toBe('a "b".wav')
        expect(editForm(body, { parts, boundary, close: formParts(body, boundary).close }, new Map())).toEqual(body)
      },
    ),
    { numRuns: 30 },
  )
})

test('editForm writes one field anew, leaves one out, adds one, and keeps every other byte', () => {
  const body = form(field('model', 'alias'), field('file"; filename="a.wav', '\x00\x01'), field('prompt', 'x'))
  const edit = (edits: [string, string | null][]) =>
    new TextDecoder().decode(editForm(body, formParts(body, 'b'), new Map(edits)))
  const text = new TextDecoder().decode(body)
  expect(edit([['model', 'real']])).toBe(text.replace('alias', 'real'))
  expect(edit([['prompt', null]])).toBe(text.replace(`--b\r\n${field('prompt', 'x')}\r\n`, ''))
  expect(edit([['model', null]])).toBe(text.replace(`--b\r\n${field('model', 'alias')}\r\n`, ''))
  expect(edit([['file', 'text']])).toBe(text)
  expect(edit([['language', 'de']])).toBe(text.replace('--b--', `--b\r\n${field('language', 'de')}\r\n--b--`))
})

test('refuses a form that two parsers could read differently', () => {
  const refused: Uint8Array[] = [
    new TextEncoder().encode(''),
    new TextEncoder().encode('no boundary anywhere'),
    new TextEncoder().encode(`--b\r\n${field('model', 'x')}\r\n`),
    form('Content-Type: text/plain\r\n\r\nx'),
    form('Content-Disposition: attachment; name="model"\r\n\r\nx'),
    form('Content-Disposition: form-data\r\n\r\nx'),
    form('Content-Disposition: form-data; name="a"; name="b"\r\n\r\nx'),
    form('Content-Disposition: form-data; name="a"\r\nContent-Disposition: form-data; name="b"\r\n\r\nx'),
    form('Content-Disposition: form-data; name="a"\r\nContent-Transfer-Encoding: base64\r\n\r\neA=='),
    form(`Content-Disposition: form-data; name="a"\r\nX: ${'x'.repeat(5000)}\r\n\r\nx`),
    form(...Array.from({ length: 65 }, (_, index) => field(`f${index}`, 'x'))),
    new TextEncoder().encode(`--bx\r\n${field('model', 'x')}\r\n--b--`),
  ]
  for (const body of refused) expect(() => formParts(body, 'b')).toThrow(RangeError)
})

test('formParts ends on anything', () => {
  const pieces = fc.constantFrom('--b', '--', '\r\n', 'Content-Disposition: form-data; name="a"', 'x', '"', ';')
  fc.assert(
    fc.property(fc.array(pieces), (parts) => {
      try {
        formParts(new TextEncoder().encode(parts.join('')), 'b')
      } catch (thrown) {
        expect(thrown).toBeInstanceOf(RangeError)
      }
    }),
  )
})
