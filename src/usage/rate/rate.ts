/**
 * Limits of requests and tokens a minute (usage/rate/README.md). A limit has N slots. A used slot may be used again 60
 * s later by the clock of the worker that holds it, and only cold slots, unused for 60 s, move between workers. So
 * there are never more than N uses in 60 s, on any number of gateways.
 *
 * This is what one worker holds of one limit. `granted` and `returned` only grow: messages carry totals and receivers
 * take the maximum, so lost, repeated and reordered messages do no harm. The slots lapse `slotTtlMs` after the last
 * answered message, measured from when it was sent. The control plane relies on that when it gives them to others.
 *
 * A worker may also return slots in use, with their times of use: they rest at the control plane until they are cold.
 * What a request used above its reservation is debt, paid by the next cold slots.
 */

export const slotMinuteMs = 60_000
/** The longest time, in minutes, over which excess use is paid. */
export const maxMinutes = 64
/** How long a worker may use its slots without a reply of the control plane. */
export const slotTtlMs = 30_000
/** Uses are stored in steps of this many milliseconds, each counted from its end, so never too short. */
const stepMs = 100

/** When slots can be used again, as an instant or as milliseconds from now, and how many. */
export type Cooling = [at: number, slots: number]

/** A change of use as the journal stores it: the account, when the use is cold by the host's time, and the number. */
export type RecordedUse = [account: string, until: number, count: number]

/** Whether an account counts tokens; the others count requests. */
export const countsTokens = (account: string): boolean => account.endsWith('/tokens')

/** Sums changes by account and instant. */
export function sumUses(changes: Iterable<RecordedUse>): Map<string, Cooling[]> {
  const sums = new Map<string, Map<number, number>>()
  for (const [account, until, count] of changes) {
    const sum = sums.get(account) ?? new Map<number, number>()
    sum.set(until, (sum.get(until) ?? 0) + count)
    sums.set(account, sum)
  }
  return new Map([...sums].map(([account, sum]) => [account, [...sum]]))
}

/** When this many slots are free, from a list in order of time; null if there will not be as many. */
export function coldAt(cooling: readonly Cooling[], slots: number): number | null {
  let cold = 0
  for (const [at, count] of cooling) {
    cold += count
    if (cold >= slots) return at
  }
  return null
}

/**
 * How many slots are cold in how many milliseconds from `now`. Slots of the same second are joined at the latest time.
 */
export function coolingFrom(uses: readonly Cooling[], now: number): Cooling[] {
  const cooling: Cooling[] = []
  for (const [until, count] of uses.toSorted(([first], [second]) => first - second)) {
    const after = Math.ceil(until - now)
    if (count <= 0 || after <= 0) continue
    const last = cooling.at(-1)
    if (last !== undefined && Math.floor(last[0] / 1000) === Math.floor(after / 1000)) {
      last[0] = after
      last[1] += count
    } else cooling.push([after, count])
  }
  return cooling
}

interface Step {
  /** When the slots are cold; in the past once they were returned. */
  until: number
  count: number
}

/** Some slots used in one step of time. */
export interface SlotUse {
  readonly step: Step
  /** When they are cold. */
  readonly until: number
  count: number
}

export class Slots {
  granted = 0
  returned = 0
  /** Requests whose use may still be corrected. */
  running = 0
  /** How many of them took fewer slots than they may use. */
  short = 0
  /** The last time a request asked for slots, monotonic milliseconds. */
  lastUsedAt: number
  #steps: Step[] = []
  #used = 0
  #debt = 0
  #validUntil = Number.NEGATIVE_INFINITY
  #resting: readonly Cooling[]

  /** `resting` are uses of earlier processes of this worker that are not cold yet. */
  constructor(now: number, resting: readonly Cooling[] = []) {
    this.lastUsedAt = now
    this.#resting = resting
  }

  /** Uses without a slot here that the control plane may not know yet: when they are cold, and how many. */
  get resting(): readonly Cooling[] {
    return this.#resting
  }

  /** How many slots are owed for excess use. */
  get debt(): number {
    return this.#debt
  }

  /** How many slots can be used now. Debt is paid first. */
  available(now: number): number {
    this.#cool(now)
    if (now >= this.#validUntil) {
      // Used slots count as returned once they are cold: the control plane may give them to others at once.
      this.returned = Math.max(this.returned, this.granted - this.#used)
      return 0
    }
    const free = this.granted - this.returned - this.#used
    const paid = Math.min(free, this.#debt)
    if (paid <= 0) return free
    this.#debt -= paid
    this.#add(paid, now)
    return free - paid
  }

  /** Uses slots that are available. */
  use(count: number, now: number): SlotUse {
    const step = this.#add(count, now)
    this.lastUsedAt = now
    return { step, until: step.until, count }
  }

  /** Counts slots that were used without a reservation. */
  exceed(count: number, now: number): void {
    this.#debt += count
    this.available(now)
  }

  /** Takes back a part of a use that did not happen, while it still counts. */
  unuse(use: SlotUse, count: number, now: number): void {
    this.#cool(now)
    const less = Math.min(count, use.count)
    use.count -= less
    if (use.step.until <= now) return
    use.step.count -= less
    this.#used -= less
  }

  /** Returns up to `count` cold slots to the control plane. Gives the number. */
  giveBack(count: number, now: number): number {
    const returned = Math.max(0, Math.min(count, this.available(now)))
    this.returned += returned
    return returned
  }

  /** Returns all slots, including those in use, which rest from now on. Gives whether there were any. */
  handBack(now: number): boolean {
    this.available(now)
    if (this.granted === this.returned) return false
    const owed: Cooling[] = this.#debt > 0 ? [[now + slotMinuteMs, this.#debt]] : []
    this.#resting = [...this.#resting, ...this.#uses(), ...owed]
    for (const step of this.#steps) step.until = Number.NEGATIVE_INFINITY
    this.#steps = []
    this.#used = this.#debt = 0
    this.returned = this.granted
    return true
  }

  /** Applies the reply to a message that was sent at `sentAt` and reported these resting uses. */
  answered(granted: number, returned: number, sentAt: number, resting: readonly Cooling[]): void {
    this.granted = Math.max(this.granted, granted)
    this.returned = Math.min(this.granted, Math.max(this.returned, returned))
    this.#validUntil = Math.max(this.#validUntil, sentAt + slotTtlMs)
    if (this.#resting === resting) this.#resting = []
  }

  /** When slots in use are cold again, in order. */
  cooling(now: number): Cooling[] {
    this.#cool(now)
    return coolingFrom(this.#uses(), now)
  }

  #uses(): Cooling[] {
    return this.#steps.map(({ until, count }) => [until, count])
  }

  #add(count: number, now: number): Step {
    const until = Math.ceil(now / stepMs) * stepMs + slotMinuteMs
    let step = this.#steps.at(-1)
    if (step?.until !== until) {
      step = { until, count: 0 }
      this.#steps.push(step)
    }
    step.count += count
    this.#used += count
    return step
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
