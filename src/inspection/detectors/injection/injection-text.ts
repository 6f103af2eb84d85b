/**
 * The text of a message in the form that injection signals read, with the place of each character in the source:
 * folded (`inspection/folding/fold.ts`), without ignorable characters, Latin letters without accents, tag characters
 * as the letters that they hide, consecutive white space as one space. So padding and hidden letters cannot break up
 * the words of an attempt. Texts come in pieces.
 *
 * It also records what only the source shows: repeated words and invisible characters.
 */
import { foldForPattern, isIgnorable } from '../../folding/fold.ts'
import { memoized } from '../../folding/memoize.ts'

interface TextSpan {
  readonly start: number
  readonly end: number
}

/** How many repetitions of a word count as noise that should push the instructions out of the context. */
const repeats = 30
/** How many invisible characters count as hidden writing. */
const invisibles = 8
const maxTag = 0xe007e
const minTag = 0xe0020
const tagsAt = 0xe0000

export class InjectionText {
  /** The converted text that was not dropped yet. */
  plain = ''
  /** How many units were dropped. */
  dropped = 0
  /** For each converted unit the start and end of its character in the source. */
  #starts: number[] = []
  #ends: number[] = []
  #offset = 0
  #high = ''
  #lastSpace = 0
  readonly #words = new RepeatedWords()
  #invisible = 0
  #firstInvisible = 0
  #lastInvisible = 0

  /** How many units were converted in all. */
  get length(): number {
    return this.dropped + this.plain.length
  }

  /** Takes the next piece of the source. */
  push(piece: string, last: boolean): void {
    const text = this.#high + piece
    this.#high = ''
    let plain = ''
    for (let index = 0; index < text.length; index++) {
      const unit = text.charCodeAt(index)
      const at = this.#offset
      if (unit > 0x20 && unit < 0x7f) {
        this.#offset++
        this.#words.letter(unit, at)
        this.#lastSpace = 0
        this.#starts.push(at)
        this.#ends.push(at + 1)
        plain += text.charAt(index)
        continue
      }
      const codePoint = text.codePointAt(index) ?? unit
      if (!last && index + 1 === text.length && isHigh(unit)) {
        this.#high = text.charAt(index)
        break
      }
      const units = codePoint > 0xffff ? 2 : 1
      this.#offset += units
      index += units - 1
      plain += this.#takeOther(codePoint, at)
    }
    this.plain += plain
    if (last) this.#words.end()
  }

