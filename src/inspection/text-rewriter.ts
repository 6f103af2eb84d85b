/** A plain text on its way through one rule. */

import { BufferedText } from './buffered-text.ts'
import type { TextFollower } from './detectors/text-matcher.ts'
import { type Finding, type InspectionRule, type Passage, type Stop, stopFor } from './rule.ts'

export class TextRewriter implements Passage {
  stop: Stop | null = null
  readonly #rule: InspectionRule
  readonly #place: string
  readonly #findings: Finding[]
  readonly #follower: TextFollower
  /** What came and was not let go. */
  readonly #held = new BufferedText()

  constructor(rule: InspectionRule, place: string, findings: Finding[]) {
    this.#rule = rule
    this.#place = place
    this.#findings = findings
    this.#follower = rule.matcher.follow(rule.work)
  }

  push(piece: string): string {
    return this.#pass(piece, false)
  }

  end(): string {
    return this.#pass('', true)
  }

  #pass(piece: string, last: boolean): string {
    if (this.stop !== null) return ''
    const { matches, safe } = this.#follower.push(piece, last)
    for (const { label, entry, start, end } of matches) {
      this.#findings.push({ rule: this.#rule, place: this.#place, label, entry, start, end })
    }
    if (!this.#rule.enforced) return piece
    const held = this.#held
    const isEmpty = held.start === held.end
    held.append(piece)
    // Most pieces hold no part of anything: they pass as they are.
    if (matches.length === 0 && isEmpty && safe === held.end) {
      held.dropBefore(safe)
      return piece
    }
    let out = ''
    for (const found of matches) {
      this.stop = stopFor(this.#rule, found)
      out += this.#take(found.start)
      if (this.stop !== null) return out
      out += this.#rule.replacement(found, this.#take(found.end))
    }
    return out + this.#take(last ? held.end : safe)
  }

  /** What is held before the offset. */
  #take(until: number): string {
    const held = this.#held
    const taken = held.slice(held.start, Math.min(until, held.end))
    held.dropBefore(Math.min(until, held.end))
    return taken
  }
}
