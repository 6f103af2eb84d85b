/**
 * Pages of events. A page goes by time: newest or oldest first, and by position within a millisecond. Its cursor keeps
 * where the log ended when the first page was read, so that what arrives meanwhile moves nothing. Every answer also has
 * a cursor of the second kind, `follow`: it goes on by position, which shows each event that arrives after the first
 * page once, however late it comes.
 *
 * A page whose filters match rarely ends after `pageMilliseconds` with what was found, and with a cursor.
 */
import { z } from 'zod'
import { openCursor, sealCursor } from '../../api/cursor.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Database } from '../../store/open.ts'
import { logOf } from '../engine/log-of.ts'
import type { Event } from '../event.ts'
import type { Place } from '../log/log-query.ts'
import { isMatch } from '../log/read-log.ts'
import { eventsOfRecord } from '../log/record-events.ts'
import { readLogHead } from '../log/segment-rows.ts'
import { type EventConditions, type EventFilters, filterValues } from './filters.ts'

export const orders = ['newest', 'oldest'] as const

interface EventPage {
  events: Event[]
  /** Null where nothing more is there. */
  next_cursor: string | null
  follow: string
}

interface PageOptions {
  /** Includes `since` as the caller wrote it, because a cursor is bound to all filters. */
  filters: EventFilters & { since: string }
  /** The instant of `filters.since`, in milliseconds since the epoch; a cursor has its own. */
  since: number
  order: (typeof orders)[number]
  limit: number
  cursor: string | undefined
  conditions: EventConditions | 'nothing'
  clock: Pick<Clock, 'monotonic'>
}

/** How long one page is looked for. */
const pageMilliseconds = 1000
/** The largest instant in either direction, in milliseconds (ECMA-262, Time Values). */
const lastInstant = 8.64e15
const instant = z.number().int().min(-lastInstant).max(lastInstant)
const count = z.number().int().min(0)
const position = z.number().int().min(1)

const followCursor = z.strictObject({ order: z.literal('arrival'), since: instant, position, index: count })
type FollowCursor = z.infer<typeof followCursor>

/** Throws `invalid_cursor` for a cursor of another query. */
export async function readEventPage(ledger: Database, options: PageOptions): Promise<EventPage> {
  const query = [options.filters.since, ...filterValues(options.filters)]
  const pageCursor = z.strictObject({
    ...{ order: z.literal(options.order), since: instant, ceiling: position },
    ...{ at: instant, position: count, index: count },
  })
  const cursor =
    options.cursor === undefined ? null : openCursor(options.cursor, query, z.union([pageCursor, followCursor]))
  if (cursor?.order === 'arrival') {
    const { events, more, ...end } = await readArrived(ledger, cursor, options)
    const follow = sealCursor(end, query)
    return { events, next_cursor: more ? follow : null, follow }
  }
  const since = cursor?.since ?? options.since
  const ceiling = cursor?.ceiling ?? (await readLogHead(ledger)).next
  const { events, reached } = await readPage(ledger, { since, ceiling, after: cursor }, options)
  return {
    events,
    next_cursor: reached === null ? null : sealCursor({ order: options.order, since, ceiling, ...reached }, query),
    follow: sealCursor({ order: 'arrival', since, position: ceiling, index: 0 }, query),
  }
}

const untilOf = ({ filters: { until } }: PageOptions): number =>
  until === undefined ? Number.MAX_SAFE_INTEGER : Date.parse(until)

/** By time. `reached`: where the next page goes on; null where there is none. */
async function readPage(
  ledger: Database,
  window: { since: number; ceiling: number; after: Place | null },
  options: PageOptions,
): Promise<{ events: Event[]; reached: Place | null }> {
  const { order, limit, conditions, clock } = options
  const events: Event[] = []
  if (conditions === 'nothing') return { events, reached: null }
  const ends = clock.monotonic() + pageMilliseconds
  let last: Place | null = null
  for await (const part of logOf(ledger).parts({ ...window, ...conditions, order, until: untilOf(options) })) {
    for (const { event, at, position, index } of part.events) {
      if (events.length === limit) return { events, reached: last }
      events.push(conditions.shown(event))
      last = { at, position, index }
    }
    if (clock.monotonic() >= ends) return { events, reached: part.reached }
  }
  return { events, reached: null }
}

/** By position. `index`: so many events of the record at `position` have been given. */
async function readArrived(
  ledger: Database,
  from: FollowCursor,
  options: PageOptions,
): Promise<FollowCursor & { events: Event[]; more: boolean }> {
  const { limit, conditions, clock } = options
  const { order, since } = from
  const events: Event[] = []
  const { next } = await readLogHead(ledger)
  const whole = { events, more: false, order, since, position: next, index: 0 }
  if (conditions === 'nothing') return whole
  const until = untilOf(options)
  const ends = clock.monotonic() + pageMilliseconds
  for await (const record of logOf(ledger).records({ from: from.position, before: next })) {
    const { position, at } = record
    const isInWindow = at >= since && at < until
    for (const [index, { event }] of isInWindow ? eventsOfRecord(record).entries() : []) {
      if (position === from.position && index < from.index) continue
      if (record.damaged === undefined && !isMatch(event, conditions)) continue
      if (events.length === limit) return { events, more: true, order, since, position, index }
      events.push(conditions.shown(event))
    }
    if (clock.monotonic() >= ends && position + 1 < next) {
      return { events, more: true, order, since, position: position + 1, index: 0 }
    }
  }
  return whole
}
