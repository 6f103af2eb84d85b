/** The slots that a request took of its limits a minute (rate-lane.ts): how many it was in the end, or that it was none. */
import type { Clock } from '../lib/clock.ts'
import type { Slots, SlotUse } from './rate.ts'

/** What a request took. */
export interface RateTicket {
  /** Says how many slots of an account the request needed in the end. */
  correct(account: string, slots: number): void
  /** Gives all back: the request was refused and counts for nothing. */
  release(): void
}

interface TicketUse {
  account: string
  slots: Slots
  use: SlotUse
}

export class SlotTicket implements RateTicket {
  readonly #uses: readonly TicketUse[]
  readonly #clock: Pick<Clock, 'monotonic'>

  constructor(uses: readonly TicketUse[], clock: Pick<Clock, 'monotonic'>) {
    this.#uses = uses
    this.#clock = clock
  }

  correct(account: string, needed: number): void {
    const now = this.#clock.monotonic()
    for (const { account: name, slots, use } of this.#uses) {
      if (name !== account) continue
      if (needed < use.count) slots.unuse(use, use.count - needed, now)
      else if (needed > use.count) slots.use(needed - use.count, now)
    }
  }

  release(): void {
    const now = this.#clock.monotonic()
    for (const { slots, use } of this.#uses) slots.unuse(use, use.count, now)
  }
}
