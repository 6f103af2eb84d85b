/**
 * A lane's rate limits: slots are taken from memory where they are there, and asked for where they are not. A request
 * with several limits takes of all or of none, and holds none while it waits. Beside that, in the background: what the
 * control plane calls back is returned as far as it is cold, what nobody used for a minute is returned whole, and what is
 * in use is confirmed before it lapses. So a lane that is alone with a limit waits once, for the first request.
 */
import type { Clock } from '../lib/clock.ts'
import { type Cooling, coldAt, Slots, slotMinuteMs, slotTtlMs } from './rate.ts'
import { type RateTicket, SlotTicket } from './rate-ticket.ts'
import type { SlotCell, SlotsReply } from './rate-wire.ts'

export interface RateDemand {
  account: string
  slots: number
  /** How many slots the limit has as this lane knows it. */
  limit: number
}

/** A limit that refuses: it is used up, or the control plane cannot be asked. */
export class RateRefused extends Error {
  override readonly name = 'RateRefused'
  readonly account: string
  readonly reason: 'used' | 'unknown'
  /** Whole seconds after which it makes sense to try again. */
  readonly retryAfter: number

  constructor(account: string, reason: RateRefused['reason'], retryAfter: number) {
    super(`${account}: ${reason}`)
    this.account = account
    this.reason = reason
    this.retryAfter = retryAfter
  }
}

export interface Rates {
  /** Takes slots of all limits or of none, at once where the lane has them. Throws or rejects with `RateRefused`. */
  take(demands: readonly RateDemand[], signal: AbortSignal): RateTicket | Promise<RateTicket>
}

export interface LaneRatesOptions {
  clock: Pick<Clock, 'monotonic'>
  /** Another one for each process that holds the lane. */
  process: string
  /** Sends cells to the control plane; rejects where it cannot be reached. */
  post(cells: readonly SlotCell[]): Promise<SlotsReply>
}

interface Waiting {
  demands: readonly RateDemand[]
  resolve(ticket: RateTicket): void
  reject(refused: unknown): void
}

interface Account {
  name: string
  slots: Slots
  asking: boolean
  /** Until when a refusal of the ledger is taken for the answer by whoever lacks as many slots, or more. */
  denied: { until: number; shortage: number }
  /** As the ledger last said: when slots can be had, monotonic. */
  cooling: readonly Cooling[]
  /** The totals last confirmed differ from those here. */
  dirty: boolean
  /** The last call for slots that was followed. */
  recalledAt: number
  confirmedAt: number
}

const deniedForMs = 1000
const confirmAfterMs = slotTtlMs / 3
const forgetAfterMs = 3 * slotMinuteMs
const cellsInMessage = 500

export class LaneRates implements Rates {
  readonly #clock: LaneRatesOptions['clock']
  readonly #post: LaneRatesOptions['post']
  readonly #process: string
  readonly #accounts = new Map<string, Account>()
  readonly #waiting = new Set<Waiting>()
  #confirming = false

  constructor({ clock, process, post }: LaneRatesOptions) {
    this.#clock = clock
    this.#process = process
    this.#post = post
  }

  take(demands: readonly RateDemand[], signal: AbortSignal): RateTicket | Promise<RateTicket> {
    const now = this.#clock.monotonic()
    const short = this.#firstShort(demands, now)
    if (short === null) return this.#use(demands, now)
    const account = this.#account(short.account, now)
    const { until, shortage } = account.denied
    if (now < until && this.#shortage(short, now) >= shortage) throw this.#refusal(short, 'used', now)
    return this.#wait(demands, signal)
  }

  /**
   * The control plane needs slots of an account elsewhere: returns half of what is cold, or as many as are needed, and
   * says in any case that it has heard.
   */
  recall(name: string, want: number, at: number): void {
    const now = this.#clock.monotonic()
    const account = this.#account(name, now)
    const cold = account.slots.available(now) - this.#wanted(name)
    account.slots.giveBack(Math.min(cold, Math.max(want, Math.ceil(cold / 2))), now)
    account.recalledAt = Math.max(account.recalledAt, at)
    account.dirty = true
    void this.#follow(account, want, at)
  }

  /** Says that the call was heard; where the answer tells of slots that were not known yet, follows it once more. */
  async #follow(account: Account, want: number, at: number): Promise<void> {
    const cell = this.#toldCell(account, 0)
    await this.#sendUnwatched([cell])
    if (account.slots.granted > cell.granted) this.recall(account.name, want, at)
  }

