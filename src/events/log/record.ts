/**
 * A record is one line of the event log. Most records are exchanges: the outcome of one request, with its provider
 * attempts and its policy decisions inside. The API shows these as events of their own (`expandRecord`). The log keeps
 * them together, because they share everything but a few members. Every other event is a record by itself.
 */
import { z } from 'zod'
import { type Event, eventSchema, verdicts } from '../event.ts'

/** What an event inside a record has of its own; it shares the other members with its outcome. */
export const innerEventSchema = z.object({
  event_id: z.uuid(),
  verdict: z.enum(verdicts),
  reason_code: z.string(),
  details: z.record(z.string(), z.unknown()).optional(),
})
export type InnerEvent = z.infer<typeof innerEventSchema>

export const recordSchema = eventSchema.extend({
  attempts: z.array(innerEventSchema).optional(),
  decisions: z.array(innerEventSchema).optional(),
})
export type LogRecord = z.infer<typeof recordSchema>

/** How many events a record is shown as. */
export const eventsOf = ({ attempts, decisions }: LogRecord): number =>
  1 + (attempts?.length ?? 0) + (decisions?.length ?? 0)

/**
 * The events of a record, in the order in which they happened: attempts, decisions, then the outcome. A decision that
 * queued an escalation shows the prompt, because a person decides on it.
 */
export function expandRecord(record: LogRecord): Event[] {
  const { attempts = [], decisions = [], ...outcome } = record
  if (attempts.length === 0 && decisions.length === 0) return [outcome]
  return [
    ...attempts.map((attempt) => innerEvent(outcome, 'gateway.provider.attempt', attempt)),
    ...decisions.map((decision) => innerEvent(outcome, 'decision', decision)),
    outcome,
  ]
}

/**
 * The members that it shares with its outcome are copied by name: exports make many events, and copying all members takes
 * three times as long.
 */
function innerEvent(outcome: Event, type: Event['event_type'], own: InnerEvent): Event {
  const event: Event = {
    event_id: own.event_id,
    event_type: type,
    request_id: outcome.request_id,
    timestamp: outcome.timestamp,
    verdict: own.verdict,
    reason_code: own.reason_code,
    config_version: outcome.config_version,
    event_attribution: outcome.event_attribution,
  }
  if (outcome.exchange_id !== undefined) event.exchange_id = outcome.exchange_id
  if (outcome.trace_id !== undefined) event.trace_id = outcome.trace_id
  if (outcome.config_id !== undefined) event.config_id = outcome.config_id
  if (outcome.environment !== undefined) event.environment = outcome.environment
  if (own.details !== undefined) event.details = own.details
  const prompt = outcome.prompt_redacted
  if (prompt !== undefined && own.details?.escalation !== undefined) event.prompt_redacted = prompt
  return event
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
  'client',
] as const
export type FacetName = (typeof facetNames)[number]

/** What an event has of its own, beside what it shares with the other events of its record. */
type OwnPart = Pick<Event, 'event_type' | 'verdict' | 'reason_code' | 'details'>

/** Longer values, and those with a NUL, which SQLite cuts a text at, are not indexed: no query finds one. */
const longestValue = 500
const isIndexed = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.length <= longestValue && !value.includes('\0')

/** Calls `visit` with each value of each facet that a record's events have, and with how many of them have it. */
export function visitFacets(record: LogRecord, visit: (facet: FacetName, value: string, events: number) => void): void {
  const { event_attribution: who, attempts, decisions } = record
  const events = eventsOf(record)
  const shared = (facet: FacetName, value: string | null | undefined) => {
    if (isIndexed(value)) visit(facet, value, events)
  }
  shared('gateway', who.gateway_id)
  shared('team', who.team_id)
  shared('token', who.token_id)
  shared('user', who.user_id)
  shared('client', who.client)
  const own = (facet: OwnFacet, value: unknown) => {
    if (isIndexed(value)) visit(facet, value, 1)
  }
  visitOwn(record, own)
  for (const { verdict, reason_code, details } of attempts ?? []) {
    visitOwn({ event_type: 'gateway.provider.attempt', verdict, reason_code, details }, own)
  }
  for (const { verdict, reason_code, details } of decisions ?? []) {
    visitOwn({ event_type: 'decision', verdict, reason_code, details }, own)
  }
}

type OwnFacet = Exclude<FacetName, 'gateway' | 'team' | 'token' | 'user' | 'client'>

/** Whether an event has one of these values of a facet. */
export function hasFacet(event: Event, facet: FacetName, values: readonly string[]): boolean {
  return facetValues(event, facet).some((value) => typeof value === 'string' && values.includes(value))
}

/** What an event has of a facet; text is what counts. */
export function facetValues(event: Event, facet: FacetName): readonly unknown[] {
  const { event_attribution: who } = event
  switch (facet) {
    case 'gateway':
      return [who.gateway_id]
    case 'team':
      return [who.team_id]
    case 'token':
      return [who.token_id]
    case 'user':
      return [who.user_id]
    case 'client':
      return [who.client]
    default:
      return ownValues(event, facet)
  }
}

function ownValues({ event_type, verdict, reason_code, details }: OwnPart, facet: OwnFacet): readonly unknown[] {
  switch (facet) {
    case 'type':
      return [event_type]
    case 'verdict':
      return [verdict]
    case 'reason':
      return [reason_code]
    case 'model':
      return [details?.model]
    case 'provider':
      return [details?.provider]
    case 'policy':
      return policiesOf(details)
    case 'status':
      return [statusClass(details?.status)]
  }
}

/** Calls `visit` with all of `ownValues`, of each facet; ingest does so for each event, and lists would cost it more. */
function visitOwn(
  { event_type, verdict, reason_code, details }: OwnPart,
  visit: (facet: OwnFacet, value: unknown) => void,
): void {
  visit('type', event_type)
  visit('verdict', verdict)
  visit('reason', reason_code)
  if (details === undefined) return
  visit('model', details.model)
  visit('provider', details.provider)
  for (const policy of policiesOf(details)) visit('policy', policy)
  visit('status', statusClass(details.status))
}

const noPolicies: readonly unknown[] = []

/** The policies that a decision, an outcome or a change of a policy names. */
function policiesOf(details: Event['details']): readonly unknown[] {
  if (details === undefined) return noPolicies
  const { policy_id: own, policy_results: results } = details
  if (!Array.isArray(results)) return own === undefined ? noPolicies : [own]
  const policies = new Set([own])
  for (const result of results) if (isObject(result)) policies.add(result.policy_id)
  return [...policies]
}

const statusClasses = ['1xx', '2xx', '3xx', '4xx', '5xx'] as const

/** `2xx`, `4xx`; null where there was no status. */
const statusClass = (status: unknown): string | null =>
  typeof status === 'number' ? (statusClasses[Math.floor(status / 100) - 1] ?? null) : null

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * The identifiers that a record is looked up by: request, exchange and session, or its own where it is no exchange; and
 * its values of dimensions, as `customer=acme`.
 */
export function visitIds(record: LogRecord, visit: (id: string) => void): void {
  const { request_id: request, exchange_id: exchange, event_attribution: who } = record
  if (request !== null && request !== '') visit(request)
  if (exchange === undefined) visit(record.event_id)
  else visit(exchange)
  if (who.session_id !== null && who.session_id !== '') visit(who.session_id)
  if (who.dimensions !== undefined) {
    for (const [name, value] of Object.entries(who.dimensions)) visit(`${name}=${value}`)
  }
}
