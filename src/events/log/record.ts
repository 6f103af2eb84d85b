/**
 * A record is one line of the event log. Most records are exchanges: the outcome of one request, with its provider
 * attempts and its policy decisions inside. The API shows them as events of their own (`expandRecord`); the log keeps
 * them together, because they share everything but a few members. Every other event is a record by itself.
 */
import { z } from 'zod'
import { type Event, eventSchema, verdicts } from '../event.ts'

/** What an event inside a record has of its own; it shares the other members with its outcome. */
const innerSchema = z.strictObject({
  event_id: z.uuid(),
  verdict: z.enum(verdicts),
  reason_code: z.string(),
  details: z.record(z.string(), z.unknown()).optional(),
  prompt_redacted: z.string().optional(),
})
export type InnerEvent = z.infer<typeof innerSchema>

export const recordSchema = eventSchema.extend({
  attempts: z.array(innerSchema).optional(),
  decisions: z.array(innerSchema).optional(),
})
export type LogRecord = z.infer<typeof recordSchema>

/** Members of a record that belong to its outcome alone. */
const ofOutcome = ['attempts', 'decisions', 'prompt_hash', 'prompt_redacted', 'metadata', 'settlements'] as const

/** The events of a record, in the order in which they happened: attempts, decisions, then the outcome. */
export function expandRecord(record: LogRecord): Event[] {
  const { attempts = [], decisions = [], ...outcome } = record
  if (attempts.length === 0 && decisions.length === 0) return [outcome]
  const shared: Event = { ...outcome }
  delete shared.details
  delete shared.event_cost_attribution
  for (const name of ofOutcome) if (name in shared) delete shared[name as keyof Event]
  const inner = (type: Event['event_type']) => (own: InnerEvent): Event => ({ ...shared, event_type: type, ...own })
  return [...attempts.map(inner('gateway.provider.attempt')), ...decisions.map(inner('decision')), outcome]
}

/** What a record can be found by, for the index of its segment. */
export interface IndexedRecord {
  /** How many events of the record have each value of each facet. */
  facets: Facet[]
  /** Identifiers by which the record is looked up: request, exchange, session. */
  ids: string[]
  events: number
}

export interface Facet {
  facet: FacetName
  value: string
  events: number
}

/** What events are filtered by; each has an index over segments. */
export const facetNames = [
  'type',
  'verdict',
  'reason',
  'gateway',
  'team',
  'token',
  'user',
  'model',
  'provider',
  'policy',
  'status',
] as const
export type FacetName = (typeof facetNames)[number]

export function indexRecord(record: LogRecord): IndexedRecord {
  const events = expandRecord(record)
  const counts = new Map<string, Facet>()
  const add = (facet: FacetName, value: unknown) => {
    if (typeof value !== 'string' || value === '') return
    const key = `${facet} ${value}`
    const known = counts.get(key)
    if (known === undefined) counts.set(key, { facet, value: value.toWellFormed(), events: 1 })
    else known.events += 1
  }
  for (const event of events) for (const facet of facetNames) for (const value of facetValues(event, facet)) add(facet, value)
  const { request_id, exchange_id, event_attribution } = record
  const ids = [request_id, exchange_id, event_attribution.session_id].filter((id) => typeof id === 'string')
  return { facets: [...counts.values()], ids, events: events.length }
}

/** The values of one facet that an event has. */
export function facetValues(event: Event, facet: FacetName): readonly unknown[] {
  const { event_attribution: attribution, details = {} } = event
  switch (facet) {
    case 'type':
      return [event.event_type]
    case 'verdict':
      return [event.verdict]
    case 'reason':
      return [event.reason_code]
    case 'gateway':
      return [attribution.gateway_id]
    case 'team':
      return [attribution.team_id]
    case 'token':
      return [attribution.token_id]
    case 'user':
      return [attribution.user_id]
    case 'model':
      return [details.model]
    case 'provider':
      return [details.provider]
    case 'policy':
      return policiesOf(details)
    case 'status':
      return [statusClass(details.status)]
  }
}

function policiesOf({ policy_id: own, policy_results: results }: NonNullable<Event['details']>): unknown[] {
  const named = Array.isArray(results) ? results.map((result) => (isObject(result) ? result.policy_id : null)) : []
  return [...new Set([own, ...named])]
}

/** `2xx`, `4xx`; null where there was no status. */
const statusClass = (status: unknown): string | null =>
  typeof status === 'number' && status >= 100 && status < 600 ? `${Math.floor(status / 100)}xx` : null

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
