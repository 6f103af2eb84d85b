/** Events that arrive while a page of them is shown. */
import type { Event } from '../../api/routes.ts'

export interface EventPage {
  events: Event[]
  next_cursor: string | null
  /** The cursor of what arrives from now on. */
  follow: string
}

/** A page with what arrived since. What is older than the last of a page belongs to the next page. */
export function withArrivals(page: EventPage, { events, follow }: EventPage): EventPage {
  const last = page.next_cursor === null ? undefined : page.events.at(-1)?.timestamp
  const arrived = events.filter(({ timestamp }) => last === undefined || timestamp >= last)
  const byTime = [...arrived.toReversed(), ...page.events].toSorted((one, other) =>
    one.timestamp < other.timestamp ? 1 : one.timestamp > other.timestamp ? -1 : 0,
  )
  return { ...page, events: byTime, follow }
}
