/** Events as lines of text, and verdicts as people write them (cli/README.md). */
import { z } from 'zod'
import type { Verdict } from '../../../src/events/event.ts'
import { Failure } from '../../../src/failure.ts'
import { nearest } from '../../../src/lib/text/nearest.ts'
import type { NameBook } from '../../command/name-book.ts'
import { coloured } from '../../terminal/colour.ts'
import { dollars, printable } from '../../terminal/table.ts'

export const listedEventSchema = z.looseObject({
  event_id: z.string(),
  event_type: z.string(),
  timestamp: z.string(),
  verdict: z.string(),
  reason_code: z.string(),
  event_attribution: z
    .looseObject({ token_id: z.string().nullable(), user_id: z.string().nullable() })
    .partial()
    .optional(),
  event_cost_attribution: z.looseObject({ cost: z.number().nullable() }).optional(),
  details: z
    .looseObject({ model: z.unknown(), policy_results: z.unknown(), status: z.unknown(), latency_ms: z.unknown() })
    .partial()
    .optional(),
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
  const near = nearest(word, accepted)
  const hint = near === null ? '' : `: did you mean ${near}?`
  throw new Failure('usage', { message: `--verdict is one of ${accepted.join(', ')}${hint}` })
}

/**
 * The documented line: time, event type, verdict, model, policy. Events have no fields of the names `time`,
 * `model` and `policy`, so those print as `-`; `--wide` prints what events do hold.
 */
export const eventLine = (event: ListedEvent): string =>
  ['-', event.event_type, event.verdict, '-', '-'].map(printable).join(' ')

/** What `--wide` shows: when, what, verdict, status, latency, cost, who, model, policies and reason. */
export function wideEventLine(event: ListedEvent, nameOf: (id: string) => string, screen: Screen): string {
  const { model, status, latency_ms: latency } = event.details ?? {}
  const cost = event.event_cost_attribution?.cost
  const cells = [
    event.timestamp,
    event.event_type.padEnd(24),
    coloured(event.verdict.padEnd(10), screen),
    shown(status).padStart(3),
    (typeof latency === 'number' ? `${Math.round(latency)} ms` : '-').padStart(8),
    (typeof cost === 'number' ? dollars(cost) : '-').padStart(11),
    nameOf(whoOf(event) ?? '-').padEnd(16),
    shown(model).padEnd(20),
    policiesOf(event).map(nameOf).join(',') || '-',
    event.reason_code,
  ]
  return cells.map((cell, index) => (index === 2 ? cell : printable(cell))).join(' ')
}

const shown = (value: unknown): string => (typeof value === 'string' || typeof value === 'number' ? `${value}` : '-')

type Screen = Parameters<typeof coloured>[1]

/** The token that asked, or the person. */
const whoOf = ({ event_attribution: who }: ListedEvent): string | null => who?.token_id ?? who?.user_id ?? null

/** The ids of the policies that took part: each has a result for each of its stages. */
function policiesOf({ details }: ListedEvent): string[] {
  const { policy_results: results = [details] } = details ?? {}
  const ids = Array.isArray(results) ? results.map(policyOf).filter((id) => id !== null) : []
  return [...new Set(ids)]
}

const policyOf = (result: unknown): string | null =>
  typeof result === 'object' && result !== null && 'policy_id' in result && typeof result.policy_id === 'string'
    ? result.policy_id
    : null

/** Asks for the names that the lines of these events show. */
export async function learnNames(events: readonly ListedEvent[], names: NameBook): Promise<void> {
  const among = (field: 'token_id' | 'user_id') =>
    events.flatMap(({ event_attribution: who }) => who?.[field] ?? []).filter((id) => id !== '')
  await Promise.all([
    names.learn('/v1/tokens', among('token_id')),
    names.learn('/v1/users', among('user_id')),
    names.learn('/v1/policies', events.flatMap(policiesOf)),
  ])
}
