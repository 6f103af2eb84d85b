/**
 * Limits of requests and tokens a minute (protocols section 2, rule 21). A limit is N slots. A slot that was used may be
 * used again 60 s later by the clock of the lane that holds it, and only slots that are cold, unused for 60 s, move from
 * one lane to another: so in no 60 s, on no number of gateways, are there more than N uses.
 *
 * A lane's slots of one limit. What it was granted and what it has returned are counters that only grow, as those of
 * money are: messages carry totals and receivers take the maximum, so that lost, repeated and reordered ones do no harm.
 * The slots lapse `slotTtlMs` after the last message that was answered, measured from when it was sent; the control
 * plane counts on that when it gives them to others.
 */

export const slotMinuteMs = 60_000
/** For how long a lane may use its slots without hearing of the control plane. */
export const slotTtlMs = 30_000
/** Uses are remembered in steps of this many milliseconds, each counted from its end: never too short. */
const stepMs = 100

/** So many milliseconds from when it was said, or an instant, and how many slots can be used again then. */
export type Cooling = [at: number, slots: number]

/** When as many slots can be used, of a list in order of time; null where there will not be as many. */
export function coldAt(cooling: readonly Cooling[], slots: number): number | null {
  let cold = 0
  for (const [at, count] of cooling) {
    cold += count
    if (cold >= slots) return at
  }
  return null
}

/** Some slots used in one step of time. */
export interface SlotUse {
  readonly step: { readonly until: number; count: number }
  count: number
}

export class Slots {
  granted = 0
  returned = 0
  /** The last time anybody asked for slots, monotonic milliseconds. */
  lastUsedAt: number
  readonly #steps: { until: number; count: number }[] = []
  #used = 0
  #validUntil = Number.NEGATIVE_INFINITY

  constructor(now: number) {
    this.lastUsedAt = now
  }

  /** How many slots can be used now; below zero after more was used than was reserved. */
  available(now: number): number {
    this.#cool(now)
    if (now >= this.#validUntil) {
      // Those in use are said to be returned when they are cold: whoever gave them may give them to others at once.
      this.returned = Math.max(this.returned, this.granted - this.#used)
      return 0
    }
    return this.granted - this.returned - this.#used
  }

  /** Uses slots, however many there are. */
  use(count: number, now: number): SlotUse {
    const until = Math.ceil(now / stepMs) * stepMs + slotMinuteMs
    let step = this.#steps.at(-1)
    if (step?.until !== until) {
      step = { until, count: 0 }
      this.#steps.push(step)
    }
    step.count += count
    this.#used += count
    this.lastUsedAt = now
    return { step, count }
  }

  /** Takes back some of a use that was not made, while it still counts. */
  unuse(use: SlotUse, count: number, now: number): void {
    this.#cool(now)
    const less = Math.min(count, use.count)
    use.count -= less
    if (use.step.until <= now) return
    use.step.count -= less
    this.#used -= less
  }

  /** Returns up to `count` cold slots; gives how many. */
  giveBack(count: number, now: number): number {
    const returned = Math.max(0, Math.min(count, this.available(now)))
    this.returned += returned
    return returned
  }

  /** Takes in an answer to what was sent at `sentAt`. */
  answered(granted: number, returned: number, sentAt: number): void {
    this.granted = Math.max(this.granted, granted)
    this.returned = Math.min(this.granted, Math.max(this.returned, returned))
    this.#validUntil = Math.max(this.#validUntil, sentAt + slotTtlMs)
  }

  /** When slots in use are cold again, in order; those of one second together, at the end of the last of them. */
  cooling(now: number): Cooling[] {
    this.#cool(now)
    const cooling: Cooling[] = []
    for (const { until, count } of this.#steps) {
      if (count <= 0) continue
      const last = cooling.at(-1)
      const after = Math.ceil(until - now)
      if (last !== undefined && Math.floor(last[0] / 1000) === Math.floor(after / 1000)) {
        last[0] = after
        last[1] += count
      } else cooling.push([after, count])
    }
    return cooling
  }

  #cool(now: number): void {
    let [first] = this.#steps
    while (first !== undefined && first.until <= now) {
      this.#used -= first.count
      this.#steps.shift()
      first = this.#steps[0]
    }
  }
}
