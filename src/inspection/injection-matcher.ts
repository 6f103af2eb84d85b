/**
 * Tells texts that try to take over a model, by the signals they show. A score at or above the threshold makes each place
 * where a signal stands a match, named after it. A text is judged as a whole, so nothing of it is known before its end.
 * Most texts lack what most signals need, and are read for the others only.
 */

import { isIgnorable } from './fold.ts'
import { type Found, matcherOf, type TextFollower, type TextMatcher } from './follower.ts'
import { injectionSignals } from './injection-signals.ts'
import { patternDetector } from './pattern-detector.ts'
import { patternPrefilter } from './pattern-prefilter.ts'
import { readPattern } from './pattern-syntax.ts'
import type { Work } from './work.ts'

export interface InjectionReport {
  /** Between 0 and 1. */
  readonly score: number
  readonly signals: readonly string[]
}

export interface InjectionMatcher extends TextMatcher {
  report(text: string): InjectionReport
}

const label = 'INJECTION'
/** How often a word stands in a row before it is noise that is meant to push the instructions out. */
const repeats = 30
const repeatedWeight = 0.35
/** How many invisible characters a text has before they are taken for hidden writing. */
const invisibles = 8
const invisibleWeight = 0.4

const weights: ReadonlyMap<string, number> = new Map([
  ...injectionSignals.map(({ name, weight }) => [name, weight] as const),
  ['repeated_word', repeatedWeight],
  ['hidden_writing', invisibleWeight],
])

interface Signals {
  /** The signals that a text may show, by their index; it shows none of the others. */
  readonly candidates: (text: string) => readonly number[]
  readonly matchers: (TextMatcher | undefined)[]
}

let signals: Signals | null = null

const prepareSignals = (): Signals => ({
  candidates: patternPrefilter(
    injectionSignals.map(({ patterns }) => patterns.map((pattern) => readPattern(pattern, 'config', true))),
  ),
  matchers: [],
})

/** The matcher of a signal: compiled for the first text that may show it, for all policies. */
function signalMatcher(matchers: Signals['matchers'], index: number): TextMatcher {
  const known = matchers[index]
  if (known !== undefined) return known
  const { name = '', patterns = [] } = injectionSignals[index] ?? {}
  const sources = patterns.map((pattern) => ({ label, pattern, entry: name, caseInsensitive: true }))
  const made = matcherOf(patternDetector(sources, { streaming: false, paramOf: () => 'config' }))
  matchers[index] = made
  return made
}

/** One matcher serves every text. */
export function injectionMatcher(threshold: number): InjectionMatcher {
  signals ??= prepareSignals()
  const { candidates, matchers } = signals
  const places = (text: string, work?: Work): Found[] => {
    const found: Found[] = []
    for (const index of candidates(text)) {
      found.push(...signalMatcher(matchers, index).follow(work).push(text, true).matches)
    }
    found.push(...repeatedWords(text), ...hiddenWriting(text))
    return found
  }
  const report = (found: readonly Found[]): InjectionReport => {
    const names = [...new Set(found.map(({ entry }) => entry))]
    return {
      score: Math.min(
        1,
        names.reduce((sum, name) => sum + (weights.get(name) ?? 0), 0),
      ),
      signals: names,
    }
  }
  const mayMatch = (text: string): boolean => {
    let most = 0
    for (const index of candidates(text)) most += injectionSignals[index]?.weight ?? 0
    if (repeatedWords(text).length > 0) most += repeatedWeight
    if (hiddenWriting(text).length > 0) most += invisibleWeight
    return most >= threshold - 1e-9
  }
  const matches = (text: string, work?: Work): readonly Found[] => {
    const found = places(text, work)
    return report(found).score < threshold - 1e-9 ? [] : disjoint(found)
  }
  return {
    mayMatch,
    matches,
    report: (text) => report(places(text)),
    follow: (work) => new WholeFollower((text) => matches(text, work)),
  }
}

class WholeFollower implements TextFollower {
  readonly #matches: TextMatcher['matches']
  #text = ''

  constructor(matches: TextMatcher['matches']) {
    this.#matches = matches
  }

  push(piece: string, last: boolean): { matches: readonly Found[]; safe: number } {
    this.#text += piece
    return last ? { matches: this.#matches(this.#text), safe: this.#text.length } : { matches: [], safe: 0 }
  }
}

/** Overlapping matches as one, which names all their signals. */
function disjoint(found: readonly Found[]): Found[] {
  const joined: Found[] = []
  for (const next of found.toSorted((one, other) => one.start - other.start)) {
    const last = joined.at(-1)
    if (last === undefined || next.start >= last.end) {
      joined.push(next)
      continue
    }
    const names = last.entry.split('+')
    const entry = names.includes(next.entry) ? last.entry : `${last.entry}+${next.entry}`
    joined[joined.length - 1] = { ...last, entry, end: Math.max(last.end, next.end) }
  }
  return joined
}

const nothing: readonly Found[] = []

function repeatedWords(text: string): readonly Found[] {
  let found: Found[] | null = null
  let count = 0
  let runStart = 0
  let wordStart = 0
  let wordEnd = 0
  for (;;) {
    const start = wordFrom(text, wordEnd)
    const end = endOfWord(text, start)
    const isWord = start < text.length
    if (isWord && end - start === wordEnd - wordStart && isSame(text, wordStart, start, end)) count++
    else {
      if (count >= repeats) {
        found ??= []
        found.push({ start: runStart, end: wordEnd, label, entry: 'repeated_word' })
      }
      count = 1
      runStart = start
    }
    if (!isWord) return found ?? nothing
    wordStart = start
    wordEnd = end
  }
}

/** Where the next word begins; the text's length where there is none. */
function wordFrom(text: string, from: number): number {
  let at = from
  while (at < text.length && isSpace(text.charCodeAt(at))) at++
  return at
}

function endOfWord(text: string, from: number): number {
  let at = from
  while (at < text.length && !isSpace(text.charCodeAt(at))) at++
  return at
}

const isSpace = (unit: number): boolean =>
  unit < 0x80 ? unit === 0x20 || (unit >= 0x09 && unit <= 0x0d) : /\s/.test(String.fromCharCode(unit))

/** Whether the word from `start` to `end` is the one that begins at `other`. */
function isSame(text: string, other: number, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (text.charCodeAt(at) !== text.charCodeAt(other + at - start)) return false
  return true
}

const beyondAscii = /[^\0-\x7f]/

function hiddenWriting(text: string): readonly Found[] {
  if (!beyondAscii.test(text)) return nothing
  const places: number[] = []
  for (let index = 0; index < text.length; index++) {
    const codePoint = text.codePointAt(index) ?? 0
    if (codePoint > 0x7f && isIgnorable(codePoint)) places.push(index)
  }
  const [start] = places
  const end = places.at(-1)
  if (places.length < invisibles || start === undefined || end === undefined) return nothing
  return [{ start, end: end + 1, label, entry: 'hidden_writing' }]
}
