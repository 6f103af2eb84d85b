/**
 * Finds phone numbers in a text: rows of digits and separators, each judged once together with the words beside it.
 * For any split, only one row of bounded length and a few characters after it are held.
 */

import type { BufferedText } from '../../buffered-text.ts'
import { foldForPattern } from '../../folding/fold.ts'
import { WorkBudget } from '../../work-budget.ts'
import type { Detector, Match, Scanner } from '../detector.ts'
import { maxLiveUnits } from '../detector.ts'
import { charactersBefore, charactersBehind } from './phone-context.ts'
import { phoneNumbersIn } from './phone-number.ts'

/** The most folded characters of a row. A longer row continues as another, which begins before any number that is cut. */
const longestRow = 64
/** No number is longer. */
const longestNumber = 32
const fewestDigits = 7
/** The work of judging a row, in units of pattern steps. */
const movesOfRow = 512

const isDigit = (unit: number): boolean => unit >= 0x30 && unit <= 0x39
const isDash = (codePoint: number): boolean => (codePoint >= 0x2010 && codePoint <= 0x2015) || codePoint === 0x2212
const isSeparator = (codePoint: number): boolean => separators.has(codePoint) || isDash(codePoint)
const separators = new Set([...' .-()/'].map((character) => character.charCodeAt(0)))
const isPlain = (unit: number): boolean => unit >= 0x20 && unit < 0x7f
/** Whether a row may begin with this character. */
const isFirst = (unit: number): boolean => isDigit(unit) || unit === 0x2b || unit === 0x28
const notBefore = /[\w.\-/+$€£#@]/

interface Character {
  readonly text: string
  readonly start: number
  readonly end: number
}

export const phoneDetector: Detector = {
  bounded: true,
  mayMatch: mayHoldNumber,
  scanner: (text, work) => new PhoneScanner(text, work ?? new WorkBudget()),
}

/**
 * Whether a row of a text has enough digits for a number, or so many ignorable characters that a row may be held for
 * too long.
 */
function mayHoldNumber(text: string): boolean {
  let digits = 0
  let ignorable = 0
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    if (isPlain(unit)) digits = digitsAfter(digits, unit)
    else {
      const folded = foldForPattern(text.codePointAt(index) ?? unit)
      if (folded.length === 0) ignorable++
      for (const point of folded) digits = digitsAfter(digits, point)
    }
    if (digits >= fewestDigits || ignorable > maxLiveUnits / 4) return true
  }
  return false
}

/** How many digits a row has with one more character; none if that ends the row. */
function digitsAfter(digits: number, codePoint: number): number {
  if (isDigit(codePoint)) return digits + 1
  return isSeparator(codePoint) ? digits : 0
}

class PhoneScanner implements Scanner {
  overflowAt: number | null = null
  readonly #text: BufferedText
  readonly #work: WorkBudget
  #position: number
  #counted: number
  /** Folded text before the row. */
  #before = ''
  /** The row; the text from `#rowEnd` on follows it. */
  #row: Character[] = []
  #rowEnd: number | null = null

  constructor(text: BufferedText, work: WorkBudget) {
    this.#text = text
    this.#work = work
    this.#position = text.end
    this.#counted = text.end
  }

  get liveFrom(): number {
    return this.#row[0]?.start ?? this.#position
  }