  /** Returns what is idle and confirms what is in use; to be called about once a second. */
  tick(): void {
    const now = this.#clock.monotonic()
    const cells: SlotCell[] = []
    for (const account of this.#accounts.values()) {
      const { slots, name } = account
      const idle = now - slots.lastUsedAt
      if (idle >= slotMinuteMs && slots.giveBack(Number.MAX_SAFE_INTEGER, now) > 0) account.dirty = true
      if (idle >= forgetAfterMs && !account.dirty) this.#accounts.delete(name)
      const held = slots.granted > slots.returned
      const due = account.dirty || (held && now - account.confirmedAt >= confirmAfterMs)
      if (due && cells.length < cellsInMessage) cells.push(this.#cell(account, 0))
    }
    if (cells.length === 0 || this.#confirming) return
    this.#confirming = true
    void this.#confirm(cells)
  }

  async #confirm(cells: readonly SlotCell[]): Promise<void> {
    await this.#sendUnwatched(cells)
    this.#confirming = false
  }

  async #sendUnwatched(cells: readonly SlotCell[]): Promise<void> {
    try {
      await this.#send(cells)
    } catch {
      // The next tick tries again; until then what is held lapses by itself.
    }
  }

  #cell({ name, slots, recalledAt }: Account, want: number): SlotCell {
    const { granted, returned } = slots
    return { account: name, granted, returned, want, recalled_at: recalledAt, cooling: null, process: this.#process }
  }

  /** A cell with when its slots in use are cold. */
  #toldCell(account: Account, want: number): SlotCell {
    return { ...this.#cell(account, want), cooling: account.slots.cooling(this.#clock.monotonic()) }
  }

