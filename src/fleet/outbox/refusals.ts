/**
 * Keeps the refusals of callers who showed no valid token from taking the room of real work: anybody can cause them, as
 * many as the network carries. So many a second are recorded each; of what comes beyond, or while the outbox is half
 * full, one event in a while says how many there were and why.
 */
import type { Event } from '../../events/event.ts'
import { timestamp } from '../../lib/clock.ts'

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
  /** One of the skipped. */
  #sample: Event | null = null

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
    this.#skip(last, last.reason_code, 1)
    return []
  }

  /**
   * Has one event recorded for all that were skipped since the last, `at` that time; where it cannot be, the next
   * stands for them. None where none was skipped or, before the `end`, it is too soon.
   */
  async sum(at: number, isEnd: boolean, record: (event: Event) => Promise<void>): Promise<void> {
    const now = this.#monotonic()
    const [sample, skipped] = [this.#sample, this.#skipped]
    if (sample === null || !(isEnd || now - this.#summaryAt >= this.#limits.summaryMs)) return
    this.#skipped = new Map()
    this.#sample = null
    this.#summaryAt = now
    try {
      await record(summaryOf(sample, skipped, at))
    } catch (thrown) {
      for (const [reason, count] of skipped) this.#skip(sample, reason, count)
      throw thrown
    }
  }

  #skip(event: Event, reason: string, count: number): void {
    this.#skipped.set(reason, (this.#skipped.get(reason) ?? 0) + count)
    this.#sample ??= event
  }
}

function summaryOf(
  { exchange_id: _exchange, ...event }: Event,
  skipped: Iterable<[string, number]>,
  at: number,
): Event {
  return {
    ...event,
    event_id: Bun.randomUUIDv7(),
    event_type: 'auth.refused',
    timestamp: timestamp(at),
    request_id: null,
    verdict: 'deny',
    reason_code: 'refusals.summed',
    details: { refused: Object.fromEntries(skipped) },
  }
}
