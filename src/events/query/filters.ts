/** What events are filtered by: the parameters of queries and exports, and what each asks of the log. */
import { z } from 'zod'
import type { Database } from '../../store/open.ts'
import { type Event, latencyOf, valueOfDimension, verdicts } from '../event.ts'
import { eventTypes } from '../event-types.ts'
import type { FacetFilter, LogQuery } from '../log/log-query.ts'
import type { FacetName } from '../log/record.ts'
import type { Visibility } from '../visibility.ts'
import { type Caller, idsOfName, namedKinds } from './named-records.ts'
import { untilSchema } from './since.ts'
import { visibilityFilter } from './visibility-filter.ts'
import { withoutWithheld } from './withheld.ts'

const words = (most = 200) => z.string().min(1).max(most).optional()

export const eventFilters = {
  event_type: z.enum(eventTypes).optional(),
  gateway_id: z.uuid().optional(),
  verdict: z
    .string()
    .regex(
      new RegExp(`^(${verdicts.join('|')})(,(${verdicts.join('|')}))*$`),
      `Name one or more of ${verdicts.join(', ')}, with commas and without blanks between them`,
    )
    .optional()
    .describe(`One or more of ${verdicts.join(', ')}: deny,block`),
  until: untilSchema.optional().describe('RFC 3339, exclusive'),
  request_id: words().describe("The caller's label, which may repeat"),
  exchange_id: z.uuid().optional().describe("The gateway's own id of one request"),
  exchange_prefix: z
    .string()
    .regex(/^[0-9a-f]{8}[0-9a-f-]{0,28}$/, 'Write at least the first 8 characters of an exchange id')
    .optional()
    .describe('How an exchange id begins, at least 8 characters; bound the time too, because no index has it'),
  session_id: words(500).describe('Of a conversation of an agent, or of requests that name one'),
  client: words().describe('The known client that sent it, such as claude-code'),
  token_id: z.uuid().optional(),
  token: words().describe('Its name or id'),
  user_id: z.uuid().optional(),
  user: words(320).describe('The e-mail address or id of a person'),
  team: words().describe('Its name or id'),
  dimension: z
    .string()
    .regex(/^[a-z][a-z0-9_]{0,31}=.{1,200}$/s, 'Write the name of a dimension and a value, such as customer=acme')
    .optional()
    .describe('The value of a dimension: customer=acme'),
  model: words(500).describe('As `details.model` says it'),
  provider: words().describe('As `details.provider` says it'),
  policy: words().describe('Its name or id'),
  reason_code: words(),
  limit_id: words().describe('The id of the budget, rate or token whose limit refused the request'),
  reason_text: words().describe('Text within the reason code; capital letters count as small ones'),
  status: z.enum(['1xx', '2xx', '3xx', '4xx', '5xx']).optional().describe('The class of the HTTP status'),
  min_cost: z
    .string()
    .regex(/^\d{1,9}(\.\d{1,12})?$/, 'Write US dollars as a decimal number, such as 0.25')
    .optional()
    .describe('Requests that cost at least this much, in US dollars'),
  min_latency_ms: z
    .string()
    .regex(/^\d{1,9}$/, 'Write a whole number of milliseconds')
    .optional()
    .describe('Requests and attempts that took at least this long, in milliseconds'),
}

/** As the caller wrote them. */
export type EventFilters = { [Name in keyof typeof eventFilters]?: string | undefined }

const filterNames: readonly string[] = Object.keys(eventFilters)

/** The filters in a fixed order, to which a cursor is bound. */
export function filterValues(filters: EventFilters): (string | null)[] {
  const given = new Map(Object.entries(filters))
  return filterNames.map((name) => given.get(name) ?? null)
}

/** What an event must meet to be shown. */
export type EventConditions = Pick<LogQuery, 'facets' | 'ids'> & {
  matches(event: Event): boolean
  /** An event that matches, as the caller sees it. */
  shown(event: Event): Event
}

const facetOf = {
  ...{ event_type: 'type', gateway_id: 'gateway', verdict: 'verdict', token_id: 'token', user_id: 'user' },
  ...{ model: 'model', provider: 'provider', reason_code: 'reason', status: 'status', client: 'client' },
} as const satisfies Partial<Record<keyof EventFilters, FacetName>>

/**
 * What the filters ask for, of the events that the caller sees; `nothing` where the caller sees none. Throws
 * `invalid_parameter` for a name that the caller sees no record of.
 */
export async function conditionsOf(
  ledger: Database,
  filters: EventFilters,
  caller: Caller,
): Promise<EventConditions | 'nothing'> {
  const facets: FacetFilter[] = []
  const given = new Map(Object.entries(filters))
  for (const [name, facet] of Object.entries(facetOf)) {
    const value = given.get(name)
    if (value !== undefined) facets.push({ facet, values: facet === 'verdict' ? value.split(',') : [value] })
  }
  for (const kind of namedKinds) {
    const name = filters[kind]
    if (name !== undefined) facets.push({ facet: kind, values: await idsOfName(ledger, caller, kind, name) })
  }
  const seen = conditionsOfAll(caller.visibility)
  if (seen === 'nothing') return seen
  const { request_id, exchange_id, session_id, dimension } = filters
  const ids = [request_id, exchange_id, session_id, dimension].filter((id) => id !== undefined)
  return { ...seen, facets: [...seen.facets, ...facets], ids, matches: exactMatch(filters) }
}

/** All events that a caller sees. */
export function conditionsOfAll(visibility: Visibility): EventConditions | 'nothing' {
  const facets = visibilityFilter(visibility)
  if (facets === 'nothing') return facets
  const shown = visibility.withheld === true ? (event: Event) => event : withoutWithheld
  return { facets, ids: [], matches: () => true, shown }
}

/** The conditions that the log has no index for, and the ids, whose index is not exact. */
function exactMatch(filters: EventFilters): (event: Event) => boolean {
  const { request_id, exchange_id, exchange_prefix: prefix, session_id, limit_id } = filters
  const [dimension, value] = splitOnce(filters.dimension)
  const text = filters.reason_text?.toLowerCase()
  const cost = filters.min_cost === undefined ? undefined : Number(filters.min_cost)
  const latency = filters.min_latency_ms === undefined ? undefined : Number(filters.min_latency_ms)
  return (event) =>
    (request_id === undefined || event.request_id === request_id) &&
    (exchange_id === undefined || event.exchange_id === exchange_id) &&
    (prefix === undefined || event.exchange_id?.startsWith(prefix) === true) &&
    (session_id === undefined || event.event_attribution.session_id === session_id) &&
    (dimension === undefined || valueOfDimension(event, dimension) === value) &&
    (limit_id === undefined || refusedBy(event) === limit_id) &&
    (text === undefined || event.reason_code.toLowerCase().includes(text)) &&
    (cost === undefined || isAtLeast(event.event_cost_attribution?.cost, cost)) &&
    (latency === undefined || isAtLeast(latencyOf(event), latency))
}

const limitSchema = z.object({ id: z.string() })

/** The id of the limit that refused a request (usage/refused-limit.ts). */
const refusedBy = (event: Event): string | undefined => limitSchema.safeParse(event.details?.limit).data?.id

/** The name and the value of `customer=acme`. */
function splitOnce(text: string | undefined): [string?, string?] {
  const at = text?.indexOf('=') ?? -1
  return text === undefined || at < 0 ? [] : [text.slice(0, at), text.slice(at + 1)]
}

const isAtLeast = (value: unknown, least: number): boolean => typeof value === 'number' && value >= least