  #account(name: string, now: number): Account {
    const known = this.#accounts.get(name)
    if (known !== undefined) return known
    const account: Account = {
      name,
      slots: new Slots(now),
      asking: false,
      denied: { until: Number.NEGATIVE_INFINITY, shortage: 0 },
      cooling: [],
      dirty: false,
      recalledAt: 0,
      confirmedAt: Number.NEGATIVE_INFINITY,
    }
    this.#accounts.set(name, account)
    return account
  }

  #firstShort(demands: readonly RateDemand[], now: number): RateDemand | null {
    for (const demand of demands) if (this.#shortage(demand, now) > 0) return demand
    return null
  }

  /** How many slots are missing; of a limit that was lowered, what is held beyond it does not count. */
  #shortage({ account, slots: wanted, limit }: RateDemand, now: number): number {
    const { slots } = this.#account(account, now)
    const beyond = Math.max(0, slots.granted - slots.returned - limit)
    return Math.min(wanted, limit) - (slots.available(now) - beyond)
  }

  #use(demands: readonly RateDemand[], now: number): RateTicket {
    const uses = demands.map(({ account, slots, limit }) => {
      const found = this.#account(account, now).slots
      return { account, slots: found, use: found.use(Math.min(slots, limit), now) }
    })
    return new SlotTicket(uses, this.#clock)
  }

  #refusal(short: RateDemand, reason: RateRefused['reason'], now: number): RateRefused {
    const wait = reason === 'used' ? this.#usableIn(short, now) : deniedForMs
    return new RateRefused(short.account, reason, Math.max(1, Math.ceil(wait / 1000)))
  }

  /** In how many milliseconds as many slots can be had as it lacks, here or elsewhere; a minute where nobody knows. */
  #usableIn(short: RateDemand, now: number): number {
    const at = coldAt(this.#account(short.account, now).cooling, this.#shortage(short, now))
    return at === null ? slotMinuteMs : Math.max(0, at - now)
  }

  #wait(demands: readonly RateDemand[], signal: AbortSignal): Promise<RateTicket> {
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { demands, resolve, reject }
      this.#waiting.add(waiting)
      signal.addEventListener('abort', () => this.#waiting.delete(waiting) && reject(signal.reason), { once: true })
      this.#askForShort()
    })
  }

  #wanted(name: string): number {
    let want = 0
    for (const { demands } of this.#waiting) {
      for (const { account, slots, limit } of demands) {
        if (account === name) want += Math.min(slots, limit)
      }
    }
    return want
  }

  /** Asks for what the waiting lack; one question at a time for each account. */
  #askForShort(): void {
    const now = this.#clock.monotonic()
    for (const { demands } of this.#waiting) {
      for (const demand of demands) {
        const account = this.#account(demand.account, now)
        if (this.#shortage(demand, now) > 0 && !account.asking) void this.#ask(account)
      }
    }
  }

  async #ask(account: Account): Promise<void> {
    account.asking = true
    const asked = new Set(this.#waiting)
    const now = this.#clock.monotonic()
    const want = this.#wanted(account.name)
    const have = Math.max(0, account.slots.available(now))
    const lacking = Math.max(1, want - have)
    const { granted } = account.slots
    let refused: RateRefused['reason'] = 'used'
    try {
      await this.#send([this.#toldCell(account, lacking)])
      // All that was asked for is no refusal: who still lacks slots lost them to others meanwhile, and is asked for anew.
      if (account.slots.granted - granted >= lacking) asked.clear()
    } catch {
      // Out of reach, or a message that made no sense: either way nobody can say that there is a slot.
      refused = 'unknown'
    }
    account.asking = false
    this.#settleWaiting(account, asked, refused)
  }

  /** Serves the waiting in order of arrival; those for whom was asked and who still lack slots are refused. */
  #settleWaiting(account: Account, asked: ReadonlySet<Waiting>, reason: RateRefused['reason']): void {
    const now = this.#clock.monotonic()
    for (const waiting of this.#waiting) {
      const short = this.#firstShort(waiting.demands, now)
      if (short !== null && (short.account !== account.name || !asked.has(waiting))) continue
      this.#waiting.delete(waiting)
      if (short === null) waiting.resolve(this.#use(waiting.demands, now))
      else {
        if (reason === 'used') this.#deny(account, short, now)
        waiting.reject(this.#refusal(short, reason, now))
      }
    }
    this.#askForShort()
  }

  /** Not for longer than until slots can be had, by whoever lacks them. */
  #deny(account: Account, short: RateDemand, now: number): void {
    const shortage = this.#shortage(short, now)
    const until = now + Math.min(deniedForMs, this.#usableIn(short, now))
    const less = now < account.denied.until ? Math.min(shortage, account.denied.shortage) : shortage
    account.denied = { until, shortage: less }
  }

  async #send(cells: readonly SlotCell[]): Promise<void> {
    const sentAt = this.#clock.monotonic()
    const { cells: answered } = await this.#post(cells)
    const sent = new Map(cells.map((cell) => [cell.account, cell]))
    const answeredAt = this.#clock.monotonic()
    for (const { account: name, granted, returned, cooling } of answered) {
      const account = this.#accounts.get(name)
      if (account === undefined) continue
      account.slots.answered(granted, returned, sentAt)
      account.confirmedAt = sentAt
      if ((sent.get(name)?.want ?? 0) > 0)
        account.cooling = cooling.map(([after, slots]) => [answeredAt + after, slots])
      account.dirty = account.slots.returned !== Math.max(sent.get(name)?.returned ?? 0, returned)
    }
  }
}
