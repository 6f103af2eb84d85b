/**
 * Reads the regular expressions that policies may use: a subset of the usual syntax that needs no backtracking.
 *
 * It knows literals, `.`, classes with ranges and `\p{…}`, `\d \w \s \b` and their opposites, groups, alternation,
 * quantifiers, `^` and `$` (begin and end of the text), a leading `(?i)`, and looking around by one character:
 * `(?=[…])`, `(?![…])`, `(?<=[…])`, `(?<![…])`. Lazy quantifiers are read and mean the same, as every match counts.
 * `\d`, `\w` and `\b` are ASCII. Back references and longer look-around are refused.
 *
 * Text is compared compatibility-folded (`inspection/folding/fold.ts`), so the pattern is normalised (NFKC) and its
 * digits are ASCII first.
 */
import { Failure } from '../../failure.ts'
import { withAsciiDigits } from '../folding/decimal-digits.ts'
import {
  type CharacterSet,
  caseless,
  digits,
  everyOther,
  exactly,
  range,
  spaces,
  union,
  words,
} from './character-set.ts'

export type PatternNode =
  | { readonly type: 'set'; readonly set: CharacterSet }
  | { readonly type: 'sequence'; readonly parts: readonly PatternNode[] }
  | { readonly type: 'choice'; readonly options: readonly PatternNode[] }
  | { readonly type: 'repeat'; readonly node: PatternNode; readonly least: number; readonly most: number }
  | { readonly type: 'assertion'; readonly assertion: Assertion }

export type Assertion =
  | { readonly at: 'start' | 'end' }
  | { readonly at: 'boundary'; readonly negated: boolean }
  | { readonly at: 'before' | 'after'; readonly set: CharacterSet; readonly negated: boolean }

/** Reads a pattern. Throws `invalid_parameter` at `param`, saying where the pattern is not understood. */
export function readPattern(source: string, param: string, caseInsensitive = false): PatternNode {
  const text = withAsciiDigits(source.normalize('NFKC'))
  const flagged = text.startsWith('(?i)')
  return new PatternReader(flagged ? text.slice(4) : text, caseInsensitive || flagged, param).read()
}

const newline = exactly('\n\r\u2028\u2029')
const maxRepeat = 1000
const maxDepth = 50

const escapedControls: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', f: '\f', v: '\v', '0': '\0' }
const escapedSets: Readonly<Record<string, CharacterSet>> = {
  d: digits,
  D: everyOther(digits),
  w: words,
  W: everyOther(words),
  s: spaces,
  S: everyOther(spaces),
}

class PatternReader {
  readonly #characters: readonly string[]
  readonly #caseInsensitive: boolean
  readonly #param: string
  #at = 0
  #depth = 0

  constructor(text: string, caseInsensitive: boolean, param: string) {
    this.#characters = [...text]
    this.#caseInsensitive = caseInsensitive
    this.#param = param
  }

  read(): PatternNode {
    const node = this.#choice()
    if (this.#at < this.#characters.length) throw this.#misread('an unmatched )')
    return node
  }

  #misread(what: string): Failure {
    return new Failure('invalid_parameter', {
      message: `The pattern cannot be used: ${what} at character ${this.#at + 1}`,
      param: this.#param,
    })
  }

