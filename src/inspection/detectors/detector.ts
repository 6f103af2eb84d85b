/**
 * A detector finds something in text. It is compiled once for a policy; a scanner is its state in one text, fed piece
 * by piece. The same scanner reads whole texts in one piece, so both ways always find the same.
 *
 * Offsets are UTF-16 units of the source text, not of its folded form.
 */
import type { BufferedText } from '../buffered-text.ts'
import type { WorkBudget } from '../work-budget.ts'

/** A stretch of the source text that matched. */
export interface Match {
  readonly start: number
  readonly end: number
  /** The type, as placeholders and events show it: `EMAIL`. */
  readonly label: string
  /** The entry of the policy that found it, never the text itself: `terms[3]`. */
  readonly entry: string
  /** How far the text had been read when the match was known: it orders the matches of several scanners of one text. */
  readonly decidedAt: number
}

export interface Scanner {
  /**
   * Reads the part of the text that was not read before. `ended`: nothing follows. Adds matches, ordered by their end.
   */
  advance(ended: boolean, found: Match[]): void
  /** No later match starts before this offset. */
  readonly liveFrom: number
  /** The offset of a start that has been live for too long (inspection/README.md); null while there is none. */
  readonly overflowAt: number | null
}

export interface Detector {
  /** `work` is the budget for this and other texts; absent: the limit for one text alone. */
  scanner(text: BufferedText, work?: WorkBudget): Scanner
  /** Whether a match has a bounded length. A detector without a bound cannot be used in a stream. */
  readonly bounded: boolean
  /**
   * False if nothing can be found in this whole text, and no start can stay live too long; the text is then not
   * scanned.
   */
  mayMatch(text: string): boolean
}

/** The most code points of a bounded pattern or a term. */
export const maxMatchLength = 512

/**
 * How many UTF-16 units a start may stay live: twice the longest match, because of surrogate pairs. Ignorable
 * characters and marks inside a match count, and only they can exceed it.
 */
export const maxLiveUnits = 2 * maxMatchLength
