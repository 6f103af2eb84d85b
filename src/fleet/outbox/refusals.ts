/**
 * Keeps refusals of callers without a valid token from using up the space of real work, since anybody can cause any
 * number of them. A few a second are recorded one by one. The rest, and all while the outbox is half full, are summed
 * up in an event with their number and reasons at intervals.
 */
import type { LogRecord } from '../../events/log/record.ts'
import { timestamp } from '../../lib/clock.ts'

export interface RefusalLimits {
  /** How many are recorded one by one in a second. */
  eachSecond: number
  /** The shortest time between two summary events. */
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
  /** An example of the skipped ones. */
  #sample: LogRecord | null = null

  constructor(monotonic: () => number, limits: RefusalLimits = refusalLimits) {
    this.#monotonic = monotonic
    this.#limits = limits
  }

  /** Whether to record this refusal now. `scarce` means that there is room for summaries only. */
  admit(record: LogRecord, scarce: () => boolean): boolean {
    // Of a known caller, or not caused by a caller.
    if (record.event_attribution.token_id !== null || record.request_id === null) return true
    const now = this.#monotonic()
    if (now - this.#second >= secondMs) {
      this.#second = now
      this.#recorded = 0
    }
    if (this.#recorded < this.#limits.eachSecond && !scarce()) {
      this.#recorded += 1
      return true
    }
    this.#skip(record, record.reason_code, 1)
    return false
  }

  /**
   * Records one summary event `at` that time for all refusals skipped since the last. If that fails, the next one
   * includes them. Records nothing if none was skipped or, before the `end`, if it is too early.
   */
  async sum(at: number, isEnd: boolean, record: (event: LogRecord) => Promise<void>): Promise<void> {
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

  #skip(event: LogRecord, reason: string, count: number): void {
    this.#skipped.set(reason, (this.#skipped.get(reason) ?? 0) + count)
    this.#sample ??= event
  }
}

function summaryOf(
  { exchange_id: _exchange, attempts: _attempts, decisions: _decisions, ...event }: LogRecord,
  skipped: Iterable<[string, number]>,
  at: number,
): LogRecord {
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
