/**
 * Finds the terms of a list. A term is told when the next character that counts is there: only then is it known whether
 * a mark changes its last letter (`cafe`, then U+0301) or a word goes on.
 */
import { Failure } from '../failure.ts'
import { type Detector, type Match, maxLiveUnits, maxMatchLength, type Scanner } from './detector.ts'
import { type Folding, type FoldingOptions, folding, isIgnorable, isWordCharacter } from './fold.ts'
import type { HeldText } from './held-text.ts'
import { type Automaton, buildAutomaton } from './term-automaton.ts'

export interface TermOptions extends FoldingOptions {
  /** Only whole words; a term's end that is a letter of a script without spaces needs no boundary. */
  wordBoundaries: boolean
}

interface Term {
  readonly text: string
  readonly entry: string
  readonly length: number
  /** Whether a boundary is asked for at its beginning and its end. */
  readonly bounded: readonly [boolean, boolean]
}

interface TermList {
  readonly automaton: Automaton
  readonly terms: readonly Term[]
  readonly folding: Folding
  readonly label: string
  readonly wordBoundaries: boolean
  /** For each ASCII character: the symbol of its key, -1 for one that is ignorable. */
  readonly asciiSymbols: Int32Array
}

/** Compiles a term list. Throws `invalid_parameter` naming a term that has no letter to look for, or is too long. */
export function termDetector(terms: readonly string[], label: string, options: TermOptions): Detector {
  const rules = folding(options)
  const keys = terms.map((term, index) => keyOf(term, rules, index))
  const automaton = buildAutomaton(keys)
  const asciiSymbols = new Int32Array(128)
  for (let code = 0; code < 128; code++) {
    const [folded] = rules.key(code)
    asciiSymbols[code] = folded === undefined ? -1 : automaton.symbolOf(folded)
  }
  const list: TermList = {
    automaton,
    folding: rules,
    label,
    wordBoundaries: options.wordBoundaries,
    asciiSymbols,
    terms: terms.map((term, index) => ({
      text: term,
      entry: `terms[${index}]`,
      length: keys[index]?.length ?? 0,
      bounded: options.wordBoundaries ? edges(term) : [false, false],
    })),
  }
  return {
    bounded: true,
    mayMatch: (text) => mayHoldTerm(list, text),
    scanner: (text) => new TermScanner(list, text),
  }
}

/** Whether the key of a term stands in the text, or so much that is skipped that a term may be held for too long. */
function mayHoldTerm({ asciiSymbols, automaton, folding: rules }: TermList, text: string): boolean {
  const { table, width, endings } = automaton
  const isShort = text.length <= maxLiveUnits
  let state = 0
  for (let position = 0; position < text.length; position++) {
    const unit = text.charCodeAt(position)
    const symbol = unit < 128 ? (asciiSymbols[unit] ?? 0) : -1
    if (symbol >= 0) {
      state = table === null ? automaton.step(state, symbol) : (table[state * width + symbol] ?? 0)
      if (endings[state] !== 0) return true
      continue
    }
    const codePoint = text.codePointAt(position) ?? unit
    if (codePoint > 0xffff) position++
    const key = rules.key(codePoint)
    if (key.length === 0 && !isShort) return true
    for (const folded of key) {
      state = automaton.step(state, automaton.symbolOf(folded))
      if (endings[state] !== 0) return true
    }
  }
  return false
}

function keyOf(term: string, rules: Folding, index: number): number[] {
  const key: number[] = []
  for (const character of term) for (const folded of rules.key(character.codePointAt(0) ?? 0)) key.push(folded)
  const param = `config.terms.${index}`
  if (key.length === 0)
    throw new Failure('invalid_parameter', { message: 'A term must have a visible character', param })
  if (key.length > maxMatchLength) {
    throw new Failure('invalid_parameter', { message: `A term has at most ${maxMatchLength} characters`, param })
  }
  return key
}

/** Whether the first and the last character that count can continue a word. */
function edges(term: string): readonly [boolean, boolean] {
  const counting = [...term].map((character) => character.codePointAt(0) ?? 0).filter((point) => !isIgnorable(point))
  return [isWordCharacter(counting[0] ?? 0), isWordCharacter(counting.at(-1) ?? 0)]
}

/** A term whose key has been read, until the next character that counts. */
interface Candidate {
  readonly term: Term
  readonly start: number
  /** After the last character and the marks on it. */
  end: number
}

