/**
 * Text of one channel that has arrived and was not sent on yet; offsets count from the channel's beginning.
 *
 * It is kept in parts, because to read a string that pieces were joined to copies all of it. So each piece costs no more
 * than a part, however much is held before it.
 */
interface Part {
  readonly start: number
  readonly text: string
}

/** How long the last part gets before the next piece begins another one. */
const partUnits = 1024

/** Most texts have one part: they share this. Never written to. */
const none: Part[] = []

export class BufferedText {
  #start = 0
  #earlier: Part[] = none
  #last = ''
  #lastStart = 0

  /** The offset of the first unit still held. */
  get start(): number {
    return this.#start
  }

  /** The offset after the last unit that has arrived. */
  get end(): number {
    return this.#lastStart + this.#last.length
  }

  /** The last part, which holds all of the piece that came last. */
  get last(): string {
    return this.#last
  }

  /** The offset of the last part's first unit. */
  get lastStart(): number {
    return this.#lastStart
  }

  append(piece: string): void {
    if (this.#last.length < partUnits) {
      this.#last = this.#last === '' ? piece : this.#last + piece
      return
    }
    if (this.#earlier === none) this.#earlier = []
    this.#earlier.push({ start: this.#lastStart, text: this.#last })
    this.#lastStart += this.#last.length
    this.#last = piece
  }

  unitAt(offset: number): number {
    if (offset >= this.#lastStart) return this.#last.charCodeAt(offset - this.#lastStart)
    const part = this.#earlier[this.#indexOf(offset)]
    return part === undefined ? Number.NaN : part.text.charCodeAt(offset - part.start)
  }

  slice(from: number, to: number): string {
    if (from >= this.#lastStart) return this.#last.slice(from - this.#lastStart, to - this.#lastStart)
    const parts: string[] = []
    for (let index = this.#indexOf(from); index < this.#earlier.length; index++) {
      const part = this.#earlier[index]
      if (part === undefined || part.start >= to) return parts.join('')
      parts.push(part.text.slice(Math.max(0, from - part.start), to - part.start))
    }
    if (to > this.#lastStart) parts.push(this.#last.slice(0, to - this.#lastStart))
    return parts.join('')
  }

  /** Forgets everything before the offset. */
  dropBefore(offset: number): void {
    if (offset <= this.#start) return
    this.#start = offset
    if (offset < this.#lastStart) {
      const index = this.#indexOf(offset)
      if (index > 0) this.#earlier.splice(0, index)
      return
    }
    this.#earlier = none
    this.#last = offset === this.end ? '' : this.#last.slice(offset - this.#lastStart)
    this.#lastStart = offset
  }

  /** Which of the earlier parts holds an offset that stands before the last part. */
  #indexOf(offset: number): number {
    let low = 0
    let high = this.#earlier.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if ((this.#earlier[middle]?.start ?? 0) <= offset) low = middle
      else high = middle - 1
    }
    return low
  }
}
