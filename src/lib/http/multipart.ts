/**
 * Finds the parts of a `multipart/form-data` body (RFC 7578; its frame RFC 2046 section 5.1) as places in its bytes,
 * so that one field can be read or rewritten while all other bytes stay unchanged.
 *
 * It is stricter than the grammar in places where two parsers could read a body differently: the boundary must be at
 * the start of a line, every part must have `Content-Disposition: form-data` with a name, a body must end with its
 * closing boundary, and parts and their header lines are limited in number.
 */
export interface FormPart {
  readonly name: string
  /** Null for a plain field. */
  readonly filename: string | null
  readonly contentType: string | null
  /** The content's place in the body. */
  readonly span: readonly [start: number, end: number]
  /** The start of the part: its boundary line. */
  readonly start: number
}

export interface FormParts {
  readonly boundary: string
  readonly parts: readonly FormPart[]
  /** The start of the closing boundary. */
  readonly close: number
}

export const maxParts = 64
export const maxPartHeaderBytes = 4096
/** RFC 2046 section 5.1.1: bchars, at most 70, not ending with a space. */
const boundaryForm = /^[0-9A-Za-z'()+_,\-./:=? ]{0,69}[0-9A-Za-z'()+_,\-./:=?]$/

/** The boundary in a Content-Type; null if it is not a form or has no valid boundary. */
export function boundaryOf(contentType: string): string | null {
  const [type = '', ...parameters] = contentType.split(';')
  if (type.trim().toLowerCase() !== 'multipart/form-data') return null
  for (const parameter of parameters) {
    const [name = '', ...rest] = parameter.split('=')
    if (name.trim().toLowerCase() !== 'boundary') continue
    const boundary = unquoted(rest.join('=').trim())
    return boundaryForm.test(boundary) ? boundary : null
  }
  return null
}

/** Throws `RangeError`, naming the fault, if the bytes are not a valid form. */
export function formParts(body: Uint8Array, boundary: string): FormParts {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length)
  const delimiter = Buffer.from(`\r\n--${boundary}`)
  const parts: FormPart[] = []
  // The first boundary may stand at the very start, with no line before it.
  let at = bytes.subarray(0, delimiter.length - 2).equals(delimiter.subarray(2)) ? -2 : bytes.indexOf(delimiter)
  for (;;) {
    if (at === -1) throw new RangeError('the form does not begin with its boundary')
    const afterBoundary = at + delimiter.length
    if (bytes.subarray(afterBoundary, afterBoundary + 2).equals(twoDashes)) {
      return { boundary, parts, close: at + 2 }
    }
    if (parts.length === maxParts) throw new RangeError(`the form has more than ${maxParts} parts`)
    const headersStart = afterLine(bytes, afterBoundary)
    const headersEnd = endOfHeaders(bytes, headersStart)
    const contentStart = headersEnd + 4
    const next = bytes.indexOf(delimiter, headersEnd + 2)
    if (next < 0) throw new RangeError('the form does not end with its closing boundary')
    // RFC 2046 allows a part of headers alone, which no client of a form sends.
    if (next < contentStart) throw new RangeError('a part of the form has no content')
    parts.push({
      ...describePart(bytes.subarray(headersStart, headersEnd).toString('utf8')),
      span: [contentStart, next],
      start: at + 2,
    })
    at = next
  }
}

/** The form with fields rewritten, left out (null) or added before its end; files and other bytes are kept. */
export function editForm(body: Uint8Array, form: FormParts, edits: ReadonlyMap<string, string | null>): Uint8Array {
  const pieces: (Uint8Array | string)[] = []
  let from = 0
  for (const [index, part] of form.parts.entries()) {
    const text = edits.get(part.name)
    if (text === undefined || part.filename !== null) continue
    const next = form.parts[index + 1]?.start ?? form.close
    if (text === null) pieces.push(body.subarray(from, part.start))
    else pieces.push(body.subarray(from, part.span[0]), text)
    from = text === null ? next : part.span[1]
  }
  pieces.push(body.subarray(from, form.close))
  const present = new Set(form.parts.map(({ name }) => name))
  for (const [name, text] of edits) {
    if (text === null || present.has(name)) continue
    pieces.push(`--${form.boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${text}\r\n`)
  }
  pieces.push(body.subarray(form.close))
  return Buffer.concat(pieces.map((piece) => (typeof piece === 'string' ? Buffer.from(piece) : piece)))
}

const twoDashes = Buffer.from('--')
const blankLine = Buffer.from('\r\n\r\n')

/** After a boundary only white space may stand in its line (RFC 2046: transport padding). */
function afterLine(bytes: Buffer, from: number): number {
  const end = bytes.indexOf('\r\n', from)
  if (end < 0 || bytes.subarray(from, end).toString('latin1').trim() !== '') {
    throw new RangeError('a boundary of the form is not alone in its line')
  }
  return end + 2
}

function endOfHeaders(bytes: Buffer, from: number): number {
  const end = bytes.subarray(from, from + maxPartHeaderBytes).indexOf(blankLine)
  if (end < 0) throw new RangeError('a part of the form has no end of its headers within 4 KiB')
  return from + end
}

/** What the headers of a part say. Throws `RangeError` for what two parsers could read differently. */
export function describePart(headers: string): Pick<FormPart, 'name' | 'filename' | 'contentType'> {
  let disposition: string | null = null
  let contentType: string | null = null
  for (const line of headers.split('\r\n')) {
    const colon = line.indexOf(':')
    const field = line.slice(0, colon).trim().toLowerCase()
    const value = line.slice(colon + 1).trim()
    if (field === 'content-disposition') {
      if (disposition !== null) throw new RangeError('a part of the form names itself twice')
      disposition = value
    } else if (field === 'content-type') contentType = value
    else if (field === 'content-transfer-encoding' && !/^(7bit|8bit|binary)$/i.test(value)) {
      // RFC 7578 section 4.7: deprecated; a parser that decodes it would read another value.
      throw new RangeError('a part of the form has a content-transfer-encoding')
    }
  }
  if (disposition === null || !/^form-data\s*;/i.test(disposition)) {
    throw new RangeError('a part of the form has no content-disposition: form-data')
  }
  const name = parameterOf(disposition, 'name')
  if (name === null) throw new RangeError('a part of the form has no name')
  return { name, filename: parameterOf(disposition, 'filename') ?? parameterOf(disposition, 'filename*'), contentType }
}

/** A parameter of a header value, quoted or not; throws if it is given twice. */
function parameterOf(value: string, wanted: string): string | null {
  let found: string | null = null
  for (const [, name = '', text = ''] of value.matchAll(/;\s*([^\s=;"]+)\s*=\s*("(?:[^"\\]|\\.)*"|[^\s;"]*)/g)) {
    if (name.toLowerCase() !== wanted) continue
    if (found !== null) throw new RangeError(`a part of the form has its ${wanted} twice`)
    found = unquoted(text)
  }
  return found
}

/** RFC 7578 section 4.2 and WHATWG HTML: browsers write a quote as %22, others as \". */
const unquoted = (text: string): string =>
  text.startsWith('"') && text.endsWith('"') && text.length > 1
    ? text
        .slice(1, -1)
        .replaceAll(/\\(["\\])/g, '$1')
        .replaceAll('%22', '"')
    : text
