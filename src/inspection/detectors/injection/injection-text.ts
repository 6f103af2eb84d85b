/**
 * The text of a message as the signals of an injection read it, with the place of each character in the source: folded
 * (`inspection/folding/fold.ts`), without ignorable characters, Latin letters without accents, tag characters as the letters that they hide, white space in a row as one.
 * So neither padding nor hidden letters keep the words of an attempt apart. Texts come in pieces.
 *
 * It also notes what shows in the source only: how often a word stands in a row, and how many characters are invisible.
 */
import { foldForPattern, isIgnorable } from '../../folding/fold.ts'
import { memoized } from '../../folding/memoize.ts'

interface TextSpan {
  readonly start: number
  readonly end: number
}

/** How often a word stands in a row before it is noise that is meant to push the instructions out. */
const repeats = 30
/** How many invisible characters a text has before they are taken for hidden writing. */
const invisibles = 8
const maxTag = 0xe007e
const minTag = 0xe0020
const tagsAt = 0xe0000

export class InjectionText {
  /** What is read and not dropped. */
  plain = ''
  /** How much was dropped. */
  dropped = 0
  /** For each unit that is read where its character begins and ends in the source. */
  #starts: number[] = []
  #ends: number[] = []
  #offset = 0
  #high = ''
  #lastSpace = 0
  readonly #words = new RepeatedWords()
  #invisible = 0
  #firstInvisible = 0
  #lastInvisible = 0

  /** How many units were read in all. */
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

  /** The source offsets of a stretch of what is read, counted from the beginning of all that was read. */
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

  /** Words that stood in a row too often, since this was asked last. */
  takeRepeated(): readonly TextSpan[] {
    return this.#words.take()
  }

  /** Where invisible characters stand, from the first to the last; null where they are few. */
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

/** Letters of which some write the one and some the other, by the one that signals have. */
const spellings: ReadonlyMap<string, string> = new Map([
  ...[['ё', 'е'] as const, ['Ё', 'Е'] as const, ['أ', 'ا'] as const, ['إ', 'ا'] as const],
  ...[['آ', 'ا'] as const, ['ى', 'ي'] as const],
])
/** Vowel marks and lengthening of Arabic, and the dot of Devanagari, which many leave out. */
const leftOut = /[\u0640\u064b-\u0652\u093c]/
const latin = /^[A-Za-z]/
const comparablesKept = 8192

/** A character as signals read it: folded, Latin letters without accents, tag characters as what they hide. */
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

/** What is not read as it stands. */
const read = /[^\n\x20-\x7e]| {2}|\n\n/

/** What signals read of a whole text, and what shows in it besides, without places. */
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

/** Finds words that stand in a row again and again. Two words are one where their length and two hashes are. */
class RepeatedWords {
  /** Most texts have none. */
  #found: TextSpan[] | null = null
  #first = 0
  #second = 0
  #length = 0
  #wordStart = 0
  #wordEnd = 0
  /** Of the word before its length and hashes: no object is made for a word. */
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
