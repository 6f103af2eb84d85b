/**
 * How text is made comparable, one code point at a time, so that it does not matter where a stream was split.
 *
 * - Ignorable characters (zero-width, soft hyphens, direction marks, variation selectors, control characters) stand for
 *   nothing. They are skipped, but they are inside a match that goes on after them.
 * - Patterns read compatibility-folded code points (NFKC of each): `ﬁ` is `f`, `i`; digits of all scripts are ASCII.
 * - Terms are found by keys: NFKD of each code point, its marks left out, case folded, every white space a space. A key
 *   says "perhaps": accents, and syllables that only begin alike, are told apart by comparing the canonical form (NFKC,
 *   case folded) of what was found with that of the term. So composed and decomposed spellings, and marks in any order,
 *   are the same.
 *
 * Patterns do not compose: an accent that stands by itself in the text is a character of its own to them. And a syllable
 * of Korean that is written in single letters also counts as the shorter one that it begins with.
 */
import { asciiDigit } from './decimal-digits.ts'
import { homoglyphs } from './homoglyphs.ts'
import { memoized } from './memoize.ts'
import { isRegional, respell, respelled } from './respelled.ts'

const ignorable = /[\p{Default_Ignorable_Code_Point}\p{Cf}\p{Cc}]/u
/** Not `\s`, which takes in U+FEFF, that nobody sees, and leaves out U+0085. */
const whiteSpace = /\p{White_Space}/u
const marks = /\p{M}+/gu
const wordCharacter = /[\p{L}\p{N}\p{M}_]/u
/** Scripts written without spaces: no boundary can be asked for beside their letters. */
const unspaced =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u

export const isIgnorable = (codePoint: number): boolean => {
  if (codePoint >= 0x20 && codePoint < 0x7f) return false
  const character = String.fromCodePoint(codePoint)
  return ignorable.test(character) && !whiteSpace.test(character)
}

/** Whether a neighbour of this kind continues a word, so that a term beside it is only a part of one. */
export const isWordCharacter = (codePoint: number): boolean => {
  if (respelled.has(codePoint)) return !isRegional(codePoint)
  const character = String.fromCodePoint(codePoint)
  return wordCharacter.test(character) && !unspaced.test(character)
}

const none: readonly number[] = []

const codePoints = (text: string): number[] => {
  const points: number[] = []
  for (const character of text) points.push(character.codePointAt(0) ?? 0)
  return points
}

const isSurrogate = (codePoint: number): boolean => codePoint >= 0xd800 && codePoint <= 0xdfff

/** As many as the basic plane has, where all but a few characters are. */
const foldsKept = 0x10000

/** What a pattern reads for a source code point: nothing for an ignorable one, several for a ligature. */
export const foldForPattern = memoized((codePoint): readonly number[] => {
  if (isIgnorable(codePoint)) return none
  if (codePoint < 0x80 || isSurrogate(codePoint)) return [codePoint]
  return codePoints(String.fromCodePoint(codePoint).normalize('NFKC'))
    .filter((point) => !isIgnorable(point))
    .map(asciiDigit)
}, foldsKept)

export interface FoldingOptions {
  caseSensitive: boolean
  homoglyphs: boolean
}

/** How the terms of one list are compared. */
export interface Folding {
  /** The key of one code point: nothing for a mark or an ignorable character. */
  key(codePoint: number): readonly number[]
  /** What a text that has the key of a term must contain to be it. */
  canonical(text: string): string
}

/** Full case folding by way of upper case (`ß` is `ss`); the final sigma is a sigma, and `İ`, `I`, `ı` are `i`. */
const foldCase = (text: string): string =>
  text.toUpperCase().toLowerCase().replaceAll('ς', 'σ').replaceAll('i\u0307', 'i')

const asLatin = (text: string): string => {
  let latin = ''
  for (const character of text) latin += homoglyphs.get(character) ?? character
  return latin
}

const withoutIgnorable = (text: string): string => {
  let kept = ''
  for (const character of text) if (!isIgnorable(character.codePointAt(0) ?? 0)) kept += character
  return kept
}

function makeFolding({ caseSensitive, homoglyphs: lookalikes }: FoldingOptions): Folding {
  const cased = caseSensitive ? (text: string) => text : foldCase
  const bare = (text: string): string => {
    const decomposed = respell(text).normalize('NFKD').replace(marks, '')
    return cased(lookalikes ? asLatin(decomposed) : decomposed)
      .normalize('NFKD')
      .replace(marks, '')
      .replace(/\p{White_Space}/gu, ' ')
  }
  return {
    key: memoized((codePoint) => {
      if (isIgnorable(codePoint)) return none
      if (isSurrogate(codePoint)) return [codePoint]
      return codePoints(bare(String.fromCodePoint(codePoint))).filter((point) => !isIgnorable(point))
    }, foldsKept),
    canonical: (text) => {
      const plain = withoutIgnorable(text)
      if (lookalikes) return bare(plain).normalize('NFKC')
      return cased(respell(plain).normalize('NFKC'))
        .normalize('NFKC')
        .replace(/\p{White_Space}/gu, ' ')
    },
  }
}

const foldings = [false, true].map((caseSensitive) =>
  [false, true].map((lookalikes) => makeFolding({ caseSensitive, homoglyphs: lookalikes })),
)

/** The folding of these options; there are four, and each remembers what it worked out. */
export const folding = ({ caseSensitive, homoglyphs: lookalikes }: FoldingOptions): Folding =>
  foldings[caseSensitive ? 1 : 0]?.[lookalikes ? 1 : 0] ?? makeFolding({ caseSensitive, homoglyphs: lookalikes })
