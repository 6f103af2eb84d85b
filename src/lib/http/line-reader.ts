/** Cuts bytes that arrive in pieces into lines, of which it keeps no more than a maximum. */

export interface Line {
  /** Without its line end; of a line that is too long its beginning. */
  readonly bytes: Uint8Array
  readonly isTooLong: boolean
}

const lineFeed = 10
const carriageReturn = 13

export class LineReader {
  readonly #most: number
  #pieces: Uint8Array[] = []
  #kept = 0
  #isTooLong = false

  /** `most`: the most bytes of a line. */
  constructor(most: number) {
    this.#most = most
  }

  *push(bytes: Uint8Array): Generator<Line> {
    let from = 0
    for (;;) {
      const end = bytes.indexOf(lineFeed, from)
      this.#keep(bytes.subarray(from, end < 0 ? bytes.length : end))
      if (end < 0) return
      yield this.#line()
      from = end + 1
    }
  }

  /** The last line, if it has no line end. */
  *end(): Generator<Line> {
    if (this.#kept > 0) yield this.#line()
  }

  #keep(piece: Uint8Array): void {
    const room = this.#most - this.#kept
    if (piece.length > room) this.#isTooLong = true
    if (piece.length === 0 || room <= 0) return
    const part = piece.subarray(0, room)
    // The caller may reuse the memory of what it gave.
    this.#pieces.push(part.slice())
    this.#kept += part.length
  }

  #line(): Line {
    const [first = new Uint8Array(0)] = this.#pieces
    const whole = this.#pieces.length < 2 ? first : Buffer.concat(this.#pieces, this.#kept)
    const line = {
      bytes: whole.at(-1) === carriageReturn && !this.#isTooLong ? whole.subarray(0, -1) : whole,
      isTooLong: this.#isTooLong,
    }
    this.#pieces = []
    this.#kept = 0
    this.#isTooLong = false
    return line
  }
}
