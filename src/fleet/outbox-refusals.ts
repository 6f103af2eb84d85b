/**
 * Keeps the refusals of callers who showed no valid token from taking the room of real work: anybody can cause them, as
 * many as the network carries. So many a second are recorded each; of what comes beyond, or while the outbox is half
 * full, one event in a while says how many there were and why.
 */
import type { Event } from '../events/event.ts'

export interface RefusalLimits {
  /** Recorded one by one in a second. */
  eachSecond: number
  /** The least time between two events that stand for several refusals. */
  summaryMs: number
}

export const refusalLimits: RefusalLimits = { eachSecond: 100, summaryMs: 10_000 }

const secondMs = 1000

export class UnknownCallers {
  readonly #limits: RefusalLimits
  readonly #monotonic: () => number
  #second = Number.NEGATIVE_INFINITY
  #recorded = 0
  #summaryAt = Number.NEGATIVE_INFINITY
  #skipped = new Map<string, number>()
  /** The latest of the skipped. */
  #latest: Event | null = null

  constructor(monotonic: () => number, limits: RefusalLimits = refusalLimits) {
    this.#monotonic = monotonic
    this.#limits = limits
  }

  /**
   * What is to be recorded of the events of one request: themselves, or for now none. `scarce` tells whether there is
   * room for summaries only.
   */
  admit(events: readonly Event[], scarce: () => boolean): readonly Event[] {
    const last = events.at(-1)
    if (last === undefined || events.some(({ event_attribution: { token_id } }) => token_id !== null)) return events
    // Not about a caller at all.
    if (last.request_id === null) return events
    const now = this.#monotonic()
    if (now - this.#second >= secondMs) {
      this.#second = now
      this.#recorded = 0
    }
    if (this.#recorded < this.#limits.eachSecond && !scarce()) {
      this.#recorded += 1
      return events
    }
    this.#skipped.set(last.reason_code, (this.#skipped.get(last.reason_code) ?? 0) + 1)
    this.#latest = last
    return []
  }

  /** One event for all that were skipped since the last; null where there are none, or, before the `end`, it is too soon. */
  sum(isEnd: boolean): Event | null {
    const now = this.#monotonic()
    const isDue = isEnd || now - this.#summaryAt >= this.#limits.summaryMs
    if (this.#latest === null || !isDue) return null
    const { exchange_id: _exchange, ...event } = this.#latest
    const refused = Object.fromEntries(this.#skipped)
    this.#skipped = new Map()
    this.#latest = null
    this.#summaryAt = now
    return {
      ...event,
      event_id: Bun.randomUUIDv7(),
      event_type: 'auth.refused',
      request_id: null,
      verdict: 'deny',
      reason_code: 'refusals.summed',
      details: { refused },
    }
  }
}
