/**
 * Follows one text and reports a detector's matches in order, each range once and at its full length: overlapping
 * matches are one range. The result depends on the text alone, never on its split into pieces.
 *
 * A range is reported when nothing live could extend it. If matches overlap without end, it is reported in parts of
 * bounded length; if a start stays live beyond the bound, everything from there on is one endless range.
 */

import { BufferedText } from '../buffered-text.ts'
import type { WorkBudget } from '../work-budget.ts'
import { type Detector, type Match, maxLiveUnits, type Scanner } from './detector.ts'

/** A range that nothing can extend any more. */
export interface Found extends Omit<Match, 'decidedAt'> {
  /** It continues to the end of the text, at any length: a start stayed live for more than can be held. */
  readonly endless?: true
  /** The text in the match, if it differs from the text at its place. */
  readonly said?: string
  /** The replacement if the action is `rewrite`. */
  readonly replacement?: string
}

/** One text as it comes in. */
export interface TextFollower {
  /**
   * Takes the next piece; `last` says that nothing follows. Returns the ranges that are now certain, in order, and
   * the offset before which nothing can become part of a match any more. Offsets count from the beginning of the
   * text.
   */
  push(piece: string, last: boolean): { matches: readonly Found[]; safe: number }
}

/** Finds ranges of text. Stateless: all texts share one. */
export interface TextMatcher {
  /** False if a whole text has no match: asked before a text is followed. */
  mayMatch(text: string): boolean
  /** All matches of a whole text, by their start, none overlapping another. */
  matches(text: string): readonly Found[]
  /** No match is longer than the text that can be held, so a window of a text shows whether it has one. */
  readonly bounded?: true
  /** `work` is the budget for all texts that it is given for. */
  follow(work?: WorkBudget): TextFollower
}

/** The matcher of a detector. */
export const matcherOf = (detector: Detector): TextMatcher => ({
  mayMatch: detector.mayMatch,
  ...(detector.bounded ? { bounded: true } : {}),
  matches: (text) => (detector.mayMatch(text) ? new Follower(detector).push(text, true).matches : nothing),
  follow: (work) => new Follower(detector, work),
})

export const overflowEntry = 'held_too_long'

const nothing: readonly Found[] = []

interface Stretch {
  start: number
  end: number
  label: string
  entry: string
  /** The end of the match that gave the label: the longest of those with the first start. */
  labelled: number
  /** It has become too long to grow further. */
  closed: boolean
}

export class Follower implements TextFollower {
  readonly #text = new BufferedText()
  readonly #scanner: Scanner
  readonly #found: Match[] = []
  readonly #stretches: Stretch[] = []
  /** The end of the last reported range. */
  #told = 0
  /** The end of the last range that may not grow further; later matches count from there. */
  #floor = 0
  readonly #bounded: boolean
  #endless = false

  constructor(detector: Detector, work?: WorkBudget) {
    this.#bounded = detector.bounded
    this.#scanner = detector.scanner(this.#text, work)
  }

  push(piece: string, last: boolean): { matches: readonly Found[]; safe: number } {
    if (this.#endless) return { matches: nothing, safe: this.#told }
    this.#text.append(piece)
    this.#scanner.advance(last, this.#found)
    for (const match of this.#found) this.#add(match)
    this.#found.length = 0
    const { overflowAt } = this.#scanner
    const live = overflowAt ?? (last ? this.#text.end : this.#scanner.liveFrom)
    const matches = this.#stretches.length === 0 ? nothing : this.#certain(live)
    if (overflowAt !== null) return { matches: [...matches, this.#overflow(overflowAt)], safe: this.#told }
    this.#text.dropBefore(live)
    const [growing] = this.#stretches
    return { matches, safe: Math.max(this.#told, Math.min(live, growing?.start ?? live)) }
  }

  /** Joins a match with those it overlaps. The result depends only on the order of matches, not on when they come. */
  #add({ start: begun, end, label, entry }: Match): void {
    const start = Math.max(begun, this.#floor)
    if (start >= end) return
    const stretches = this.#stretches
    let first = stretches.length
    while (first > 0 && (stretches[first - 1]?.end ?? 0) > start) first--
    let behind = first
    const joined: Stretch = { start, end, label, entry, labelled: end, closed: false }
    for (let next = stretches[behind]; next !== undefined && next.start < end; next = stretches[behind]) {
      if (next.start < joined.start || (next.start === joined.start && moreSpecific(next, joined))) {
        joined.label = next.label
        joined.entry = next.entry
        joined.labelled = next.labelled
        joined.start = next.start
      }
      joined.end = Math.max(joined.end, next.end)
      behind++
    }
    stretches.splice(first, behind - first, joined)
    if (this.#bounded && joined.end - joined.start > maxLiveUnits) {
      joined.closed = true
      this.#floor = joined.end
    }
  }

  /** Takes the ranges that nothing from `live` on can extend. */
  #certain(live: number): Found[] {
    const certain: Found[] = []
    for (let first = this.#stretches[0]; first !== undefined; first = this.#stretches[0]) {
      if (first.end > live && !first.closed) break
      this.#stretches.shift()
      this.#told = first.end
      certain.push({ start: first.start, end: first.end, label: first.label, entry: first.entry })
    }
    return certain
  }

  #overflow(overflowAt: number): Found {
    const [growing] = this.#stretches
    const start = Math.max(this.#told, Math.min(overflowAt, growing?.start ?? overflowAt))
    this.#endless = true
    this.#told = start
    return { start, end: Number.POSITIVE_INFINITY, label: 'TEXT', entry: overflowEntry, endless: true }
  }
}

/** Of two matches with one start the longer one names the range; if both are equally long, the first by name. */
function moreSpecific(one: Stretch, other: Stretch): boolean {
  if (one.labelled !== other.labelled) return one.labelled > other.labelled
  return `${one.label} ${one.entry}` < `${other.label} ${other.entry}`
}
