/** Several detectors as one: each reads the text by itself, and their matches are reported in one order. */

import type { BufferedText } from '../buffered-text.ts'
import type { WorkBudget } from '../work-budget.ts'
import type { Detector, Match, Scanner } from './detector.ts'

export const combinedDetector = (detectors: readonly Detector[]): Detector => ({
  bounded: detectors.every(({ bounded }) => bounded),
  mayMatch(text) {
    for (const detector of detectors) if (detector.mayMatch(text)) return true
    return false
  },
  scanner: (text, work) => new CombinedScanner(detectors, text, work),
})

class CombinedScanner implements Scanner {
  readonly #scanners: readonly Scanner[]

  constructor(detectors: readonly Detector[], text: BufferedText, work: WorkBudget | undefined) {
    this.#scanners = detectors.map((detector) => detector.scanner(text, work))
  }

  get liveFrom(): number {
    let live = Number.POSITIVE_INFINITY
    for (const { liveFrom } of this.#scanners) if (liveFrom < live) live = liveFrom
    return live
  }

  get overflowAt(): number | null {
    let first: number | null = null
    for (const { overflowAt } of this.#scanners) {
      if (overflowAt !== null && (first === null || overflowAt < first)) first = overflowAt
    }
    return first
  }

  advance(ended: boolean, found: Match[]): void {
    const before = found.length
    for (const scanner of this.#scanners) scanner.advance(ended, found)
    if (found.length - before < 2) return
    const ordered = found.splice(before).sort((one, other) => one.decidedAt - other.decidedAt)
    for (const match of ordered) found.push(match)
  }
}
