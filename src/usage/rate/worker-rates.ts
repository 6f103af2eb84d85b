/**
 * A worker's rate limits. It takes slots from memory if it has them, and asks for them otherwise. A request with
 * several limits takes slots of all or of none, and holds none while it waits. In the background the worker returns
 * cold slots that the control plane recalls, returns everything of a limit that was unused for 10 s, and confirms
 * slots in use before they lapse. So a worker that is alone with a limit waits once, for its first request.
 *
 * A worker that stops returns all slots and reports when those in use are cold. After a kill its next process reads the
 * same from the journal (`RatePast`) and reports it with its first message about a limit.
 *
 * Longer than most: asking, waiting, returning and confirming share the state of each limit.
 */
import { type Cooling, coldAt, coolingFrom, countsTokens, maxMinutes, Slots, slotMinuteMs, slotTtlMs } from './rate.ts'
import type { SlotBalance, SlotsReply } from './rate-protocol.ts'
import { type RateClock, type RateTicket, SlotTicket } from './rate-ticket.ts'
import { type RateDemand, type RatePast, RateRefused, type Rates } from './rates.ts'

export interface WorkerRatesOptions {
  clock: RateClock
  /** Different for each process of the worker. */
  process: string
  past: RatePast
  /** Sends balances to the control plane. Rejects if that is unreachable. */
  post(balances: readonly SlotBalance[]): Promise<SlotsReply>
  sleep(milliseconds: number): Promise<void>
}

interface Waiting {
  demands: readonly RateDemand[]
  since: number
  resolve(ticket: RateTicket): void
  reject(refused: unknown): void
}

interface Account {
  name: string
  slots: Slots
  asking: boolean
  /** How long the ledger's refusal answers requests that lack as many slots or more. */
  denied: { until: number; shortage: number }
  /** From the last reply: when slots will be free, monotonic. */
  cooling: readonly Cooling[]
  /** From the last reply: how many slots unreachable workers hold. */
  absent: number
  /** The last recall that was answered. */
  recalledAt: number
  confirmedAt: number
  /** How many returned slots the ledger has confirmed. */
  confirmedReturned: number
}

/** A balance as it is sent, with the resting uses that it reports. */
interface Message {
  balance: SlotBalance
  resting: readonly Cooling[]
}

const deniedForMs = 1000
/** How long a request waits for an unreachable control plane, for example when its gateway has just started. */
const reachWithinMs = 2000
const askAgainMs = 100
const confirmAfterMs = slotTtlMs / 3
const idleMs = 10_000
/** The Retry-After for tokens that a running request may give back. */
const maxRunningMs = 5000
const forgetAfterMs = 3 * slotMinuteMs
const debtAfterMs = maxMinutes * slotMinuteMs
const cellsInMessage = 500

/** The slots of a demand, at most the limit. */
type Amount = (demand: RateDemand, slots: Slots) => number

const wanted: Amount = ({ slots, limit }) => Math.min(slots, limit)
const needed: Amount = ({ slots: most, least, limit }, slots) => Math.min(slots.short === 0 ? least : most, limit)

export class WorkerRates implements Rates {
  readonly #clock: WorkerRatesOptions['clock']
  readonly #post: WorkerRatesOptions['post']
  readonly #sleep: WorkerRatesOptions['sleep']
  readonly #process: string
  readonly #past: RatePast
  readonly #accounts = new Map<string, Account>()
  readonly #waiting = new Set<Waiting>()
  #confirming = false

  constructor({ clock, process, past, post, sleep }: WorkerRatesOptions) {
    this.#clock = clock
    this.#process = process
    this.#past = past
    this.#post = post
    this.#sleep = sleep
  }

  take(demands: readonly RateDemand[], signal: AbortSignal): RateTicket | Promise<RateTicket> {
    const now = this.#clock.monotonic()
    const short = this.#firstShort(demands, now, wanted)
    if (short === null) return this.#use(demands, now)
    const account = this.#account(short.account, now)
    const { until, shortage } = account.denied
    if (now >= until || this.#shortage(short, now, wanted) < shortage) return this.#wait(demands, signal)
    const refused = this.#firstShort(demands, now, needed)
    if (refused !== null) throw this.#refusal(refused, 'used', now)
    return this.#use(demands, now)
  }

  /**
   * The control plane needs slots elsewhere: returns half of the cold ones, or as many as are needed, and answers in
   * any case.
   */
  recall(name: string, want: number, at: number): void {
    const now = this.#clock.monotonic()
    const account = this.#account(name, now)
    const cold = account.slots.available(now) - this.#wanted(name)
    account.slots.giveBack(Math.min(cold, Math.max(want, Math.ceil(cold / 2))), now)
    account.recalledAt = Math.max(account.recalledAt, at)
    void this.#follow(account, want, at)
  }

  /** Answers a recall. If the reply shows slots that were not known yet, answers once more. */
  async #follow(account: Account, want: number, at: number): Promise<void> {
    const message = this.#report(account, 0)
    await this.#sendUnwatched([message])
    if (account.slots.granted > message.balance.granted) this.recall(account.name, want, at)
  }

