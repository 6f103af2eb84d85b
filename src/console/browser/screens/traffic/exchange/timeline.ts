/** The life of a request in the order in which it happened, with when each part began and how long it took. */
import type { Event } from '../../../api/routes.ts'
import { detail, numberDetail, type PolicyResult, policyResults } from './event-details.ts'

export type Step = {
  /** Milliseconds since the request arrived; null where the record does not tell. */
  at: number | null
  /** Milliseconds; null for what takes no time of its own. */
  took: number | null
} & (
  | { kind: 'received' | 'reserved' | 'first token' | 'end' }
  | { kind: 'policy'; result: PolicyResult }
  | { kind: 'attempt'; attempt: Event; number: number }
)

const isOnRequest = ({ stage }: PolicyResult): boolean => stage === 'pre_request'

/** Policies on the request run one after another from its arrival on; those on the answer while it comes. */
export function timelineOf(outcome: Event, events: readonly Event[]): Step[] {
  const results = policyResults(outcome)
  const attempts = attemptsIn(events)
  const [first] = attempts
  const called = first === undefined ? null : numberDetail(first, 'start_ms')
  const token = numberDetail(outcome, 'first_token_ms')
  const whole = numberDetail(outcome, 'latency_ms')
  const asked: Step[] = []
  let at = 0
  for (const result of results.filter(isOnRequest)) {
    asked.push({ kind: 'policy', at, took: result.latency_ms, result })
    at += result.latency_ms
  }
  const isReserved = (outcome.settlements?.length ?? 0) > 0 || outcome.details?.limit !== undefined
  const took = called === null ? null : Math.max(0, called - at)
  const reserved: Step[] = isReserved ? [{ kind: 'reserved', at, took }] : []
  const provider: Step[] = attempts.map((attempt, index) => ({
    ...{ kind: 'attempt' as const, attempt, number: index + 1 },
    ...{ at: numberDetail(attempt, 'start_ms'), took: numberDetail(attempt, 'latency_ms') },
  }))
  if (token !== null) provider.push({ kind: 'first token', at: token, took: null })
  const answered = results
    .filter((result) => !isOnRequest(result))
    .map((result): Step => ({ kind: 'policy', at: null, took: result.latency_ms, result }))
  return [
    { kind: 'received', at: 0, took: null },
    ...asked,
    ...reserved,
    ...provider.toSorted((one, other) => (one.at ?? 0) - (other.at ?? 0)),
    ...answered,
    { kind: 'end', at: whole, took: null },
  ]
}

const attemptsIn = (events: readonly Event[]): Event[] =>
  events
    .filter(({ event_type }) => event_type === 'gateway.provider.attempt')
    .toSorted((one, other) => Number(detail(one, 'attempt')) - Number(detail(other, 'attempt')))