  advance(ended: boolean, found: Match[]): void {
    const begun = this.#position
    const end = this.#text.end
    const text = this.#text.slice(begun, end)
    while (this.#position < end && this.overflowAt === null) {
      if (this.#row.length === 0) this.#skipPlain(text, begun)
      const start = this.#position
      if (start >= end) break
      const unit = text.charCodeAt(start - begun)
      let codePoint = unit
      if (unit >= 0xd800 && unit < 0xdc00) {
        if (start + 1 >= end && !ended) return
        codePoint = text.codePointAt(start - begun) ?? unit
      }
      this.#position = start + (codePoint > 0xffff ? 2 : 1)
      if (isPlain(unit)) this.#take({ text: text.charAt(start - begun), start, end: this.#position }, found)
      else this.#takeFolded(codePoint, start, found)
    }
    if (!ended || this.overflowAt !== null) return
    while (this.#row.length > 0) this.#judge(found, this.#position + 1)
  }

  /** The fast path: plain characters that cannot begin a row. */
  #skipPlain(text: string, begun: number): void {
    const from = this.#position - begun
    let to = from
    for (; to < text.length; to++) {
      const unit = text.charCodeAt(to)
      if (!isPlain(unit) || isFirst(unit)) break
    }
    if (to === from) return
    this.#pass(text.slice(from, to))
    this.#position = begun + to
  }

  #takeFolded(codePoint: number, start: number, found: Match[]): void {
    const folded = foldForPattern(codePoint)
    if (folded.length === 0 && this.#position - this.liveFrom > maxLiveUnits) this.overflowAt = this.liveFrom
    for (const point of folded) {
      this.#take({ text: isDash(point) ? '-' : String.fromCodePoint(point), start, end: this.#position }, found)
    }
  }

  #take(character: Character, found: Match[]): void {
    const { text } = character
    if (this.#row.length === 0) {
      if (this.#begins(text)) this.#row.push(character)
      else this.#pass(text)
      return
    }
    this.#row.push(character)
    if (this.#rowEnd === null) {
      const unit = text.charCodeAt(0)
      const isOfRow = isDigit(unit) || separators.has(unit) || (text === '+' && this.#row.at(-2)?.text === '(')
      if (isOfRow && this.#row.length < longestRow) return
      this.#rowEnd = this.#row.length - (isOfRow ? 0 : 1)
      if (digitsIn(this.#row) < fewestDigits) {
        this.#judge(found, character.end)
        return
      }
    }
    if (this.#row.length - this.#rowEnd >= charactersBehind) this.#judge(found, character.end)
  }

  #begins(text: string): boolean {
    return isFirst(text.charCodeAt(0)) && !notBefore.test(this.#before.slice(-1))
  }

  #pass(text: string): void {
    this.#before += text
    if (this.#before.length > 16 * charactersBefore) this.#before = this.#before.slice(-charactersBefore)
  }

  /** Reports the numbers of the row, and reads the text after it again. */
  #judge(found: Match[], decidedAt: number): void {
    const characters = this.#row
    if (characters.length === 0) return
    const rowEnd = this.#rowEnd ?? characters.length
    this.#row = []
    this.#rowEnd = null
    const kept = rowEnd < longestRow ? rowEnd : startOfLast(characters.slice(0, longestRow - longestNumber))
    let read = kept ?? rowEnd
    if (digitsIn(characters.slice(0, rowEnd)) >= fewestDigits) {
      this.#work.add(movesOfRow, this.#position - this.#counted)
      this.#counted = this.#position
      const [row, after] = [textOf(characters.slice(0, rowEnd)), textOf(characters.slice(rowEnd))]
      for (const stretch of phoneNumbersIn(row, this.#before.slice(-charactersBefore), after)) {
        if (kept !== null && stretch.start >= kept) break
        const start = characters[stretch.start]?.start ?? 0
        const end = characters[stretch.end - 1]?.end ?? start
        found.push({ start, end, label: 'PHONE', entry: 'phone', decidedAt })
        read = Math.max(read, stretch.end)
      }
    }
    for (const { text } of characters.slice(0, read)) this.#pass(text)
    for (const character of characters.slice(read)) this.#take(character, found)
  }
}

/** Where the last group of digits begins that stands behind a space; null if none does. */
function startOfLast(characters: readonly Character[]): number | null {
  const space = characters.findLastIndex(({ text }) => text === ' ')
  return space < 0 ? null : space + 1
}

const textOf = (characters: readonly Character[]): string => characters.map(({ text }) => text).join('')
const digitsIn = (characters: readonly Character[]): number =>
  characters.reduce((sum, { text }) => sum + (isDigit(text.charCodeAt(0)) ? 1 : 0), 0)
