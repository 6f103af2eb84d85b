/**
 * The slots that a request took of its limits a minute (worker-rates.ts), and their correction or release at its end.
 */
import { countsTokens, type RecordedUse, type Slots, type SlotUse, slotMinuteMs } from './rate.ts'

export interface RateTicket {
  /** What was taken, for the journal. */
  uses(): RecordedUse[]
  /** Corrects the use to the real number of tokens. Returns the changes for the journal. */
  correct(tokens: number): RecordedUse[]
  /** Returns all slots: the request was refused and does not count. */
  release(): void
}

export interface RateClock {
  monotonic(): number
  /** Like `monotonic`, but comparable across processes on the same host. */
  host(): number
}

export interface TicketUse {
  account: string
  slots: Slots
  use: SlotUse
  /** Fewer slots were taken than the request may use. */
  isShort: boolean
}

export class SlotTicket implements RateTicket {
  readonly #uses: readonly TicketUse[]
  readonly #clock: RateClock
  /** From this process's time to the host's. Fixed for the ticket, so that a correction matches the use it corrects. */
  readonly #offset: number

  constructor(uses: readonly TicketUse[], clock: RateClock) {
    this.#uses = uses
    this.#clock = clock
    this.#offset = clock.host() - clock.monotonic()
    for (const { slots, isShort } of uses) {
      slots.running += 1
      if (isShort) slots.short += 1
    }
  }

  uses(): RecordedUse[] {
    return this.#uses.map(({ account, use }) => [account, this.#hostTime(use.until), use.count])
  }

  correct(tokens: number): RecordedUse[] {
    const now = this.#clock.monotonic()
    const changes: RecordedUse[] = []
    this.#end()
    for (const { account, slots, use } of this.#uses) {
      if (!countsTokens(account) || tokens === use.count) continue
      const more = tokens - use.count
      if (more < 0) slots.unuse(use, -more, now)
      else slots.exceed(more, now)
      changes.push([account, this.#hostTime(more < 0 ? use.until : now + slotMinuteMs), more])
    }
    return changes
  }

  #hostTime(instant: number): number {
    return Math.ceil(instant + this.#offset)
  }

  release(): void {
    const now = this.#clock.monotonic()
    this.#end()
    for (const { slots, use } of this.#uses) slots.unuse(use, use.count, now)
  }

  #end(): void {
    for (const { slots, isShort } of this.#uses) {
      slots.running -= 1
      if (isShort) slots.short -= 1
    }
  }
}
