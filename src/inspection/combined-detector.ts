/** Several detectors as one: each reads the text by itself, and what they find is told in one order. */
import type { Detector, Match, Scanner } from './detector.ts'
import type { HeldText } from './held-text.ts'

export const combinedDetector = (detectors: readonly Detector[]): Detector => ({
  bounded: detectors.every(({ bounded }) => bounded),
  scanner: (text) => new CombinedScanner(detectors, text),
})

class CombinedScanner implements Scanner {
  readonly #scanners: readonly Scanner[]

  constructor(detectors: readonly Detector[], text: HeldText) {
    this.#scanners = detectors.map((detector) => detector.scanner(text))
  }

  get liveFrom(): number {
    return Math.min(...this.#scanners.map(({ liveFrom }) => liveFrom))
  }

  get overflowAt(): number | null {
    const places = this.#scanners.flatMap(({ overflowAt }) => overflowAt ?? [])
    return places.length === 0 ? null : Math.min(...places)
  }

  advance(ended: boolean, found: Match[]): void {
    const all: Match[] = []
    for (const scanner of this.#scanners) scanner.advance(ended, all)
    if (all.length > 1) all.sort((one, other) => one.decidedAt - other.decidedAt)
    found.push(...all)
  }
}
