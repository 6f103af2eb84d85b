/**
 * A worker's side of the usage protocol (usage/lease/lease.ts): what the gateway reserves from, and the messages that keep it filled.
 *
 *   1. A reservation is taken from balances in the same tick where they suffice. Otherwise the request waits, holding
 *      nothing, and what is missing is asked for: one ask in flight for each account, for all that wait. Where the
 *      control plane cannot say, it is asked again when it said it could be; who has waited `usage_wait_seconds` and half a
 *      second more is refused.
 *   2. While more is used than the balance would last, more is asked for ahead.
 *   3. Where little is left (`tight`), nothing is asked for ahead, an ask goes with nothing kept back and, for
 *      requests on several accounts, for all of them together; what a settlement frees goes back in the same tick. A
 *      recall makes an account tight.
 *   4. What nobody has used for 2 s goes back. A cell that is empty and wholly known to the ledger is forgotten.
 *   5. With each stream the worker says hello: what this process holds. Everything else of the worker is then free.
 *
 * An amount that an outcome frees is not said to be returned before that outcome is committed to the journal; while one
 * could not be written, nothing is returned and the journal opens nothing (a restart would settle it in full). An answer
 * counts only while nobody has said hello since its question: what it grants may be free again.
 *
 * Longer than most: what is asked, told and answered of one account is one state.
 */
import type { Clock } from '../../../lib/clock.ts'
import {
  type AccountName,
  type Allowances,
  type Demand,
  type Held,
  type Reservation,
  UsageRefused,
} from '../../allowance.ts'
import { WaitingRequests, type Wanted } from '../../waiting-requests.ts'
import {
  type Ask,
  type CellReport,
  type Denial,
  type LeaseReply,
  type LeaseRequest,
  mostAsked,
  mostHeld,
  plainName,
  recallWaitMs,
} from '../lease.ts'
import { WorkerReservation } from './reservation.ts'
import { type WorkerAccount, WorkerAccounts } from './worker-accounts.ts'
import { noCell, type WorkerCell } from './worker-balance.ts'

/** What of the outbox matters here. */
export interface UsageJournal {
  /** An outcome could not be written and will be tried again. */
  readonly owing: boolean
  readonly lastEvent: number
  /** The last event that the ledger is known to have. */
  readonly acknowledgedEvent: number
  /** Resolves when everything appended so far is committed. */
  committed(): Promise<void>
}

export interface WorkerUsageOptions {
  process: string
  /**
   * Whether the host went down, or the journal was damaged, since a process of this worker last said hello. To be kept
   * through restarts until it is told.
   */
  crash: { readonly happened: boolean; told(): void }
  /** `now` is the gateway's own time. */
  clock: Clock
  journal: UsageJournal
  /** How long a request may wait in all for what others hold, in milliseconds. */
  usageWaitMs: number
  send(request: LeaseRequest): Promise<LeaseReply>
  /** Runs it after so long; 0 is the end of this tick. */
  after(milliseconds: number, work: () => void): void
}

/** A request waits at most so much longer than for what others hold: for the way there and back. */
const onTheWayMs = 500
/** The control plane counts from when an ask came; who has waited nearly as long is refused with the oldest. */
const deniedEarlyMs = 100
const retryMs = 100
/** While events are still missing a hello is said again after so long, and twice as long each time. */
const behindMs = 20
const mostBehindMs = 320
/** For so long after a failed ask the control plane may still grant it. */
const doubtMs = 10_000
const retryAfterSeconds = 1
const none: ReadonlySet<string> = new Set()

export class WorkerUsage implements Allowances {
  readonly #options: WorkerUsageOptions
  readonly #accounts: WorkerAccounts
  readonly #waiting: WaitingRequests
  /** Accounts to be told of with the next message, by their booked names. */
  readonly #report = new Set<string>()
  /** Accounts asked for in vain, booked or plain: until when (monotonic) it is looked whether something came of it. */
  readonly #doubtful = new Map<string, number>()
  readonly #ahead = new Set<WorkerAccount>()
  readonly #inFlight = new Set<number>()
  #sent = 0
  /** Raised with each hello. */
  #epoch = 0
  #greeted = false
  #flushing = false
  #draining = false
  #stopped = false
  /** The last message whose fate is known got no answer. */
  #unanswered = false

