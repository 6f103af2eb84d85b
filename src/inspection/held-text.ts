/** Text of one channel that has arrived and was not let go yet; offsets count from the channel's beginning. */
export class HeldText {
  #text = ''
  #start = 0

  /** The offset of the first unit still held. */
  get start(): number {
    return this.#start
  }

  /** The offset after the last unit that has arrived. */
  get end(): number {
    return this.#start + this.#text.length
  }

  /** What is held; its first unit has the offset `start`. */
  get text(): string {
    return this.#text
  }

  append(text: string): void {
    this.#text = this.#text === '' ? text : this.#text + text
  }

  unitAt(offset: number): number {
    return this.#text.charCodeAt(offset - this.#start)
  }

  slice(from: number, to: number): string {
    return this.#text.slice(from - this.#start, to - this.#start)
  }

  /** Forgets everything before the offset. */
  dropBefore(offset: number): void {
    if (offset <= this.#start) return
    this.#text = offset === this.end ? '' : this.#text.slice(offset - this.#start)
    this.#start = offset
  }
}