  /** The source offsets of a range of the converted text, counted from its beginning. */
  source(start: number, end: number): TextSpan {
    const from = this.#starts[start - this.dropped] ?? this.#offset
    return { start: from, end: this.#ends[end - 1 - this.dropped] ?? this.#offset }
  }

  dropBefore(length: number): void {
    const count = length - this.dropped
    if (count <= 0) return
    this.plain = this.plain.slice(count)
    this.#starts = this.#starts.slice(count)
    this.#ends = this.#ends.slice(count)
    this.dropped = length
  }

  /** Words that were repeated too often, since the last call. */
  takeRepeated(): readonly TextSpan[] {
    return this.#words.take()
  }

  /** The range of invisible characters, from the first to the last; null if they are few. */
  get hidden(): TextSpan | null {
    return this.#invisible < invisibles ? null : { start: this.#firstInvisible, end: this.#lastInvisible }
  }

  #takeOther(codePoint: number, at: number): string {
    if (isBlank(codePoint)) {
      this.#words.space()
      const space = codePoint === 0x0a ? 0x0a : 0x20
      if (this.#lastSpace === space) return ''
      this.#lastSpace = space
      this.#starts.push(at)
      this.#ends.push(at + 1)
      return space === 0x0a ? '\n' : ' '
    }
    this.#words.letter(codePoint, at)
    if (codePoint > 0x7f && isIgnorable(codePoint)) {
      if (this.#invisible++ === 0) this.#firstInvisible = at
      this.#lastInvisible = at + (codePoint > 0xffff ? 2 : 1)
    }
    const plain = comparable(codePoint)
    if (plain === '') return ''
    this.#lastSpace = 0
    const end = at + (codePoint > 0xffff ? 2 : 1)
    for (let count = 0; count < plain.length; count++) {
      this.#starts.push(at)
      this.#ends.push(end)
    }
    return plain
  }
}

/** Letters that are used interchangeably, by the one that signals use. */
const spellings: ReadonlyMap<string, string> = new Map([
  ...[['ё', 'е'] as const, ['Ё', 'Е'] as const, ['أ', 'ا'] as const, ['إ', 'ا'] as const],
  ...[['آ', 'ا'] as const, ['ى', 'ي'] as const],
])
/** Vowel marks and lengthening of Arabic, and the dot of Devanagari, which many writers leave out. */
const leftOut = /[\u0640\u064b-\u0652\u093c]/
const latin = /^[A-Za-z]/
const comparablesKept = 8192

/** A character as signals read it: folded, Latin letters without accents, tag characters as the letters they hide. */
const comparable = memoized((codePoint): string => {
  if (codePoint >= minTag && codePoint <= maxTag) return String.fromCodePoint(codePoint - tagsAt)
  let plain = ''
  for (const folded of foldForPattern(codePoint)) {
    const character = String.fromCodePoint(folded)
    const bare = character.normalize('NFD')
    if (leftOut.test(character)) continue
    plain += latin.test(bare) ? bare.charAt(0) : (spellings.get(character) ?? character)
  }
  return plain
}, comparablesKept)

const isHigh = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00
const isBlank = (codePoint: number): boolean =>
  codePoint < 0x80
    ? codePoint === 0x20 || (codePoint >= 0x09 && codePoint <= 0x0d)
    : /\s/.test(String.fromCodePoint(codePoint))

/** Characters that change when they are converted. */
const read = /[^\n\x20-\x7e]| {2}|\n\n/

/** The converted form of a whole text and the signals of its source, without places. */
export function readable(source: string): { plain: string; repeats: boolean; hides: boolean } {
  if (read.test(source)) {
    const text = new InjectionText()
    text.push(source, true)
    return { plain: text.plain, repeats: text.takeRepeated().length > 0, hides: text.hidden !== null }
  }
  const words = new RepeatedWords()
  for (let at = 0; at < source.length; at++) {
    const unit = source.charCodeAt(at)
    if (unit <= 0x20) words.space()
    else words.letter(unit, at)
  }
  words.end()
  return { plain: source, repeats: words.take().length > 0, hides: false }
}

const noStretches: readonly TextSpan[] = []

/** Finds words that are repeated many times. Two words count as equal if their length and two hashes are equal. */
class RepeatedWords {
  /** Most texts have none. */
  #found: TextSpan[] | null = null
  #first = 0
  #second = 0
  #length = 0
  #wordStart = 0
  #wordEnd = 0
  /** The length and hashes of the previous word: no object is created for a word. */
  #lengthBefore = 0
  #firstBefore = 0
  #secondBefore = 0
  #runStart = 0
  #runEnd = 0
  #count = 0

  letter(codePoint: number, at: number): void {
    if (this.#length++ === 0) this.#wordStart = at
    this.#wordEnd = at + (codePoint > 0xffff ? 2 : 1)
    this.#first = Math.imul(this.#first ^ codePoint, 0x01000193)
    this.#second = (Math.imul(this.#second, 31) + codePoint) | 0
  }

  space(): void {
    if (this.#length === 0) return
    const isSame =
      this.#length === this.#lengthBefore && this.#first === this.#firstBefore && this.#second === this.#secondBefore
    if (!isSame) {
      this.#tell()
      this.#lengthBefore = this.#length
      this.#firstBefore = this.#first
      this.#secondBefore = this.#second
      this.#runStart = this.#wordStart
      this.#count = 0
    }
    this.#first = 0
    this.#second = 0
    this.#length = 0
    this.#count++
    this.#runEnd = this.#wordEnd
  }

  end(): void {
    this.space()
    this.#tell()
  }

  take(): readonly TextSpan[] {
    const found = this.#found ?? noStretches
    this.#found = null
    return found
  }

  #tell(): void {
    if (this.#count >= repeats) {
      this.#found ??= []
      this.#found.push({ start: this.#runStart, end: this.#runEnd })
    }
    this.#count = 0
  }
}
