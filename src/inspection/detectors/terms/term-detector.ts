/**
 * Finds the terms of a list. A term is reported when the next character that counts is there: only then is it known
 * whether a mark changes its last letter (`cafe`, then U+0301) or the word continues.
 */
import { Failure } from '../../../failure.ts'
import type { BufferedText } from '../../buffered-text.ts'
import { type Folding, type FoldingOptions, folding, isIgnorable, isWordCharacter } from '../../folding/fold.ts'
import { ambiguous, decoded } from '../../folding/respelled.ts'
import { type Detector, type Match, maxLiveUnits, maxMatchLength, type Scanner } from '../detector.ts'
import { buildAutomaton } from './term-automaton.ts'
import { ampersand, type TermList, TermReading } from './term-reading.ts'

interface TermOptions extends FoldingOptions {
  /** Only whole words; a term that ends with a letter of a script without spaces needs no boundary. */
  wordBoundaries: boolean
}

/** Compiles a term list. Throws `invalid_parameter` naming a term that has no searchable letter, or is too long. */
export function termDetector(terms: readonly string[], label: string, options: TermOptions): Detector {
  const rules = folding(options)
  const keys = terms.map((term, index) => keyOf(term, rules, index))
  const automaton = buildAutomaton(keys)
  const asciiSymbols = new Int32Array(128)
  for (let code = 0; code < 128; code++) {
    const [folded] = rules.key(code)
    asciiSymbols[code] = folded === undefined ? -1 : automaton.symbolOf(folded)
  }
  // Not handled as a plain character: an entity may begin with it.
  asciiSymbols[ampersand] = -1
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
    mayMatch: (text) => mayHoldTerm(list, text) || (ambiguous.test(text) && mayHoldDecoded(list, text)),
    scanner: (text) => new TermScanner(list, text),
  }
}

/** Whether the key of a term is in the text, or so many skipped characters that a term may be held for too long. */
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

/** The same for the text as readers of entities and tag characters see it. */
function mayHoldDecoded(list: TermList, text: string): boolean {
  const plain = decoded(text)
  return mayHoldTerm(list, plain) || text.length - plain.length > maxLiveUnits
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

/**
 * Reads a text as written. From the first ambiguous character on it also reads the other meaning
 * (`inspection/folding/respelled.ts`), while the two differ.
 */
class TermScanner implements Scanner {
  readonly #plain: TermReading
  #decoded: TermReading | null = null

  constructor(list: TermList, text: BufferedText) {
    this.#plain = new TermReading(list, text)
  }

  get liveFrom(): number {
    const { liveFrom } = this.#plain
    return this.#decoded === null ? liveFrom : Math.min(liveFrom, this.#decoded.liveFrom)
  }

  get overflowAt(): number | null {
    const [plain, decodedAt] = [this.#plain.overflowAt, this.#decoded?.overflowAt ?? null]
    return plain === null || decodedAt === null ? (plain ?? decodedAt) : Math.min(plain, decodedAt)
  }

  advance(ended: boolean, found: Match[]): void {
    const plain = this.#plain
    if (this.#decoded === null) {
      plain.advance(ended, found, true)
      if (!plain.isBeforeAmbiguous) return
      this.#decoded = plain.decoding()
    }
    const before = found.length
    plain.advance(ended, found, false)
    this.#decoded.advance(ended, found, false)
    if (found.length - before > 1) {
      const ordered = found.splice(before).sort((one, other) => one.decidedAt - other.decidedAt)
      for (const match of ordered) found.push(match)
    }
    if (plain.standsAs(this.#decoded)) this.#decoded = null
  }
}
