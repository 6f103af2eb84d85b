/**
 * What finds something in text. A detector is compiled once for a policy; a scanner is its state in one text, fed bit by
 * bit. Whole texts are read by the same scanner in one piece, so that both ways always find the same.
 *
 * Offsets are UTF-16 units of the source text, as it came: not of what it folds to.
 */
import type { BufferedText } from '../buffered-text.ts'
import type { WorkBudget } from '../work-budget.ts'

/** A stretch of the source text that matched. */
export interface Match {
  readonly start: number
  readonly end: number
  /** The type, as placeholders and events show it: `EMAIL`. */
  readonly label: string
  /** Which entry of the policy found it, never the text itself: `terms[3]`. */
  readonly entry: string
  /** How far the text had been read when it was known: it orders what several scanners of one text find. */
  readonly decidedAt: number
}

export interface Scanner {
  /** Reads what the text holds beyond what was read before. `ended`: nothing follows. Adds matches, by their end. */
  advance(ended: boolean, found: Match[]): void
  /** No match that is still to be told starts before this offset. */
  readonly liveFrom: number
  /** Where a start stands that has been live for too long (inspection/README.md); null while there is none. */
  readonly overflowAt: number | null
}

export interface Detector {
  /** `work` is what it may make of this and other texts; absent: what one text may cost by itself. */
  scanner(text: BufferedText, work?: WorkBudget): Scanner
  /** Whether a match has a bounded length, without which it cannot be looked for in a stream. */
  readonly bounded: boolean
  /** False of a whole text in which nothing can be found, nor be held for too long; it is read for no more than that. */
  mayMatch(text: string): boolean
}

/** The most code points of a bounded pattern or a term. */
export const maxMatchLength = 512

/**
 * How many UTF-16 units a start may stay live: twice the longest match, for pairs. Only ignorable characters and marks
 * inside a match, which count, lead beyond it.
 */
export const maxLiveUnits = 2 * maxMatchLength
