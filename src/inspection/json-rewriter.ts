/**
 * Tool arguments on their way through one rule. They are JSON text and read as what it says: an escaped spelling
 * (`a\u0040b.co`) hides nothing, and the letters of an escape (`\nope`) are no text. Where there is no escape, what the
 * text says is the text as it stands. What is replaced is replaced so that the arguments still parse:
 *
 * - inside a string the replacement is written as JSON writes strings, and never a part of an escape is cut off;
 * - a number or word of which something was found becomes a string whole, so it is held until its end is known;
 * - a number is read as it is spelt and as it is printed (`inspection/detectors/personal-data/printed-number.ts`):
 *   what is found in either is found in it;
 * - quotes, brackets and commas inside a match stay, because they are the arguments' structure and not their text.
 */

import { BufferedText } from './buffered-text.ts'
import { printedForm } from './detectors/personal-data/printed-number.ts'
import type { Found, TextFollower } from './detectors/text-matcher.ts'
import { JsonUnits, maxScalarUnits, type Scalar } from './json-units.ts'
import { type Finding, type InspectionRule, type Passage, type Stop, stopFor } from './rule.ts'

/** A found stretch by its units. */
interface Stretch {
  start: number
  end: number
  found: Found
}

export class JsonRewriter implements Passage {
  stop: Stop | null = null
  readonly #rule: InspectionRule
  readonly #place: string
  readonly #findings: Finding[]
  readonly #follower: TextFollower
  readonly #units = new JsonUnits()
  /** Raw text that was not let go. */
  readonly #held = new BufferedText()
  /** Found and not yet passed, by their units. */
  #found: Found[] = []

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
    this.#held.append(piece)
    const units = this.#units
    const said = units.push(piece, last)
    const { matches, safe } = this.#follower.push(said, last)
    for (const found of matches) this.#found.push(found)
    for (const scalar of units.takeScalars()) this.#readPrinted(scalar)
    const certain = last || !this.#rule.enforced ? units.end : this.#wholeScalar(safe)
    const out = this.#passUntil(certain, last)
    units.dropBefore(units.unitAt(this.#held.start))
    return this.#rule.enforced ? out : piece
  }

  /** Finds what a number says otherwise than it is spelt. */
  #readPrinted({ start, end, text }: Scalar): void {
    const { matcher, work } = this.#rule
    for (const said of printedForm(text)) {
      const context = this.#units.contextOf(start)
      const printed = context + said
      if (!matcher.mayMatch(printed)) continue
      const found = matcher
        .follow(work)
        .push(printed, true)
        .matches.find((match) => match.end > context.length)
      if (found === undefined) continue
      const { label, entry } = found
      // Of a longer one the beginning is gone: nothing of what follows may go on.
      const isGone = text.length > maxScalarUnits
      const where = isGone ? ({ start: end, end: Number.POSITIVE_INFINITY, endless: true } as const) : { start, end }
      this.#found.push({ ...where, label, entry, said })
      this.#found.sort((one, other) => one.start - other.start)
    }
  }

  /** The offset, or the beginning of the number or word that it stands in or at the end of. */
  #wholeScalar(unit: number): number {
    const units = this.#units
    let start = unit
    if (start === units.end && !units.inScalar) return start
    if (start < units.end && units.kindAt(start) !== 'scalar') return start
    while (start > units.first && units.kindAt(start - 1) === 'scalar') start--
    return start
  }

  #passUntil(safe: number, last: boolean): string {
    const units = this.#units
    const stretches = this.#stretches()
    let out = ''
    let kept = 0
    for (const stretch of stretches) {
      if (stretch.start > safe || (stretch.end > safe && !this.#stops(stretch))) break
      kept++
      this.#tell(stretch)
      if (!this.#rule.enforced) continue
      this.stop = stopFor(this.#rule, stretch.found)
      out += this.#raw(stretch.start)
      if (this.stop !== null) return out
      out += this.#replaced(stretch)
    }
    const waiting = stretches[kept]
    this.#forget(stretches.slice(0, kept))
    const until = waiting === undefined ? safe : Math.min(safe, waiting.start)
    return out + (last ? this.#raw(units.end) : this.#raw(until))
  }

  #stops({ found }: Stretch): boolean {
    return this.#rule.enforced && stopFor(this.#rule, found) !== null
  }

  /**
   * All that was found, by units, overlapping ones as one; a number or word of which a part was found is in it whole.
   */
  #stretches(): Stretch[] {
    if (this.#found.length === 0) return []
    const merged: Stretch[] = []
    for (const found of this.#found) {
      const stretch = this.#withWholeScalars(found)
      const before = merged.at(-1)
      if (before !== undefined && stretch.start < before.end) {
        before.end = Math.max(before.end, stretch.end)
        if (stretch.found.endless) before.found = { ...before.found, endless: true }
      } else merged.push(stretch)
    }
    return merged
  }

  #withWholeScalars(found: Found): Stretch {
    const units = this.#units
    let [from, to] = [found.start, Math.min(found.end, units.end)]
    if (units.kindAt(from) === 'scalar') while (from > units.first && units.kindAt(from - 1) === 'scalar') from--
    if (to > from && units.kindAt(to - 1) === 'scalar') while (to < units.end && units.kindAt(to) === 'scalar') to++
    return { found, start: from, end: to }
  }

  #forget(passed: readonly Stretch[]): void {
    const last = passed.at(-1)
    if (last !== undefined) this.#found = this.#found.filter(({ start }) => start >= last.end)
  }

  #tell({ start, end, found: { label, entry } }: Stretch): void {
    const units = this.#units
    const [from, to] = [units.rawStart(start), units.rawStart(end)]
    this.#findings.push({ rule: this.#rule, place: this.#place, label, entry, start: from, end: to })
  }

  /** The raw text held before a unit. */
  #raw(unit: number): string {
    const until = this.#units.rawStart(unit)
    const held = this.#held
    if (until <= held.start) return ''
    const raw = held.slice(held.start, until)
    held.dropBefore(until)
    return raw
  }

  /** What goes out instead of a stretch; everything before it has gone. */
  #replaced({ start, end, found }: Stretch): string {
    const units = this.#units
    let out = ''
    let written = false
    const instead = this.#rule.replacement(found, found.said ?? units.slice(start, end))
    for (let unit = start; unit < end; unit++) {
      const kind = units.kindAt(unit)
      if (kind === 'structure') {
        out += this.#raw(unit + 1)
        continue
      }
      this.#raw(unit + 1)
      if (kind === 'content') {
        if (!written) out += units.plain ? instead : JSON.stringify(instead).slice(1, -1)
        written = true
      } else if (units.kindAt(unit - 1) !== 'scalar' || unit === start) {
        out += JSON.stringify(instead)
        written = true
      }
    }
    return out
  }
}
