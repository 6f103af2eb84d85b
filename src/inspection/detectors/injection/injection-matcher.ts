/**
 * Detects texts that try to take over a model, by their signals. If the score reaches the threshold, each place of a
 * signal becomes a match, named after it. The score needs the whole text, so no match is known before its end; but
 * the text is read as it comes, with a bounded amount of work for each piece.
 *
 * 1. `injection-text.ts` converts the source into the text that the signals read.
 * 2. That is read in windows, each overlapping the next by half: a phrase up to half a window long is whole in one. A
 *   signal whose words are not in a window is not searched there.
 * 3. The score is the sum of the signals that are near each other, where it is highest.
 * 4. The places are joined as windows pass. In a text with very many of them, nearby places are joined too.
 */

import { patternDetector } from '../../regex/pattern-detector.ts'
import { patternPrefilter } from '../../regex/pattern-prefilter.ts'
import { readPattern } from '../../regex/pattern-syntax.ts'
import { WorkBudget } from '../../work-budget.ts'
import { type Found, matcherOf, type TextFollower, type TextMatcher } from '../text-matcher.ts'
import { injectionSignals } from './injection-signals.ts'
import { InjectionText, readable } from './injection-text.ts'

interface InjectionReport {
  /** Between 0 and 1. */
  readonly score: number
  readonly signals: readonly string[]
}

interface InjectionMatcher extends TextMatcher {
  report(text: string): InjectionReport
}

const label = 'INJECTION'
const repeatedWeight = 0.35
const invisibleWeight = 0.4
/** Half a window, in UTF-16 units: no pattern of a signal is longer, except for runs of letters. */
const halfWindow = 512
/** How many places a text may have before nearby ones are joined. */
const mostPlaces = 4096
/**
 * Signals count together if they are this close, in converted characters. In a long text, such as a project's notes or
 * a list of skills, single weak signals far apart say nothing.
 */
const near = 3 * halfWindow
/** Tolerance for comparing a score with a threshold: sums of tenths are not exact. */
const least = (threshold: number): number => threshold - 1e-9

const weights: ReadonlyMap<string, number> = new Map([
  ...injectionSignals.map(({ name, weight }) => [name, weight] as const),
  ['repeated_word', repeatedWeight],
  ['hidden_writing', invisibleWeight],
])

function weightOf(names: Iterable<string>): number {
  let sum = 0
  for (const name of names) sum += weights.get(name) ?? 0
  return sum
}

interface Signals {
  /** The signals that a text may contain, by index; it contains none of the others. */
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

/** The matcher of a signal: compiled for the first text that may contain it, for all policies. */
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
  const known = signals
  const read = (text: string, work = new WorkBudget()): InjectionFollower => {
    const follower = new InjectionFollower(known, threshold, work)
    follower.push(text, true)
    return follower
  }
  return {
    mayMatch: (text) => mayReach(known, threshold, text),
    matches: (text) => new InjectionFollower(known, threshold, new WorkBudget()).push(text, true).matches,
    report: (text) => read(text).report(),
    follow: (work = new WorkBudget()) => new InjectionFollower(known, threshold, work),
  }
}

/** Whether the signals that may be in the text could reach this score. */
function mayReach({ candidates }: Signals, threshold: number, source: string): boolean {
  const { plain, repeats, hides } = readable(source)
  let most = 0
  for (const index of candidates(plain)) most += injectionSignals[index]?.weight ?? 0
  if (repeats) most += repeatedWeight
  if (hides) most += invisibleWeight
  return most >= least(threshold)
}

const nothing: readonly Found[] = []

class InjectionFollower implements TextFollower {
  readonly #signals: Signals
  readonly #threshold: number
  readonly #work: WorkBudget
  readonly #text = new InjectionText()
  /** Where the next window begins in the converted text. */
  #window = 0
  /** The last place of each signal in the converted text. */
  readonly #last = new Map<string, number>()
  /** Signals of the text as a whole. */
  readonly #general = new Set<string>()
  /** The highest sum of signals that are near each other. */
  #densest = 0
  readonly #places = new Places()
  #read = 0

