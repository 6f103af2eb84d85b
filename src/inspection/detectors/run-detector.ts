/**
 * Finds texts that begin with a pattern and continue, at any length, with characters of a set: private keys, signed
 * tokens. They are reported in segments of bounded length, so that nothing has to be held until the end.
 */

import type { BufferedText } from '../buffered-text.ts'
import { type CharacterSet, contains } from '../regex/character-set.ts'
import { type PatternSource, patternDetector } from '../regex/pattern-detector.ts'
import { type Detector, type Match, maxLiveUnits, type Scanner } from './detector.ts'

interface Run {
  readonly openings: readonly PatternSource[]
  /** The characters of the continuation, in UTF-16 units. */
  readonly over: CharacterSet
  /** The form of its last line, tested at each `-`; absent if it ends with the set. */
  readonly closing?: RegExp
}

/** How much of the text before a `-` is kept to test for the closing line. */
const closingUnits = 96

export function runDetector({ openings: sources, over, closing }: Run): Detector {
  const openings = patternDetector(sources, { streaming: true, paramOf: () => 'config' })
  return {
    bounded: true,
    mayMatch: openings.mayMatch,
    scanner: (text, work) =>
      new RunScanner(openings.scanner(text, work), text, { openings: sources, over, ...(closing && { closing }) }),
  }
}

class RunScanner implements Scanner {
  readonly #openings: Scanner
  readonly #text: BufferedText
  readonly #run: Run
  #position = 0
  /** The start of the current segment; null outside of a run. */
  #segment: number | null = null
  #opening: Match | null = null
  readonly #found: Match[] = []
  #tail = ''

  constructor(openings: Scanner, text: BufferedText, run: Run) {
    this.#openings = openings
    this.#text = text
    this.#run = run
  }

  get overflowAt(): number | null {
    return this.#openings.overflowAt
  }

  get liveFrom(): number {
    return Math.min(this.#openings.liveFrom, this.#segment ?? Number.POSITIVE_INFINITY)
  }

  advance(ended: boolean, found: Match[]): void {
    if (this.#segment !== null) this.#read(ended, found)
    this.#openings.advance(ended, this.#found)
    if (this.#found.length === 0) return
    for (const opening of this.#found.splice(0)) {
      if (opening.start < this.#position) continue
      this.#opening = opening
      this.#segment = opening.start
      this.#position = opening.end
      this.#tail = ''
      this.#read(ended, found)
    }
  }

  #read(ended: boolean, found: Match[]): void {
    const { over, closing } = this.#run
    const end = this.#text.end
    while (this.#segment !== null && this.#position < end) {
      const unit = this.#text.unitAt(this.#position)
      if (!contains(over, unit)) {
        this.#tell(found)
        return
      }
      this.#position++
      if (closing !== undefined) {
        this.#tail = (this.#tail + String.fromCharCode(unit)).slice(-closingUnits)
        if (unit === 0x2d && closing.test(this.#tail)) {
          this.#tell(found)
          return
        }
      }
      if (this.#position - this.#segment >= maxLiveUnits) {
        this.#tell(found)
        this.#segment = this.#position
      }
    }
    if (ended) this.#tell(found, 1)
  }

  #tell(found: Match[], beyond = 0): void {
    const { label = '', entry = '', start: opened = 0 } = this.#opening ?? {}
    const start = this.#segment ?? opened
    this.#segment = null
    const end = this.#position
    if (start < end) found.push({ start, end, label, entry, decidedAt: end + beyond })
  }
}
