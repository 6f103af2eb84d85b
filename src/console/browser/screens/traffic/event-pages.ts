/** Pages of events, newest first, and how a live one is kept up to date. */
import { api } from '../../api/routes.ts'
import { learnNames } from '../record-name.tsx'
import { type EventPage, withArrivals } from './arrivals.ts'

export type EventQuery = { since: string; limit: number } & Readonly<Record<string, string | number | null>>

/** One answer. It names what its events mention, which the caller may not be able to read by itself. */
async function readAnswer(query: EventQuery, signal: AbortSignal): Promise<EventPage> {
  const { names = [], ...page } = await api('GET /v1/events', { query: { ...query, names: 'true' }, signal })
  learnNames(names)
  return page
}

/** A whole page: the API ends one early that takes it long, and is asked for the rest. */
export async function readEvents(query: EventQuery, signal: AbortSignal): Promise<EventPage> {
  const page = await readAnswer(query, signal)
  while (page.next_cursor !== null && page.events.length < query.limit) {
    const rest = { ...query, cursor: page.next_cursor, limit: query.limit - page.events.length }
    const { events, next_cursor } = await readAnswer(rest, signal)
    page.events.push(...events)
    page.next_cursor = next_cursor
  }
  return page
}

/** So long arrivals are added to a page before it is read anew: the window moves on, and the page grows. */
const renewedAfterMilliseconds = 60_000

/** Reads a page, and then only what arrived since; a late event comes where its timestamp belongs. */
export class LiveEvents {
  #key = ''
  #readAt = 0
  #page: EventPage | null = null

  async read(query: EventQuery, signal: AbortSignal): Promise<EventPage> {
    const key = JSON.stringify(query)
    const known = this.#page
    if (known !== null && key === this.#key && Date.now() - this.#readAt < renewedAfterMilliseconds) {
      const arrived = await readAnswer({ ...query, cursor: known.follow }, signal)
      if (arrived.next_cursor === null) {
        this.#page = withArrivals(known, arrived)
        return this.#page
      }
    }
    this.#page = await readEvents(query, signal)
    this.#key = key
    this.#readAt = Date.now()
    return this.#page
  }
}