  constructor(known: Signals, threshold: number, work: WorkBudget) {
    this.#signals = known
    this.#threshold = threshold
    this.#work = work
  }

  push(piece: string, last: boolean): { matches: readonly Found[]; safe: number } {
    this.#read += piece.length
    // A long piece is read in parts, so that no more of it is kept than of short ones.
    for (let at = 0; at < piece.length; at += halfWindow) this.#take(piece.slice(at, at + halfWindow), false)
    if (!last) return { matches: nothing, safe: 0 }
    this.#take('', true)
    const { hidden } = this.#text
    if (hidden !== null) this.#addGeneral({ ...hidden, label, entry: 'hidden_writing' })
    const isOne = this.report().score >= least(this.#threshold)
    return { matches: isOne ? this.#places.all() : nothing, safe: this.#read }
  }

  report(): InjectionReport {
    const score = weightOf(this.#general) + this.#densest
    return { score: Math.min(1, score), signals: [...this.#last.keys(), ...this.#general] }
  }

  #take(piece: string, last: boolean): void {
    const text = this.#text
    text.push(piece, last)
    // The text after a window is known before the window is read, because a signal must see where a word ends.
    while (text.length > this.#window + 2 * halfWindow) this.#readWindow()
    if (last && text.length > this.#window) this.#readWindow()
    for (const stretch of text.takeRepeated()) this.#addGeneral({ ...stretch, label, entry: 'repeated_word' })
  }

  #readWindow(): void {
    const text = this.#text
    const from = this.#window
    const to = Math.min(text.length, from + 2 * halfWindow)
    const { candidates, matchers } = this.#signals
    const kept = text.plain.slice(0, to + 1 - text.dropped)
    for (const index of candidates(kept.slice(from - text.dropped, to - text.dropped))) {
      for (const found of signalMatcher(matchers, index).follow(this.#work).push(kept, true).matches) {
        const [start, end] = [text.dropped + found.start, text.dropped + found.end]
        // A match whose first or last character only gives context at the window's edge belongs to another window.
        if (start >= from && end <= to) this.#add({ ...found, ...text.source(start, end) }, start)
      }
    }
    this.#window += halfWindow
    text.dropBefore(Math.min(text.length, this.#window - 1))
  }

  #addGeneral(found: Found): void {
    this.#general.add(found.entry)
    this.#places.add(found)
  }

  /**
   * Adds a signal and weighs it with the signals near it. The last place of each signal is enough: it is in the same
   * window, or the nearest before.
   */
  #add(found: Found, at: number): void {
    this.#last.set(found.entry, at)
    this.#places.add(found)
    const close = new Set<string>()
    for (const [name, place] of this.#last) if (Math.abs(place - at) <= near) close.add(name)
    this.#densest = Math.max(this.#densest, weightOf(close))
  }
}

/** Places of a text by their start; overlapping places become one, which names all their signals. */
class Places {
  #sorted: Found[] = []

  add(found: Found): void {
    const sorted = this.#sorted
    let index = sorted.length
    while (index > 0 && (sorted[index - 1]?.start ?? 0) > found.start) index--
    // The places that it overlaps are next to it.
    let first = index
    while (first > 0 && (sorted[first - 1]?.end ?? 0) > found.start) first--
    while (index < sorted.length && (sorted[index]?.start ?? 0) < found.end) index++
    const joined = sorted.slice(first, index).reduce(join, found)
    sorted.splice(first, index - first, joined)
    if (sorted.length > mostPlaces) this.#halve()
  }

  all(): readonly Found[] {
    return this.#sorted
  }

  #halve(): void {
    const fewer: Found[] = []
    for (let index = 0; index < this.#sorted.length; index += 2) {
      const [one, other] = this.#sorted.slice(index, index + 2)
      if (one !== undefined) fewer.push(other === undefined ? one : join(one, other))
    }
    this.#sorted = fewer
  }
}

function join(one: Found, other: Found): Found {
  const names = new Set([...one.entry.split('+'), ...other.entry.split('+')])
  return {
    start: Math.min(one.start, other.start),
    end: Math.max(one.end, other.end),
    label,
    entry: [...names].join('+'),
  }
}
