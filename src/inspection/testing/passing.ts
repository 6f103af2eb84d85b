/** For tests: rules over detectors, and texts passed in pieces. */
import type { TextKind } from '../../languages/reading/texts/text-slot.ts'
import { Channel } from '../channel.ts'
import type { Detector } from '../detectors/detector.ts'
import { matcherOf } from '../detectors/text-matcher.ts'
import type { Finding, InspectionRule, Stop, TextAction } from '../rule.ts'

export const ruleOf = (detector: Detector, action: TextAction, more: Partial<InspectionRule> = {}): InspectionRule => ({
  policyId: 'policy-1',
  kind: 'term-filter',
  reasonCode: 'policy.term_filter',
  matcher: matcherOf(detector),
  action,
  enforced: true,
  replacement: ({ label }) => `[${label}]`,
  ...more,
})

export interface FedText {
  text: string
  /** What went out after each piece, and at the end. */
  parts: readonly string[]
  stop: Stop | null
  findings: readonly Finding[]
}

/** Passes pieces through rules, as one text of a kind. */
export function feedPieces(
  rules: readonly InspectionRule[],
  pieces: readonly string[],
  kind: TextKind = 'content',
): FedText {
  const findings: Finding[] = []
  const channel = new Channel(rules, { kind, role: null, place: 'text' }, findings)
  const parts = pieces.map((piece) => channel.push(piece))
  parts.push(channel.end())
  return { text: parts.join(''), parts, stop: channel.stop, findings }
}

/** A text cut at these offsets, each taken modulo its length. */
export function cutAt(text: string, places: readonly number[]): string[] {
  const sorted = [...new Set(places.map((place) => place % (text.length + 1)))].toSorted((one, other) => one - other)
  const pieces: string[] = []
  let from = 0
  for (const place of [...sorted, text.length]) {
    pieces.push(text.slice(from, place))
    from = place
  }
  return pieces
}
