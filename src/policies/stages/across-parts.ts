/**
 * Finds matches that span several parts of one message: a model reads the parts as one text. Each part has been read
 * by itself before; only matches that begin in one part and end in another are found here. If one is replaced, the
 * replacement goes into the first of its parts, and into each part of which nothing else would be left.
 *
 * Parts are joined in runs of bounded length, which overlap by more than the longest match; of a long part only its
 * ends are in a run.
 */

import { maxLiveUnits } from '../../inspection/detectors/detector.ts'
import { type InspectionRule, type Stop, stopFor } from '../../inspection/rule.ts'
import type { TextKind, TextSlot } from '../../languages/reading/texts/text-slot.ts'

interface AcrossParts {
  readonly rule: InspectionRule
  readonly slots: readonly TextSlot[]
  /** A part's current text; changed by a replacement. */
  readonly changed: Map<TextSlot, string>
  /** Called for each match. */
  found(slot: TextSlot, label: string, entry: string): void
}

/** A part in a run: `from` in its own text, `start` in the run's. */
interface Piece {
  readonly slot: TextSlot
  readonly from: number
  readonly start: number
  readonly text: string
}

const runUnits = 8 * 1024

/** Reads run by run, so that other work may run between; returns why the text must be stopped, if so. */
export function* findAcrossParts(reading: AcrossParts): Generator<void, Stop | null> {
  if (reading.rule.matcher.bounded === undefined) return null
  for (const parts of messagesOf(reading)) {
    for (let first = 0; first < parts.length - 1; ) {
      const run = runFrom(parts, first, reading.changed)
      const stop = findInRun(reading, run.pieces)
      if (stop !== null) return stop
      first = run.next
      yield
    }
  }
  return null
}

const readAsOne: ReadonlySet<TextKind> = new Set(['content', 'tool_result'])

/** The parts of each message, or of a tool's result, that has several. */
function* messagesOf({ slots, rule: { reads } }: AcrossParts): Generator<readonly TextSlot[]> {
  let parts: TextSlot[] = []
  for (const slot of slots) {
    if (slot.message === undefined || slot.text === '' || !readAsOne.has(slot.kind)) continue
    if (reads?.({ kind: slot.kind, role: slot.role, place: slot.member }) === false) continue
    if (parts[0]?.message !== slot.message || parts[0].kind !== slot.kind) {
      if (parts.length > 1) yield parts
      parts = []
    }
    parts.push(slot)
  }
  if (parts.length > 1) yield parts
}

/** The run that begins with a part's end, and the part that the next one begins with. */
function runFrom(
  parts: readonly TextSlot[],
  first: number,
  changed: ReadonlyMap<TextSlot, string>,
): { pieces: readonly Piece[]; next: number } {
  const pieces: Piece[] = []
  let length = 0
  const add = (slot: TextSlot, text: string, from: number) => {
    pieces.push({ slot, from, start: length, text })
    length += text.length
  }
  for (let index = first; index < parts.length; index++) {
    const slot = parts[index]
    if (slot === undefined) break
    const text = changed.get(slot) ?? slot.text
    const from = index === first ? Math.max(0, text.length - maxLiveUnits) : 0
    const isLong = index > first && text.length > 2 * maxLiveUnits
    add(slot, isLong ? text.slice(0, maxLiveUnits) : text.slice(from), from)
    if (isLong) return { pieces, next: index }
    if (length > runUnits && index + 1 < parts.length) return { pieces, next: overlapFrom(pieces, first) }
  }
  return { pieces, next: parts.length }
}

/** The part with which the last `maxLiveUnits` of a run begin; always one further than the run's first. */
function overlapFrom(pieces: readonly Piece[], first: number): number {
  let index = pieces.length - 1
  for (let length = 0; index > 1 && length < maxLiveUnits; index--) length += pieces[index]?.text.length ?? 0
  return first + Math.max(1, index)
}

function findInRun({ rule, changed, found }: AcrossParts, pieces: readonly Piece[]): Stop | null {
  const text = pieces.map((piece) => piece.text).join('')
  if (!rule.matcher.mayMatch(text)) return null
  const { matches } = rule.matcher.follow(rule.work).push(text, true)
  for (const match of matches.toReversed()) {
    const end = Math.min(match.end, text.length)
    const over = pieces.filter((piece) => piece.start < end && match.start < piece.start + piece.text.length)
    const [head] = over
    if (head === undefined || over.length < 2) continue
    found(head.slot, match.label, match.entry)
    if (!rule.enforced) continue
    const stop = stopFor(rule, match)
    if (stop !== null) return stop
    const instead = rule.replacement(match, text.slice(match.start, end))
    for (const piece of over) {
      const said = changed.get(piece.slot) ?? piece.slot.text
      const from = piece.from + Math.max(0, match.start - piece.start)
      const to = piece.from + Math.min(piece.text.length, end - piece.start)
      const left = said.slice(0, from) + (piece === head ? instead : '') + said.slice(to)
      // Some providers refuse an empty part.
      changed.set(piece.slot, left.trim() === '' ? instead : left)
    }
  }
  return null
}
