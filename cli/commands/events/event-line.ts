/** Events as lines of text, and verdicts as people write them (cli/README.md). */
import { z } from 'zod'
import type { Verdict } from '../../../src/events/event.ts'
import { Failure } from '../../../src/failure.ts'
import { printable } from '../../terminal/table.ts'

export const listedEventSchema = z.looseObject({
  event_id: z.string(),
  event_type: z.string(),
  timestamp: z.string(),
  verdict: z.string(),
  reason_code: z.string(),
  details: z.looseObject({ model: z.unknown(), policy_results: z.unknown() }).partial().optional(),
})
export type ListedEvent = z.infer<typeof listedEventSchema>

export const eventPageSchema = z.looseObject({
  events: z.array(listedEventSchema),
  next_cursor: z.string().nullable(),
  follow: z.string(),
})

/** Each stored verdict with the other word for it that is accepted. */
const verdictWords: Readonly<Record<Verdict, string | null>> = {
  allow: 'allowed',
  block: 'blocked',
  deny: 'denied',
  redact: 'redacted',
  rewrite: 'rewritten',
  escalate: 'escalated',
  approval_required: null,
  pending: null,
  rate_limit: 'rate_limited',
  error: null,
}

/** The stored verdict that a word means, in any case of letters. Throws `usage`, listing what is accepted. */
export function storedVerdict(word: string): string {
  const wanted = word.toLowerCase()
  for (const [stored, other] of Object.entries(verdictWords)) if (wanted === stored || wanted === other) return stored
  const accepted = Object.entries(verdictWords).flatMap(([stored, other]) => (other ? [stored, other] : [stored]))
  throw new Failure('usage', { message: `--verdict is one of ${accepted.join(', ')}` })
}

/**
 * The documented line: time, event type, verdict, model, policy. Events have no fields of the names `time`,
 * `model` and `policy`, so those print as `-`; `--wide` prints what events do hold.
 */
export const eventLine = (event: ListedEvent): string =>
  ['-', event.event_type, event.verdict, '-', '-'].map(printable).join(' ')

/** Timestamp, event type, verdict, model, policy and reason. */
export function wideEventLine(event: ListedEvent): string {
  const { model, policy_results: results = [event.details] } = event.details ?? {}
  // A policy has a result for each of its stages.
  const policies = new Set(Array.isArray(results) ? results.map(policyOf).filter((id) => id !== null) : [])
  const cells = [
    event.timestamp,
    event.event_type.padEnd(24),
    event.verdict.padEnd(10),
    typeof model === 'string' ? model : '-',
    [...policies].join(',') || '-',
    event.reason_code,
  ]
  return cells.map(printable).join(' ')
}

const policyOf = (result: unknown): string | null =>
  typeof result === 'object' && result !== null && 'policy_id' in result && typeof result.policy_id === 'string'
    ? result.policy_id
    : null