  constructor(options: WorkerUsageOptions) {
    this.#options = options
    this.#accounts = new WorkerAccounts(options.clock)
    this.#waiting = new WaitingRequests(this.#accounts)
  }

  reserve(demands: readonly Demand[], signal: AbortSignal): Reservation | Promise<Reservation> {
    // Nothing would be asked for, so nobody would ever answer.
    for (const { account, min } of demands) if (!(min >= 1)) throw new RangeError(`${account}: ${min} is demanded`)
    const refused = this.#accounts.refused(demands)
    if (refused !== null)
      throw new UsageRefused(refused.name, refused.exhausted?.reason ?? 'exhausted', refused.exhausted ?? {})
    if (!this.#accounts.fit(demands)) return this.#wait(demands, signal)
    const reservation = new WorkerReservation(this)
    for (const { account, want } of demands) reservation.add(this.#open(this.#accounts.get(account), want), want)
    return reservation
  }

  exhausted(account: AccountName): boolean {
    return this.#accounts.refused([{ account, want: 1, min: 1 }]) !== null
  }

  /** The stream was opened, or opened again: the control plane hears what this process holds. */
  connected(): void {
    void this.#greet()
  }

  /** The control plane wants back what is not open of these accounts, and says that their limits may have changed. */
  recall(booked: readonly string[]): void {
    for (const name of booked) {
      const account = this.#accounts.get(plainName(name))
      account.tight = true
      account.exhausted = null
      account.askAt = Number.NEGATIVE_INFINITY
      this.#report.add(account.cell?.account ?? name)
    }
    this.#flushSoon()
  }

  /** To be called every second or so. */
  tick(): void {
    for (const cell of this.#accounts.idle()) this.#report.add(cell.account)
    for (const cell of this.#accounts.cells()) if (cell.heard < cell.returned) this.#report.add(cell.account)
    for (const account of this.#doubtful.keys()) this.#report.add(account)
    const { owing, lastEvent, acknowledgedEvent } = this.#options.journal
    if (!owing) this.#accounts.forget({ lastEvent, acknowledged: acknowledgedEvent, sent: this.#sent })
    this.#accounts.answeredTo(Math.min(this.#sent + 1, ...this.#inFlight))
    if (this.#greeted && this.#inFlight.size === 0 && this.#accounts.needsContact) void this.#exchange([], none)
    this.#flushSoon()
  }

  /** Gives everything back that is not open; resolves when the control plane knows, or cannot be told. */
  async drain(): Promise<void> {
    this.#draining = true
    const cells = [...this.#accounts.idle(true)]
    if (cells.length > 0 && this.#greeted) await this.#exchange([], new Set(cells.map(({ account }) => account)))
    this.#stopped = true
    this.#epoch++
  }

  /**
   * The worker's memory is an older copy, and nobody can say what its former process spent of what it held: all of that
   * counts as spent (usage/lease/README.md rule 14). Resolves when the control plane knows, or cannot be told.
   */
  async giveUp(): Promise<void> {
    this.#stopped = true
    this.#epoch++
    const { process, send } = this.#options
    const hello = { through: 0, counted: 0, crashed: true }
    try {
      await send({ process, number: ++this.#sent, hello, asks: [], cells: [] })
    } catch {
      // Then it stays spent until it is found out that the worker does not come back.
    }
  }

  /** Opens an amount; asks ahead where the balance would not last for as much again. */
  #open(account: WorkerAccount, amount: number): WorkerCell {
    const cell = this.#accounts.open(account, amount)
    if (!account.tight && !account.asking && cell.balance < cell.reserved) {
      this.#ahead.add(account)
      this.#flushSoon()
    }
    return cell
  }

  /** Takes more at once, or nothing. */
  extend(reservation: WorkerReservation, more: readonly Held[]): boolean {
    const demands = more.map(({ account, amount }) => ({ account: plainName(account), want: amount, min: amount }))
    if (!this.#accounts.fit(demands)) return false
    for (const { account, want } of demands) reservation.add(this.#open(this.#accounts.get(account), want), want)
    return true
  }

  /** Books `used` of what was held of a cell. */
  settle(cell: WorkerCell, held: number, used: number): void {
    cell.open -= held
    // No limit is larger: what is beyond that changes nothing, and the counter stays an exact integer.
    cell.settled = Math.min(cell.settled + used, mostHeld)
    cell.usedAt = this.#options.clock.monotonic()
    cell.settledBy = null
    if (held === used) return
    const account = this.#accounts.get(plainName(cell.account))
    if (account.tight) this.#report.add(cell.account)
    if (account.tight || account.waiting > 0) this.#flushSoon()
  }

  #wait(demands: readonly Demand[], signal: AbortSignal): Promise<Reservation> {
    const { clock, after, usageWaitMs } = this.#options
    const { promise, resolve, reject } = Promise.withResolvers<Reservation>()
    if (signal.aborted) return Promise.reject(signal.reason)
    const leave = () => {
      if (this.#waiting.remove(request)) reject(signal.reason)
    }
    const request = this.#waiting.add({
      demands,
      since: clock.monotonic(),
      resolve(reservation) {
        signal.removeEventListener('abort', leave)
        resolve(reservation)
      },
      reject(reason) {
        signal.removeEventListener('abort', leave)
        reject(reason)
      },
    })
    signal.addEventListener('abort', leave, { once: true })
    after(Math.max(usageWaitMs, recallWaitMs) + onTheWayMs, () => {
      if (!this.#waiting.remove(request)) return
      // It is waited for what others hold, and the answer is under way: nobody is out of reach.
      const lately = request.since - usageWaitMs
      const held = this.#unanswered
        ? undefined
        : demands.find((each) => this.#accounts.get(each.account).shortAt > lately)
      const { account } = held ?? demands[0] ?? { account: '' }
      const pause = Math.ceil(Math.max(0, ...demands.map((each) => this.#pause(each.account))) / 1000)
      const reason = held === undefined ? 'unknown' : 'held'
      request.reject(new UsageRefused(account, reason, { retryAfter: Math.max(pause, retryAfterSeconds) }))
    })
    this.#flushSoon()
    return promise
  }

  #serve(partial: ReadonlySet<string>): void {
    for (const [request, shares] of this.#waiting.served(partial)) {
      const reservation = new WorkerReservation(this)
      for (const [account, amount] of shares) reservation.add(this.#open(account, amount), amount)
      request.resolve(reservation)
    }
  }

  #flushSoon(): void {
    if (this.#flushing || this.#stopped) return
    this.#flushing = true
    this.#options.after(0, () => {
      this.#flushing = false
      this.#flush()
    })
  }

  /** Sends what there is to say: returns and asks together, and tight asks apart. */
  #flush(): void {
    if (this.#stopped) return
    this.#serve(none)
    if (!this.#greeted) return
    const asks = new Map<string, Ask>()
    for (const group of this.#waiting.wanted()) {
      if ([...group.keys()].some((name) => this.#accounts.get(name).tight)) this.#askTogether(group)
      else this.#askEach(group, asks)
    }
    for (const account of this.#ahead) {
      const { name, cell, tight, asking, waiting } = account
      if (cell !== null && !tight && !asking && waiting === 0 && this.#pause(name) <= 0) {
        asks.set(name, {
          account: name,
          want: Math.min(Math.max(1, cell.reserved), mostAsked),
          min: 0,
          waited: 0,
          wait: this.#options.usageWaitMs,
          tight: false,
        })
      }
    }
    this.#ahead.clear()
    const told = new Set(this.#report)
    this.#report.clear()
    if (asks.size > 0 || told.size > 0) void this.#exchange([...asks.values()], told)
  }

  #askEach(group: ReadonlyMap<string, Wanted>, asks: Map<string, Ask>): void {
    for (const [name, { want, min, since }] of group) {
      const account = this.#accounts.get(name)
      const known = asks.get(name)
      const missing = known === undefined ? want - this.#accounts.balance(account) : want
      if (account.asking || missing <= 0 || this.#pause(name) > 0) continue
      const asked = { want: Math.min(missing + (known?.want ?? 0), mostAsked), min: Math.min(min, known?.min ?? min) }
      asks.set(name, {
        account: name,
        ...asked,
        waited: this.#since(since),
        wait: this.#options.usageWaitMs,
        tight: false,
      })
    }
  }

  /** Asks for all that a group of requests lacks in one message, keeping nothing of it meanwhile. */
  #askTogether(group: ReadonlyMap<string, Wanted>): void {
    const asks: Ask[] = []
    const told = new Set<string>()
    for (const [name, { want, min, since }] of group) {
      const account = this.#accounts.get(name)
      if (account.asking || this.#pause(name) > 0) return
      if (!account.tight && this.#accounts.balance(account) >= want) continue
      account.tight = true
      const [waited, wait] = [this.#since(since), this.#options.usageWaitMs]
      asks.push({ account: name, want: Math.min(want, mostAsked), min, waited, wait, tight: true })
      if (account.cell !== null) told.add(account.cell.account)
    }
    for (const booked of told) this.#report.delete(booked)
    if (asks.length > 0) void this.#exchange(asks, told)
  }

  /** For how long the control plane is not to be asked for an account, in milliseconds; none or less where it may be. */
  #pause(account: AccountName): number {
    return this.#accounts.get(account).askAt - this.#options.clock.monotonic()
  }

  #since(instant: number): number {
    return Math.round(this.#options.clock.monotonic() - instant)
  }

  /** One message and what it is answered with. `told` names cells to be told of; what they have spare goes back. */
  async #exchange(asks: readonly Ask[], told: ReadonlySet<string>): Promise<void> {
    const [epoch, upTo, message] = [this.#epoch, this.#waiting.last, ++this.#sent]
    for (const { account } of asks) this.#accounts.get(account).asking = true
    this.#inFlight.add(message)
    try {
      await this.#giveBack(told)
      if (epoch !== this.#epoch) return
      const cells = this.#reports(asks, told)
      const sentAt = this.#options.clock.monotonic()
      const { process, send } = this.#options
      const reply = await send({ process, number: message, hello: null, asks, cells })
      this.#unanswered = false
      if (epoch !== this.#epoch) return this.#doubt(asks)
      this.#accounts.contact(sentAt)
      for (const { account } of asks) this.#accounts.get(account).asking = false
      this.#heard(reply, { asks, cells, upTo, message, sentAt })
    } catch {
      // Out of reach, or not ready for us: what waits is asked for again until its time is over, and says so then.
      this.#unanswered = true
      this.#doubt(asks)
      if (epoch === this.#epoch) this.#failed(asks)
    } finally {
      this.#inFlight.delete(message)
    }
  }

  #failed(asks: readonly Ask[]): void {
    for (const { account } of asks) this.#accounts.get(account).asking = false
    if (asks.length > 0) this.#options.after(retryMs, () => this.#flushSoon())
  }

  /**
   * Something may be granted to these asks of which no answer will tell: it is looked for, for a while. It may be booked in
   * another window than the one that is known, so it is looked for by the plain name too.
   */
  #doubt(asks: readonly Ask[]): void {
    const until = this.#options.clock.monotonic() + doubtMs
    for (const { account } of asks) {
      this.#doubtful.set(account, until)
      const { cell } = this.#accounts.get(account)
      if (cell !== null) this.#doubtful.set(cell.account, until)
    }
  }

  /** Returns what cells can spare, once nothing that freed it can be lost any more. */
  async #giveBack(told: ReadonlySet<string>): Promise<void> {
    const { journal } = this.#options
    if (journal.owing) return
    const given: [WorkerCell, number][] = []
    for (const name of told) {
      const cell = this.#accounts.cell(name)
      if (cell === undefined || !this.#accounts.canSpare(cell, this.#draining)) continue
      const { balance } = cell
      given.push([cell, balance])
      cell.returned += balance
    }
    const sayable = await journal.committed().then(
      () => !journal.owing,
      () => false,
    )
    for (const [cell, amount] of given) {
      if (sayable) cell.sayable += amount
      else cell.returned -= amount
    }
  }

  #reports(asks: readonly Ask[], told: ReadonlySet<string>): CellReport[] {
    const names = new Set(told)
    for (const { account } of asks) {
      const { cell } = this.#accounts.get(account)
      if (cell !== null) names.add(cell.account)
    }
    return [...names].map((booked) => this.#accounts.cell(booked)?.report() ?? noCell(booked))
  }

  #heard(
    reply: LeaseReply,
    sent: { asks: readonly Ask[]; cells: readonly CellReport[]; upTo: number; message: number; sentAt: number },
  ): void {
    if (reply.hello === 'needed') return void this.#greet()
    for (const report of sent.cells) {
      const { account } = report
      this.#accounts.cell(account)?.hear(report)
      const doubt = this.#doubtful.get(account)
      if (doubt !== undefined && doubt < sent.sentAt) this.#doubtful.delete(account)
    }
    for (const totals of reply.cells) {
      if (!this.#accounts.adopt(totals, sent.message)) this.#doubtful.set(totals.account, sent.sentAt + doubtMs)
    }
    const partial = new Set<string>()
    for (const grant of reply.grants) {
      const account = this.#accounts.get(grant.account)
      const cell = this.#accounts.cell(grant.booked) ?? null
      if (cell !== null) cell.reserved = 0
      account.cell = cell
      account.until = grant.until
      account.tight = grant.tight
      account.exhausted = null
      if (grant.partial) {
        partial.add(grant.account)
        account.shortAt = this.#options.clock.monotonic()
      }
    }
    for (const name of reply.later) {
      const account = this.#accounts.get(name)
      account.tight = true
      account.shortAt = this.#options.clock.monotonic()
    }
    this.#serve(partial)
    for (const denial of reply.denials) this.#deny(denial, sent)
    for (const { account } of [...reply.cells, ...sent.cells]) {
      const cell = this.#accounts.cell(account)
      if (cell !== undefined && this.#accounts.canSpare(cell)) this.#report.add(account)
    }
    this.#flushSoon()
  }

  #deny(denial: Denial, sent: { asks: readonly Ask[]; upTo: number }): void {
    const { account: name, reason, retry_after: retryAfter, left, until } = denial
    const { clock, usageWaitMs } = this.#options
    const account = this.#accounts.get(name)
    account.tight = true
    const isFinal = reason === 'exhausted' || reason === 'short'
    if (isFinal && until !== null && clock.now() >= until) {
      // The window that this was said of has ended: the next one is asked for.
      account.askAt = clock.monotonic() + retryMs
      this.#options.after(retryMs, () => this.#flushSoon())
      return
    }
    const min = sent.asks.find((ask) => ask.account === name)?.min ?? 1
    if (reason === 'held') account.shortAt = this.#options.clock.monotonic()
    if (reason === 'exhausted' || reason === 'short') this.#accounts.refuse(account, min, { ...denial, reason })
    if (reason === 'unknown' && retryAfter !== null) {
      account.askAt = this.#options.clock.monotonic() + 1000 * retryAfter
      this.#options.after(1000 * retryAfter, () => this.#flushSoon())
    }
    // Whoever came later than the oldest may still get what comes back.
    const cameBy = isFinal ? Number.POSITIVE_INFINITY : clock.monotonic() - usageWaitMs
    for (const request of this.#waiting.takeRefused(account, sent.upTo, cameBy + deniedEarlyMs)) {
      request.reject(new UsageRefused(name, reason, { retryAfter, left }))
    }
  }

  /** Says what this process holds, until the ledger has all that went before and takes it. */
  async #greet(): Promise<void> {
    const { journal, crash, clock, after, process, send } = this.#options
    const epoch = ++this.#epoch
    this.#greeted = false
    for (const account of this.#accounts.all()) {
      account.asking = false
      account.askAt = Number.NEGATIVE_INFINITY
    }
    const through = journal.lastEvent
    let behind = behindMs
    while (epoch === this.#epoch && !this.#stopped) {
      const counted = journal.lastEvent
      const cells = [...this.#accounts.cells()].map((cell) => cell.report())
      const message = ++this.#sent
      const sentAt = clock.monotonic()
      let pause = behind
      behind = Math.min(2 * behind, mostBehindMs)
      try {
        const reply = await send({
          process,
          number: message,
          hello: { through, counted, crashed: crash.happened },
          asks: [],
          cells,
        })
        if (epoch !== this.#epoch) return
        if (reply.hello === 'done') {
          this.#greeted = true
          crash.told()
          this.#accounts.contact(sentAt)
          return this.#heard(reply, { asks: [], cells, upTo: 0, message, sentAt })
        }
      } catch {
        // Out of reach: the next stream brings another hello; until then this one is tried again.
        pause = retryMs
      }
      await new Promise<void>((resolve) => after(pause, resolve))
    }
  }
}