  /** Returns idle slots and confirms those in use. Call about once a second. */
  tick(): void {
    const now = this.#clock.monotonic()
    const messages: Message[] = []
    for (const account of this.#accounts.values()) {
      const { slots, name } = account
      const idle = now - slots.lastUsedAt
      if (idle >= idleMs) this.#release(account, now)
      const reported = slots.returned === account.confirmedReturned && slots.resting.length === 0
      const held = slots.granted > slots.returned
      if (reported && !held && slots.running === 0 && idle >= (slots.debt > 0 ? debtAfterMs : forgetAfterMs)) {
        this.#accounts.delete(name)
      }
      const due = !reported || (held && now - account.confirmedAt >= confirmAfterMs)
      if (due && messages.length < cellsInMessage) messages.push(this.#message(account, 0))
    }
    if (messages.length === 0 || this.#confirming) return
    this.#confirming = true
    void this.#confirm(messages)
  }

  /** Returns everything. Resolves when the control plane knows, or cannot be reached. */
  async drain(): Promise<void> {
    const now = this.#clock.monotonic()
    const messages: Message[] = []
    for (const account of this.#accounts.values()) {
      account.slots.handBack(now)
      const { granted, resting } = account.slots
      if (granted > account.confirmedReturned || resting.length > 0) messages.push(this.#message(account, 0))
    }
    for (let at = 0; at < messages.length; at += cellsInMessage) {
      await this.#sendUnwatched(messages.slice(at, at + cellsInMessage))
    }
  }

  /** Slots in use are kept while they owe debt, or while a running request may give some back. */
  #release({ slots, asking, name }: Account, now: number): void {
    slots.giveBack(Number.MAX_SAFE_INTEGER, now)
    if (slots.debt === 0 && slots.running === 0 && !asking && this.#wanted(name) === 0) slots.handBack(now)
  }

  async #confirm(messages: readonly Message[]): Promise<void> {
    await this.#sendUnwatched(messages)
    this.#confirming = false
  }

  async #sendUnwatched(messages: readonly Message[]): Promise<void> {
    try {
      await this.#send(messages)
    } catch {
      // The next tick retries. Until then the slots lapse by themselves.
    }
  }

  #message({ name, slots, recalledAt }: Account, want: number): Message {
    const { granted, returned, resting } = slots
    const { run, knownFrom } = this.#past
    const balance: SlotBalance = {
      ...{ account: name, granted, returned, want, recalled_at: recalledAt, cooling: null },
      resting: coolingFrom(resting, this.#clock.monotonic()),
      ...{ process: this.#process, run, known_from: knownFrom },
    }
    return { balance, resting }
  }

  /** A message that also reports when the slots in use are cold. */
  #report(account: Account, want: number): Message {
    const { balance, resting } = this.#message(account, want)
    return { balance: { ...balance, cooling: account.slots.cooling(this.#clock.monotonic()) }, resting }
  }

  #account(name: string, now: number): Account {
    const known = this.#accounts.get(name)
    if (known !== undefined) return known
    const account: Account = {
      name,
      slots: new Slots(now, this.#usesBefore(name)),
      asking: false,
      denied: { until: Number.NEGATIVE_INFINITY, shortage: 0 },
      cooling: [],
      absent: 0,
      recalledAt: 0,
      confirmedAt: Number.NEGATIVE_INFINITY,
      confirmedReturned: 0,
    }
    this.#accounts.set(name, account)
    return account
  }

  /** Uses of earlier processes that are not cold yet, by this process's clock. */
  #usesBefore(name: string): readonly Cooling[] {
    const offset = this.#clock.host() - this.#clock.monotonic()
    const now = this.#clock.monotonic()
    const uses = this.#past.uses.get(name) ?? []
    return uses.map(([until, count]): Cooling => [until - offset, count]).filter(([until]) => until > now)
  }

  #firstShort(demands: readonly RateDemand[], now: number, amount: Amount): RateDemand | null {
    for (const demand of demands) if (this.#shortage(demand, now, amount) > 0) return demand
    return null
  }

  /** How many slots are missing. What is held above a lowered limit does not count. */
  #shortage(demand: RateDemand, now: number, amount: Amount): number {
    const { slots } = this.#account(demand.account, now)
    return amount(demand, slots) - this.#usable(demand, slots, now)
  }

  #usable({ limit }: RateDemand, slots: Slots, now: number): number {
    return slots.available(now) - Math.max(0, slots.granted - slots.returned - limit)
  }

  #use(demands: readonly RateDemand[], now: number): RateTicket {
    const uses = demands.map((demand) => {
      const { slots } = this.#account(demand.account, now)
      const taken = Math.min(demand.slots, demand.limit, this.#usable(demand, slots, now))
      return { account: demand.account, slots, use: slots.use(taken, now), isShort: taken < demand.slots }
    })
    return new SlotTicket(uses, this.#clock)
  }

  #refusal(short: RateDemand, reason: RateRefused['reason'], now: number): RateRefused {
    const wait = reason === 'used' ? this.#usableIn(short, now) : deniedForMs
    const absent = reason === 'used' ? this.#account(short.account, now).absent : 0
    return new RateRefused(short.account, { reason, retryAfter: Math.max(1, Math.ceil(wait / 1000)), absent })
  }

  /** In how many milliseconds the missing slots will be free, here or elsewhere; a minute if unknown. */
  #usableIn(short: RateDemand, now: number): number {
    const { cooling, slots } = this.#account(short.account, now)
    const at = coldAt(cooling, this.#shortage(short, now, needed)) ?? now + slotMinuteMs
    // A running request may give tokens back at its end.
    const soonest = countsTokens(short.account) && slots.running > 0 ? maxRunningMs : slotMinuteMs * maxMinutes
    return Math.min(soonest, Math.max(0, at - now))
  }

  #wait(demands: readonly RateDemand[], signal: AbortSignal): Promise<RateTicket> {
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { demands, since: this.#clock.monotonic(), resolve, reject }
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

  /** Asks for what waiting requests lack, with one ask in flight for each account. */
  #askForShort(): void {
    const now = this.#clock.monotonic()
    for (const { demands } of this.#waiting) {
      for (const demand of demands) {
        const account = this.#account(demand.account, now)
        if (this.#shortage(demand, now, wanted) > 0 && !account.asking) void this.#ask(account)
      }
    }
  }

  async #ask(account: Account): Promise<void> {
    account.asking = true
    const asked = new Set(this.#waiting)
    const now = this.#clock.monotonic()
    const want = this.#wanted(account.name)
    const have = Math.max(0, account.slots.available(now)) - account.slots.debt
    const lacking = Math.max(1, want - have)
    const { granted } = account.slots
    let refused: RateRefused['reason'] = 'used'
    try {
      await this.#send([this.#report(account, lacking)])
      // All that was asked for was granted, so nobody is refused: requests that still lack slots lost them to others
      // and ask again.
      if (account.slots.granted - granted >= lacking) asked.clear()
    } catch {
      // Unreachable, or an invalid reply: nobody knows whether a slot is free.
      refused = 'unknown'
      await this.#sleep(askAgainMs)
    }
    account.asking = false
    this.#serveOrRefuse(account, asked, refused)
  }

  /** Serves waiting requests in order of arrival. Refuses those that were asked for and still lack slots. */
  #serveOrRefuse(account: Account, asked: ReadonlySet<Waiting>, reason: RateRefused['reason']): void {
    const now = this.#clock.monotonic()
    for (const waiting of this.#waiting) {
      const short = this.#firstShort(waiting.demands, now, wanted)
      if (short !== null && (short.account !== account.name || !asked.has(waiting))) continue
      const refused = short === null ? null : this.#firstShort(waiting.demands, now, needed)
      if (refused !== null && reason === 'unknown' && now - waiting.since < reachWithinMs) continue
      this.#waiting.delete(waiting)
      if (short !== null && reason === 'used') this.#deny(account, short, now)
      if (refused === null) waiting.resolve(this.#use(waiting.demands, now))
      else waiting.reject(this.#refusal(refused, reason, now))
    }
    this.#askForShort()
  }

  /** Caches a refusal, at most until slots are free. */
  #deny(account: Account, short: RateDemand, now: number): void {
    const shortage = this.#shortage(short, now, wanted)
    const until = now + Math.min(deniedForMs, this.#usableIn(short, now))
    const less = now < account.denied.until ? Math.min(shortage, account.denied.shortage) : shortage
    account.denied = { until, shortage: less }
  }

  async #send(messages: readonly Message[]): Promise<void> {
    const sentAt = this.#clock.monotonic()
    const { balances: answered } = await this.#post(messages.map(({ balance }) => balance))
    const sent = new Map(messages.map((message) => [message.balance.account, message]))
    const answeredAt = this.#clock.monotonic()
    for (const { account: name, granted, returned, cooling, absent } of answered) {
      const account = this.#accounts.get(name)
      const message = sent.get(name)
      if (account === undefined || message === undefined) continue
      account.slots.answered(granted, returned, sentAt, message.resting)
      account.confirmedAt = sentAt
      account.confirmedReturned = returned
      if (message.balance.want === 0) continue
      account.cooling = cooling.map(([after, slots]) => [answeredAt + after, slots])
      account.absent = absent
    }
  }
}
