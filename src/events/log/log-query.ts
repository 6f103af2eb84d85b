/** What can be asked of the log, and where an event stands in it. */
import type { Event } from '../event.ts'
import type { FacetName } from './record.ts'

/** Where an event stands: its time, the position of its record, and its place among the events of the record. */
export interface Place {
  at: number
  position: number
  index: number
}

export interface FoundEvent extends Place {
  event: Event
  /** Its JSON, where the record is that one event and is shown as it was written. */
  json?: string | undefined
}

/** An event must have one of the values. */
export interface FacetFilter {
  facet: FacetName
  values: readonly string[]
}

export interface LogQuery {
  order: 'newest' | 'oldest'
  /** Milliseconds since the epoch: from `since`, before `until`. */
  since: number
  until: number
  /** Positions are below this one. */
  ceiling: number
  /** Behind this event, in the order asked for; null for all. */
  after: Place | null
  /** Each must hold. */
  facets: readonly FacetFilter[]
  /** Ids that a record must have (of request, exchange or session). */
  ids: readonly string[]
  /** Further conditions of an event, exact for the ids too; none where absent. */
  matches?(event: Event): boolean
}
