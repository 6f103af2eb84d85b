/**
 * One reading of a text for the terms of a list: as written, or with entities and tag characters decoded
 * (`inspection/folding/respelled.ts`). A term is reported when the next character that counts is there.
 */

import type { BufferedText } from '../../buffered-text.ts'
import { type Folding, isIgnorable, isWordCharacter } from '../../folding/fold.ts'
import { decoded, entityAt, isIgnoredByOthers, longestEntity, tagged } from '../../folding/respelled.ts'
import { type Match, maxLiveUnits } from '../detector.ts'
import type { Automaton } from './term-automaton.ts'

interface Term {
  readonly text: string
  readonly entry: string
  readonly length: number
  /** Whether a boundary is required at its beginning and its end. */
  readonly bounded: readonly [boolean, boolean]
}

export interface TermList {
  readonly automaton: Automaton
  readonly terms: readonly Term[]
  readonly folding: Folding
  readonly label: string
  readonly wordBoundaries: boolean
  /** For each ASCII character: the symbol of its key, -1 for an ignorable one. */
  readonly asciiSymbols: Int32Array
}

/** A term whose key has been read, until the next character that counts. */
interface Candidate {
  readonly term: Term
  readonly start: number
  /** After the last character and the marks on it. */
  end: number
}

export class TermReading {
  overflowAt: number | null = null
  /** It stopped before a character with two meanings. */
  isBeforeAmbiguous = false
  readonly #list: TermList
  readonly #text: BufferedText
  /** Whether it decodes entities and tag characters. */
  readonly #decodes: boolean
  #position: number
  #state = 0
  /** The source offsets of the latest symbols, and whether a term may begin there as a word; a ring buffer. */
  readonly #starts: Float64Array
  readonly #begins: Uint8Array
  readonly #mask: number
  #count = 0
  #afterWord = false
  #candidates: Candidate[] = []

  constructor(list: TermList, text: BufferedText, decodes = false) {
    this.#list = list
    this.#text = text
    this.#decodes = decodes
    this.#position = text.end
    let size = 8
    while (size < list.automaton.maxDepth + 1) size *= 2
    this.#starts = new Float64Array(size)
    this.#begins = new Uint8Array(size)
    this.#mask = size - 1
  }

