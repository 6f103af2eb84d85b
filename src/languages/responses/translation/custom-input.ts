/**
 * Follows the arguments of a function that stands for a custom tool, `{"input":"…"}`, as they are streamed, and gives
 * the text in them piece by piece. Half an escape and half a character are held until the rest has come. Arguments of
 * any other form are the input themselves, once they are whole.
 */
import { customInput } from './tools.ts'

const head = /^\s*\{\s*"input"\s*:\s*"/
/** Control characters, which JSON does not allow in a string: some providers do not escape them. */
const controls = /\p{Cc}/gu
const highSurrogate = /[\ud800-\udbff]$/

export class CustomInput {
  /** The input as far as it is known. */
  value = ''
  /** What has come and is not in `value`; before the text has begun all of it. */
  #held = ''
  /** The first half of a character. */
  #half = ''
  #hasBegun = false

  /** Returns the piece of the input that these arguments add. */
  push(text: string): string {
    this.#held += text
    if (!this.#hasBegun) {
      const begin = head.exec(this.#held)
      if (begin === null) return ''
      this.#hasBegun = true
      this.#held = this.#held.slice(begin[0].length)
    }
    const length = wholeLength(this.#held)
    const piece = this.#half + decoded(this.#held.slice(0, length))
    this.#held = this.#held.slice(length)
    this.#half = highSurrogate.exec(piece)?.[0] ?? ''
    return this.#add(piece.slice(0, piece.length - this.#half.length))
  }

  /** The rest, once the arguments are whole. */
  end(): string {
    const rest = this.#hasBegun ? this.#half : customInput(this.#held)
    this.#half = ''
    this.#held = ''
    return this.#add(rest)
  }

  #add(piece: string): string {
    this.value += piece
    return piece
  }
}

/** The length of the characters and whole escapes before the end of a JSON string. */
function wholeLength(text: string): number {
  let at = 0
  while (at < text.length && text[at] !== '"') {
    const length = text[at] !== '\\' ? 1 : text[at + 1] === 'u' ? 6 : 2
    if (at + length > text.length) break
    at += length
  }
  return at
}

function decoded(inside: string): string {
  try {
    const text: unknown = JSON.parse(`"${inside.replace(controls, (each) => JSON.stringify(each).slice(1, -1))}"`)
    return typeof text === 'string' ? text : inside
  } catch {
    // An escape that JSON does not have.
    return inside
  }
}
