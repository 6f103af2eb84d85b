/**
 * Reads a `multipart/form-data` body (RFC 7578) while it arrives, with the rules of `multipart.ts`: it gives each part
 * and the pieces of its content, and keeps no more of the body than a boundary or the headers of a part.
 */
import { describePart, type FormPart, maxPartHeaderBytes, maxParts } from './multipart.ts'

export type FormPiece =
  | { readonly part: Pick<FormPart, 'name' | 'filename' | 'contentType'> }
  | { readonly content: Uint8Array }

const lineEnd = Buffer.from('\r\n')
const blankLine = Buffer.from('\r\n\r\n')

export class FormReader {
  readonly #delimiter: Buffer
  #rest: Buffer = Buffer.alloc(0)
  #state: 'boundary' | 'headers' | 'content' | 'end' = 'boundary'
  #parts = 0

  constructor(boundary: string) {
    this.#delimiter = Buffer.from(`\r\n--${boundary}`)
    // The first boundary stands at the start, with no line before it.
    this.#rest = Buffer.from('\r\n')
  }

  /** The form ended with its closing boundary. */
  get isWhole(): boolean {
    return this.#state === 'end'
  }

  /** What this piece of the body brings. Throws `RangeError`, naming the fault. */
  *push(bytes: Uint8Array): Generator<FormPiece> {
    this.#rest = Buffer.concat([this.#rest, bytes])
    for (;;) {
      if (this.#state === 'end') {
        this.#rest = Buffer.alloc(0)
        return
      }
      if (this.#state === 'content') {
        const end = this.#rest.indexOf(this.#delimiter)
        const known = end < 0 ? this.#rest.length - this.#delimiter.length + 1 : end
        if (known > 0) yield { content: this.#take(known) }
        if (end < 0) return
        this.#state = 'boundary'
      }
      if (this.#state === 'boundary' && !this.#passBoundary()) return
      if (this.#state === 'headers') {
        const part = this.#readPart()
        if (part === null) return
        yield { part }
      }
    }
  }

  /** Whether the boundary and the rest of its line are here. */
  #passBoundary(): boolean {
    const { length } = this.#delimiter
    if (this.#rest.length < length + 2) return false
    if (!this.#rest.subarray(0, length).equals(this.#delimiter)) {
      throw new RangeError('the form does not begin with its boundary')
    }
    if (this.#rest.subarray(length, length + 2).toString('latin1') === '--') {
      this.#state = 'end'
      return true
    }
    const end = this.#rest.indexOf(lineEnd, length)
    if (end < 0 && this.#rest.length < length + maxPartHeaderBytes) return false
    if (end < 0 || this.#rest.subarray(length, end).toString('latin1').trim() !== '') {
      throw new RangeError('a boundary of the form is not alone in its line')
    }
    if (this.#parts === maxParts) throw new RangeError(`the form has more than ${maxParts} parts`)
    this.#parts += 1
    this.#take(end + 2)
    this.#state = 'headers'
    return true
  }

  /** The part whose headers begin here; null while they have not all arrived. */
  #readPart(): Pick<FormPart, 'name' | 'filename' | 'contentType'> | null {
    const end = this.#rest.subarray(0, maxPartHeaderBytes).indexOf(blankLine)
    if (end < 0 && this.#rest.length < maxPartHeaderBytes) return null
    if (end < 0) throw new RangeError('a part of the form has no end of its headers within 4 KiB')
    const part = describePart(this.#take(end).toString('utf8'))
    // The line end of the blank line stays: a content may be empty, and its boundary begins with one.
    this.#take(blankLine.length)
    this.#state = 'content'
    return part
  }

  #take(length: number): Buffer {
    const taken = this.#rest.subarray(0, length)
    this.#rest = this.#rest.subarray(length)
    return taken
  }
}
