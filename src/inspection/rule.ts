/**
 * One policy's text rule, applied to a text as it comes: block, redact, escalate or rewrite. What goes out is what came,
 * but for what was found.
 */
import type { TextKind } from '../languages/reading/texts/text-slot.ts'
import type { Found, TextMatcher } from './detectors/text-matcher.ts'
import type { WorkBudget } from './work-budget.ts'

export type TextAction = 'block' | 'redact' | 'escalate' | 'rewrite'

export interface InspectionRule {
  readonly policyId: string
  readonly kind: string
  readonly reasonCode: string
  readonly matcher: TextMatcher
  readonly action: TextAction
  /** What is only monitored is told and not applied. */
  readonly enforced: boolean
  /** The texts it reads; absent: all. `place` is the outermost member of a whole text, or a stream's channel. */
  readonly reads?: (text: { kind: TextKind; role: string | null; place: string }) => boolean
  /** What it may make of work, over all its texts; absent: each text by itself. */
  readonly work?: WorkBudget
  /** What takes a found stretch's place. */
  readonly replacement: (found: Found, text: string) => string
}

/** What a rule found, without the text itself. Offsets are in the text that the rule got. */
export interface Finding {
  readonly rule: InspectionRule
  readonly label: string
  readonly entry: string
  readonly start: number
  readonly end: number
  /** The channel or slot it is in. */
  readonly place: string
}

/** Why nothing more may go out. */
export interface Stop {
  readonly rule: InspectionRule
  readonly verdict: 'block' | 'escalate'
  readonly entry: string
}

/** A text on its way through one or several rules. */
export interface Passage {
  /** Takes the next piece; gives what may go out. */
  push(piece: string): string
  /** Nothing follows: gives the rest. */
  end(): string
  /** Set where the text must not go on. */
  readonly stop: Stop | null
}

/** Whether a stretch that an enforced rule found ends the text. */
export function stopFor(rule: InspectionRule, found: Found): Stop | null {
  if (rule.action === 'block' || rule.action === 'escalate') {
    return { rule, verdict: rule.action, entry: found.entry }
  }
  return found.endless === true ? { rule, verdict: 'block', entry: found.entry } : null
}