  /** A copy at the same position, which decodes from there on. */
  decoding(): TermReading {
    const other = new TermReading(this.#list, this.#text, true)
    other.#position = this.#position
    other.#state = this.#state
    other.#starts.set(this.#starts)
    other.#begins.set(this.#begins)
    other.#count = this.#count
    other.#afterWord = this.#afterWord
    other.#candidates = this.#candidates.map((candidate) => ({ ...candidate }))
    return other
  }

  /** Whether both will report the same for the text that follows. */
  standsAs(other: TermReading): boolean {
    return (
      this.#state === 0 &&
      other.#state === 0 &&
      this.#position === other.#position &&
      this.#afterWord === other.#afterWord &&
      this.#candidates.length === 0 &&
      other.#candidates.length === 0 &&
      this.overflowAt === null &&
      other.overflowAt === null
    )
  }

  get liveFrom(): number {
    let live = this.#growingFrom()
    for (const { start } of this.#candidates) if (start < live) live = start
    return live
  }

  /** Reads on, up to the first ambiguous character if that is asked for. */
  advance(ended: boolean, found: Match[], stops: boolean): void {
    const { end } = this.#text
    this.isBeforeAmbiguous = false
    while (this.#position < end && this.overflowAt === null) {
      if (this.#candidates.length === 0) this.#readPlain(end)
      if (this.#position >= end) break
      const at = this.#position
      const unit = this.#text.unitAt(at)
      if (unit >= 128 || unit === ampersand) {
        const codePoint = this.#codePointAt(at, unit, ended)
        if (codePoint === null) return
        if (stops && isAmbiguous(codePoint)) {
          this.isBeforeAmbiguous = true
          return
        }
        if (!this.#takeOther(codePoint, ended, found)) return
        continue
      }
      this.#position = at + 1
      const symbol = this.#list.asciiSymbols[unit] ?? 0
      if (symbol < 0) this.#skip(false)
      else this.#take(symbol, asciiWord[unit] === 1, at, found)
    }
    if (ended && this.overflowAt === null) this.#decide(false, end + 1, found)
  }

  /** The fast path: plain characters that end no term. Stops before any other, and after one that ends a term. */
  #readPlain(end: number): void {
    const { asciiSymbols, automaton } = this.#list
    const { table, width } = automaton
    const { last, lastStart } = this.#text
    let state = this.#state
    let position = this.#position
    if (position < lastStart) return
    let ending = 0
    while (position < end && ending === 0) {
      const unit = last.charCodeAt(position - lastStart)
      const symbol = unit < 128 ? (asciiSymbols[unit] ?? 0) : -1
      if (symbol < 0) break
      state = table === null ? automaton.step(state, symbol) : (table[state * width + symbol] ?? 0)
      const word = asciiWord[unit] === 1
      if (state !== 0) {
        this.#note(position, word)
        ending = automaton.ending(state)
      }
      this.#afterWord = word
      position++
    }
    this.#state = state
    this.#position = position
    if (ending !== 0) this.#collect(ending)
  }

  /** Records the place of the last symbol; only symbols that lead to a state other than the root are asked for. */
  #note(at: number, word: boolean): void {
    const slot = this.#count++ & this.#mask
    this.#starts[slot] = at
    this.#begins[slot] = this.#afterWord && word ? 0 : 1
  }

  /** The code point that begins with a unit; null if its second half has not arrived. */
  #codePointAt(at: number, unit: number, ended: boolean): number | null {
    if (unit < 0xd800 || unit >= 0xdc00) return unit
    if (at + 1 >= this.#text.end) return ended ? unit : null
    const low = this.#text.unitAt(at + 1)
    return low >= 0xdc00 && low < 0xe000 ? (unit - 0xd800) * 0x400 + low - 0xdc00 + 0x10000 : unit
  }

  /** Reads one code point beyond ASCII, or an entity; false if its end has not arrived. */
  #takeOther(codePoint: number, ended: boolean, found: Match[]): boolean {
    const at = this.#position
    const length = codePoint > 0xffff ? 2 : 1
    if (!this.#decodes || !isAmbiguous(codePoint)) return this.#takeCharacter(codePoint, length, found)
    if (codePoint !== ampersand) {
      const hidden = tagged(codePoint)
      if (hidden !== null) return this.#takeCharacter(hidden, length, found)
      this.#position = at + length
      this.#skip(false)
      return true
    }
    const entity = entityAt(this.#text.slice(at, at + longestEntity), ended || at + longestEntity <= this.#text.end)
    if (entity === 'open') return false
    return this.#takeCharacter(entity?.codePoint ?? codePoint, entity?.length ?? length, found)
  }

  #takeCharacter(codePoint: number, length: number, found: Match[]): true {
    const at = this.#position
    this.#position = at + length
    const key = this.#list.folding.key(codePoint)
    if (key.length === 0) this.#skip(!isIgnorable(codePoint))
    else {
      const word = isWordCharacter(codePoint)
      for (const folded of key) this.#take(this.#list.automaton.symbolOf(folded), word, at, found)
    }
    return true
  }

  /** A mark or an ignorable character: it has no symbol, but live matches continue across it, within a bound. */
  #skip(isMark: boolean): void {
    if (isMark) for (const candidate of this.#candidates) candidate.end = this.#position
    const live = this.liveFrom
    if (this.#position - live > maxLiveUnits) this.overflowAt = live
  }

  #take(symbol: number, word: boolean, at: number, found: Match[]): void {
    if (this.#candidates.length > 0) this.#decide(word, this.#position, found)
    const { automaton } = this.#list
    this.#state = automaton.step(this.#state, symbol)
    this.#note(at, word)
    this.#afterWord = word
    this.#collect(automaton.ending(this.#state))
  }

  /** The terms that end at the current position, from the state at which the longest of them ends. */
  #collect(ending: number): void {
    const { automaton, terms } = this.#list
    for (let end = ending; end !== 0; end = automaton.ending(automaton.shorter(end))) {
      for (const index of automaton.termsAt(end)) {
        const term = terms[index]
        if (term !== undefined && (!term.bounded[0] || this.#beginsWord(term.length))) {
          this.#candidates.push({ term, start: this.#startOf(term.length), end: this.#position })
        }
      }
    }
  }

  /** Reports the confirmed candidates, now that the next character is known. */
  #decide(wordFollows: boolean, decidedAt: number, found: Match[]): void {
    for (const { term, start, end } of this.#candidates) {
      if (wordFollows && term.bounded[1]) continue
      const text = this.#text.slice(start, end)
      if (flag.test(text) || !this.#isTerm(text, term.text)) continue
      found.push({ start, end, label: this.#list.label, entry: term.entry, decidedAt })
    }
    this.#candidates.length = 0
  }

  /** Whether a text with the key of a term is the term: in ASCII it always is. */
  #isTerm(found: string, term: string): boolean {
    if (ascii.test(found) && ascii.test(term)) return true
    const { folding: rules } = this.#list
    return rules.canonical(this.#decodes ? decoded(found) : found).includes(rules.canonical(term))
  }

  #startOf(length: number): number {
    return this.#starts[(this.#count - length) & this.#mask] ?? 0
  }

  #beginsWord(length: number): boolean {
    return this.#begins[(this.#count - length) & this.#mask] === 1
  }

  /** The start of the longest suffix that can still become a term. */
  #growingFrom(): number {
    const { automaton, wordBoundaries } = this.#list
    for (let state = this.#state; state !== 0; state = automaton.shorter(state)) {
      const depth = automaton.depth(state)
      if (automaton.grows(state) && (!wordBoundaries || this.#beginsWord(depth))) return this.#startOf(depth)
    }
    return this.#position
  }
}

export const ampersand = 0x26
const isAmbiguous = (codePoint: number): boolean =>
  codePoint === ampersand || tagged(codePoint) !== null || isIgnoredByOthers(codePoint)

/** A flag is not a word of two letters. */
const flag = /^\p{Regional_Indicator}{1,2}$/u
const ascii = /^[\x20-\x7e]*$/
const asciiWord = Uint8Array.from({ length: 128 }, (_, code) => (isWordCharacter(code) ? 1 : 0))