class TermScanner implements Scanner {
  overflowAt: number | null = null
  readonly #list: TermList
  readonly #text: HeldText
  #position: number
  #state = 0
  /** Where the latest symbols start in the source, and whether a term may begin there as a word; a ring. */
  readonly #starts: Float64Array
  readonly #begins: Uint8Array
  readonly #mask: number
  #count = 0
  #afterWord = false
  #candidates: Candidate[] = []

  constructor(list: TermList, text: HeldText) {
    this.#list = list
    this.#text = text
    this.#position = text.end
    let size = 8
    while (size < list.automaton.maxDepth + 1) size *= 2
    this.#starts = new Float64Array(size)
    this.#begins = new Uint8Array(size)
    this.#mask = size - 1
  }

  get liveFrom(): number {
    let live = this.#growingFrom()
    for (const { start } of this.#candidates) if (start < live) live = start
    return live
  }

  advance(ended: boolean, found: Match[]): void {
    const { end } = this.#text
    while (this.#position < end && this.overflowAt === null) {
      if (this.#candidates.length === 0) this.#readPlain(end)
      if (this.#position >= end) break
      const at = this.#position
      const unit = this.#text.unitAt(at)
      if (unit >= 128) {
        if (!this.#takeWide(unit, ended, found)) return
        continue
      }
      this.#position = at + 1
      const symbol = this.#list.asciiSymbols[unit] ?? 0
      if (symbol < 0) this.#skip(false)
      else this.#take(symbol, asciiWord[unit] === 1, at, found)
    }
    if (ended && this.overflowAt === null) this.#decide(false, end + 1, found)
  }

  /** The common way: plain characters that end no term. Stops before any other, and after one that ends a term. */
  #readPlain(end: number): void {
    const { asciiSymbols, automaton } = this.#list
    const { table, width } = automaton
    const { text, start } = this.#text
    let state = this.#state
    let position = this.#position
    let ending = 0
    while (position < end && ending === 0) {
      const unit = text.charCodeAt(position - start)
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

  /** Notes where the symbol that was just read stands; only what leads to a state other than the root is asked for. */
  #note(at: number, word: boolean): void {
    const slot = this.#count++ & this.#mask
    this.#starts[slot] = at
    this.#begins[slot] = this.#afterWord && word ? 0 : 1
  }

  /** Reads one code point beyond ASCII; false where its second half has not arrived. */
  #takeWide(unit: number, ended: boolean, found: Match[]): boolean {
    const at = this.#position
    let codePoint = unit
    if (unit >= 0xd800 && unit < 0xdc00) {
      if (at + 1 >= this.#text.end) {
        if (!ended) return false
      } else {
        const low = this.#text.unitAt(at + 1)
        if (low >= 0xdc00 && low < 0xe000) codePoint = (unit - 0xd800) * 0x400 + low - 0xdc00 + 0x10000
      }
    }
    this.#position = at + (codePoint > 0xffff ? 2 : 1)
    const key = this.#list.folding.key(codePoint)
    if (key.length === 0) this.#skip(!isIgnorable(codePoint))
    else {
      const word = isWordCharacter(codePoint)
      for (const folded of key) this.#take(this.#list.automaton.symbolOf(folded), word, at, found)
    }
    return true
  }

  /** A mark or an ignorable character: nothing by itself, but what is live goes on across it, within a bound. */
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

  /** The terms that end where the text has been read to, from the state at which the longest of them ends. */
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

  /** Tells the candidates that are what they seem, now that what follows is known. */
  #decide(wordFollows: boolean, decidedAt: number, found: Match[]): void {
    for (const { term, start, end } of this.#candidates) {
      if (wordFollows && term.bounded[1]) continue
      if (!this.#isTerm(this.#text.slice(start, end), term.text)) continue
      found.push({ start, end, label: this.#list.label, entry: term.entry, decidedAt })
    }
    this.#candidates.length = 0
  }

  /** Whether what has the key of a term is the term: in ASCII it always is. */
  #isTerm(found: string, term: string): boolean {
    if (ascii.test(found) && ascii.test(term)) return true
    const { folding: rules } = this.#list
    return rules.canonical(found).includes(rules.canonical(term))
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

const ascii = /^[\x20-\x7e]*$/
const asciiWord = Uint8Array.from({ length: 128 }, (_, code) => (isWordCharacter(code) ? 1 : 0))
