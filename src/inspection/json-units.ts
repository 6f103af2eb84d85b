/**
 * Reads JSON text as it comes and tells, unit by unit, what it says: an escape in a string is one unit of what it stands
 * for. Each unit knows where it stands in the raw text and what it belongs to. Text that does not begin as an object, an
 * array or a string is taken as no JSON at all: one content, without escapes.
 */

import { BufferedText } from './buffered-text.ts'

/** `structure`: quotes, brackets, commas, white space. `scalar`: numbers, true, false, null. `content`: in a string. */
type UnitKind = 'structure' | 'scalar' | 'content'

/** A number that is longer is taken for text. */
export const maxScalarUnits = 4096

/** What stands before a number is kept that long, for what is found only after other words. */
const contextUnits = 64

/** A number or word that is complete, by its units. */
export interface Scalar {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** Shorter ones without these are as they are spelt. */
const perhapsRespelt = /[.eE]|.{16}/

const escaped: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', b: '\b', f: '\f' }

export class JsonUnits {
  /** What the units held say. */
  readonly #decoded = new BufferedText()
  /** What the units say that the piece completes which is being read. */
  #said = ''
  readonly #kinds: UnitKind[] = []
  /** Where each unit begins in the raw text. */
  readonly #starts: number[] = []
  /** The index of the first unit held, counted from the text's beginning. */
  #first = 0
  #rawEnd = 0
  /** An escape that is not complete yet. */
  #escape = ''
  #mode: 'unknown' | 'plain' | 'outside' | 'string' = 'unknown'
  #lastKind: UnitKind = 'structure'
  /** The number or word that may go on. */
  #scalar = ''
  /** What the last units that were dropped said. */
  #dropped = ''
  #scalars: Scalar[] = []

  /** The index after the last complete unit. */
  get end(): number {
    return this.#first + this.#kinds.length
  }

  get first(): number {
    return this.#first
  }

  /** Whether the text turned out to be no JSON: it says what it is. */
  get plain(): boolean {
    return this.#mode === 'plain'
  }

  /** Whether the last unit belongs to a number or word that may go on. */
  get inScalar(): boolean {
    return this.#mode === 'outside' && this.#lastKind === 'scalar'
  }

  /** Takes the next raw text; gives what the units that it completes say. `last`: an escape stays incomplete. */
  push(raw: string, last: boolean): string {
    this.#said = ''
    for (let index = 0; index < raw.length; index++) this.#take(raw.charAt(index))
    if (last && this.#escape !== '') this.#giveUpEscape()
    if (last) this.#endScalar()
    this.#decoded.append(this.#said)
    return this.#said
  }

  /** Gives what was completed since it was asked last and may be a number that is printed otherwise than it is spelt. */
  takeScalars(): readonly Scalar[] {
    const scalars = this.#scalars
    if (scalars.length > 0) this.#scalars = []
    return scalars
  }

  /** What the last units before this one say, the same however the text came. */
  contextOf(unit: number): string {
    return (this.#dropped + this.slice(Math.max(this.#first, unit - contextUnits), unit)).slice(-contextUnits)
  }

  kindAt(unit: number): UnitKind {
    return this.#kinds[unit - this.#first] ?? 'structure'
  }

  /** Where a unit begins in the raw text; for the index after the last, where the next one will. */
  rawStart(unit: number): number {
    return this.#starts[unit - this.#first] ?? this.#rawEnd - this.#escape.length
  }

  /** The unit that holds a raw offset. */
  unitAt(raw: number): number {
    let low = 0
    let high = this.#starts.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#starts[middle] ?? 0) <= raw) low = middle + 1
      else high = middle
    }
    if (raw >= this.rawStart(this.end)) return this.end
    return this.#first + Math.max(0, low - 1)
  }

  slice(from: number, to: number): string {
    return this.#decoded.slice(from, to)
  }

  dropBefore(unit: number): void {
    const count = unit - this.#first
    if (count <= 0) return
    this.#kinds.splice(0, count)
    this.#starts.splice(0, count)
    this.#dropped = this.contextOf(unit)
    this.#decoded.dropBefore(unit)
    this.#first = unit
  }

  #take(character: string): void {
    const at = this.#rawEnd++
    if (this.#mode === 'unknown') this.#learn(character)
    if (this.#mode === 'plain') this.#add(character, 'content', at)
    else if (this.#mode === 'string') this.#takeInString(character, at)
    else if (/[\s,:[\]{}"]/.test(character)) {
      this.#endScalar()
      if (character === '"') this.#mode = 'string'
      this.#add(character, 'structure', at)
    } else this.#addScalar(character, at)
  }

  #endScalar(): void {
    const { end } = this
    const text = this.#scalar
    this.#scalar = ''
    if (perhapsRespelt.test(text)) this.#scalars.push({ start: end - text.length, end, text })
  }

  #learn(character: string): void {
    if (!/\s/.test(character)) this.#mode = /[[{"]/.test(character) ? 'outside' : 'plain'
  }

  #addScalar(character: string, at: number): void {
    this.#scalar += character
    this.#add(character, this.#scalar.length > maxScalarUnits ? 'content' : 'scalar', at)
  }

  #takeInString(character: string, at: number): void {
    if (this.#escape !== '') this.#takeEscape(character)
    else if (character === '\\') this.#escape = character
    else if (character === '"') {
      this.#mode = 'outside'
      this.#add(character, 'structure', at)
    } else this.#add(character, 'content', at)
  }

  #takeEscape(character: string): void {
    this.#escape += character
    const { length } = this.#escape
    if (this.#escape.charAt(1) !== 'u') {
      this.#add(escaped[character] ?? character, 'content', this.#rawEnd - length)
      this.#escape = ''
    } else if (length > 2 && !/[0-9A-Fa-f]/.test(character)) {
      this.#escape = this.#escape.slice(0, -1)
      this.#giveUpEscape(this.#rawEnd - 1)
      this.#takeInString(character, this.#rawEnd - 1)
    } else if (length === 6) {
      this.#add(String.fromCharCode(Number.parseInt(this.#escape.slice(2), 16)), 'content', this.#rawEnd - length)
      this.#escape = ''
    }
  }

  /** What only looked like an escape is text as it stands. */
  #giveUpEscape(end = this.#rawEnd): void {
    const text = this.#escape
    this.#escape = ''
    for (let index = 0; index < text.length; index++)
      this.#add(text.charAt(index), 'content', end - text.length + index)
  }

  #add(character: string, kind: UnitKind, at: number): void {
    this.#said += character
    this.#kinds.push(kind)
    this.#lastKind = kind
    this.#starts.push(at)
  }
}
