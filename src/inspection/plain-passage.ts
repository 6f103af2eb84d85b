/** A plain text on its way through one rule. */
import type { TextFollower } from './follower.ts'
import { type Finding, type InspectionRule, type Passage, type Stop, stopFor } from './rule.ts'

export class PlainPassage implements Passage {
  stop: Stop | null = null
  readonly #rule: InspectionRule
  readonly #place: string
  readonly #findings: Finding[]
  readonly #follower: TextFollower
  /** What came and was not let go. */
  #held = ''
  /** The offset of its first unit. */
  #start = 0

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
    // Most pieces hold no part of anything: they pass as they are.
    if (matches.length === 0 && this.#held === '' && safe === this.#start + piece.length) {
      this.#start = safe
      return piece
    }
    this.#held += piece
    let out = ''
    for (const found of matches) {
      this.stop = stopFor(this.#rule, found)
      out += this.#take(found.start)
      if (this.stop !== null) return out
      out += this.#rule.replacement(found, this.#take(found.end))
    }
    return out + this.#take(last ? this.#start + this.#held.length : safe)
  }

  /** What is held before the offset. */
  #take(until: number): string {
    const taken = this.#held.slice(0, until - this.#start)
    this.#held = this.#held.slice(until - this.#start)
    this.#start = until
    return taken
  }
}