  #peek(): string {
    return this.#characters[this.#at] ?? ''
  }

  #next(): string {
    const character = this.#characters[this.#at]
    if (character === undefined) throw this.#misread('an unexpected end')
    this.#at++
    return character
  }

  #skip(text: string): boolean {
    for (const [index, character] of [...text].entries()) {
      if (this.#characters[this.#at + index] !== character) return false
    }
    this.#at += text.length
    return true
  }

  #choice(): PatternNode {
    if (++this.#depth > maxDepth) throw this.#misread('too many nested groups')
    const options = [this.#sequence()]
    while (this.#skip('|')) options.push(this.#sequence())
    this.#depth--
    return options.length === 1 && options[0] !== undefined ? options[0] : { type: 'choice', options }
  }

  #sequence(): PatternNode {
    const parts: PatternNode[] = []
    while (this.#at < this.#characters.length && this.#peek() !== '|' && this.#peek() !== ')') parts.push(this.#term())
    return parts.length === 1 && parts[0] !== undefined ? parts[0] : { type: 'sequence', parts }
  }

  #term(): PatternNode {
    const node = this.#atom()
    const counts = this.#quantifier()
    if (counts === null) return node
    if (node.type === 'assertion') throw this.#misread('a quantifier after an assertion')
    if (this.#quantifier() !== null) throw this.#misread('a second quantifier')
    return { type: 'repeat', node, ...counts }
  }

  #quantifier(): { least: number; most: number } | null {
    const counts = this.#counts()
    if (counts !== null && !this.#skip('?') && this.#peek() === '+') throw this.#misread('a possessive quantifier')
    return counts
  }

  #counts(): { least: number; most: number } | null {
    if (this.#skip('*')) return { least: 0, most: Number.POSITIVE_INFINITY }
    if (this.#skip('+')) return { least: 1, most: Number.POSITIVE_INFINITY }
    if (this.#skip('?')) return { least: 0, most: 1 }
    const written = /^\{(\d{1,4})(?:(,)(\d{0,4}))?\}/.exec(this.#characters.slice(this.#at, this.#at + 12).join(''))
    if (written === null) return null
    const [all, first = '', comma, last = ''] = written
    this.#at += all.length
    const least = Number(first)
    let most = least
    if (comma !== undefined) most = last === '' ? Number.POSITIVE_INFINITY : Number(last)
    if (most < least || least > maxRepeat || (most > maxRepeat && most !== Number.POSITIVE_INFINITY)) {
      throw this.#misread(`a repetition that is not between 0 and ${maxRepeat}`)
    }
    return { least, most }
  }

  #atom(): PatternNode {
    const character = this.#next()
    switch (character) {
      case '(':
        return this.#group()
      case '[':
        return this.#setNode(this.#class())
      case '.':
        return this.#setNode(everyOther(newline))
      case '^':
        return { type: 'assertion', assertion: { at: 'start' } }
      case '$':
        return { type: 'assertion', assertion: { at: 'end' } }
      case '\\':
        return this.#escape()
      case '*':
      case '+':
      case '?':
        throw this.#misread('a quantifier with nothing before it')
      default:
        return this.#setNode(exactly(character))
    }
  }

  #setNode(set: CharacterSet): PatternNode {
    return { type: 'set', set: this.#caseInsensitive ? caseless(set) : set }
  }

  #group(): PatternNode {
    if (this.#skip('?')) {
      if (this.#skip('=')) return this.#lookAround('before', false)
      if (this.#skip('!')) return this.#lookAround('before', true)
      if (this.#skip('<=')) return this.#lookAround('after', false)
      if (this.#skip('<!')) return this.#lookAround('after', true)
      if (this.#skip('<')) while (this.#next() !== '>');
      else if (!this.#skip(':')) throw this.#misread('an unknown kind of group')
    }
    const node = this.#choice()
    if (!this.#skip(')')) throw this.#misread('a group that does not end')
    return node
  }

  #lookAround(at: 'before' | 'after', negated: boolean): PatternNode {
    const node = this.#choice()
    if (node.type !== 'set') throw this.#misread('a look-around of other than one character')
    if (!this.#skip(')')) throw this.#misread('a group that does not end')
    return { type: 'assertion', assertion: { at, set: node.set, negated } }
  }

  #escape(): PatternNode {
    if (this.#skip('b')) return { type: 'assertion', assertion: { at: 'boundary', negated: false } }
    if (this.#skip('B')) return { type: 'assertion', assertion: { at: 'boundary', negated: true } }
    return this.#setNode(this.#escapedSet())
  }

  /** What follows a backslash, inside a class or outside. */
  #escapedSet(): CharacterSet {
    const character = this.#next()
    const set = escapedSets[character]
    if (set !== undefined) return set
    const control = escapedControls[character]
    if (control !== undefined) return exactly(control)
    if (character === 'p' || character === 'P') return this.#property(character === 'P')
    if (character === 'x') return exactly(this.#codePoint(2))
    if (character === 'u') return exactly(this.#skip('{') ? this.#bracedCodePoint() : this.#codePoint(4))
    if (/[A-Za-z0-9]/.test(character)) throw this.#misread(`\\${character}, which is not known`)
    return exactly(character)
  }

  #codePoint(length: number): string {
    const written = this.#characters.slice(this.#at, this.#at + length).join('')
    if (!new RegExp(`^[0-9A-Fa-f]{${length}}$`).test(written)) throw this.#misread('an incomplete escape')
    this.#at += length
    return String.fromCodePoint(Number.parseInt(written, 16))
  }

  #bracedCodePoint(): string {
    let written = ''
    for (let character = this.#next(); character !== '}'; character = this.#next()) written += character
    const codePoint = Number.parseInt(written, 16)
    if (!/^[0-9A-Fa-f]{1,6}$/.test(written) || codePoint > 0x10ffff) throw this.#misread('a wrong code point')
    return String.fromCodePoint(codePoint)
  }

  #property(negated: boolean): CharacterSet {
    let name = ''
    if (!this.#skip('{')) throw this.#misread('\\p without a name in braces')
    for (let character = this.#next(); character !== '}'; character = this.#next()) name += character
    try {
      const property = new RegExp(`\\p{${name}}`, 'u')
      const set: CharacterSet = { ranges: [], tests: [(codePoint) => property.test(String.fromCodePoint(codePoint))] }
      return negated ? everyOther(set) : set
    } catch {
      // The name is the author's; that it is none is all there is to say.
      throw this.#misread('an unknown property')
    }
  }

  #class(): CharacterSet {
    const negated = this.#skip('^')
    let set: CharacterSet = { ranges: [], tests: [] }
    for (let first = true; first || this.#peek() !== ']'; first = false) set = union(set, this.#classItem())
    this.#next()
    if (this.#caseInsensitive) set = caseless(set)
    return negated ? everyOther(set) : set
  }

  #classItem(): CharacterSet {
    // POSIX classes, as `[[:alpha:]]`: read as single characters, they would mean something else without a word.
    if (this.#peek() === '[' && this.#characters[this.#at + 1] === ':') throw this.#misread('[: inside of a class')
    const low = this.#classCharacter()
    if (this.#peek() !== '-' || this.#characters[this.#at + 1] === ']') return low
    const [from, to] = low.ranges
    if (from === undefined || from !== to || low.ranges.length !== 2) return low
    this.#next()
    const [upper, end] = this.#classCharacter().ranges
    if (upper === undefined || upper !== end || upper < from) throw this.#misread('a wrong range')
    return range(from, upper)
  }

  #classCharacter(): CharacterSet {
    const character = this.#next()
    if (character !== '\\') return exactly(character)
    return this.#skip('b') ? exactly('\b') : this.#escapedSet()
  }
}
