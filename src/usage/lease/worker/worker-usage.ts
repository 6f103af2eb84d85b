/**
 * The worker's side of the lease protocol (usage/lease/lease.ts): the balances that the gateway reserves from, and the
 * messages that keep them filled.
 *
 *  1. A reservation is taken from balances in the same tick if they suffice. Otherwise the request waits, holding
 *     nothing, and the worker asks for what is missing: one grant request in flight for each account, for all waiting requests.
 *     If the control plane cannot answer, it is asked again at the time that it named. A request that has waited
 *     `usage_wait_seconds` and half a second more is refused.
 *  2. When more is used than the balance will last for, the worker asks ahead of need.
 *  3. When little is left (`near_limit`), it asks for nothing ahead. A grant request keeps nothing back and, for requests on several
 *     accounts, asks for all of them together. What an outcome frees is returned in the same tick. A recall makes an
 *     account near its limit.
 *  4. A balance that was unused for 2 s is returned. An empty one that the ledger knows completely is dropped.
 *  5. With each stream the worker registers the balances of this process. Everything else of the worker is then free.
 *
 * An amount that an outcome frees is reported as returned only after that outcome is committed to the journal. While an
 * outcome could not be written, nothing is returned and the journal opens nothing, since a restart would settle the
 * exchange in full. A reply counts only if no registration was sent since its request: its grant may be free again.
 *
 * Longer than most: grant requests, reports and replies share the state of an account.
 */
import type { Clock } from '../../../lib/clock.ts'
import {
  type AccountName,
  type Demand,
  type Reservation,
  type ReservedAmount,
  type UsageLimits,
  UsageRefused,
} from '../../usage-limits.ts'
import { type TotalDemand, WaitingRequests } from '../../waiting-requests.ts'
import {
  type BalanceReport,
  type GrantRequest,
  type LeaseRefusal,
  type LeaseReply,
  type LeaseRequest,
  maxAmount,
  maxRequestedAmount,
  plainName,
  recallWaitMs,
} from '../lease.ts'
import { WorkerReservation } from './reservation.ts'
import { type WorkerAccount, WorkerAccounts } from './worker-accounts.ts'
import { type WorkerBalance, zeroBalance } from './worker-balance.ts'

/** What the lease protocol needs from the outbox. */
export interface UsageJournal {
  /** An outcome could not be written and will be retried. */
  readonly hasUnwrittenOutcomes: boolean
  readonly lastEvent: number
  /** The last event that the ledger has acknowledged. */
  readonly acknowledgedEvent: number
  /** Resolves when everything appended so far is committed. */
  committed(): Promise<void>
}

export interface WorkerUsageOptions {
  process: string
  /**
   * Whether the host went down, or the journal was damaged, since a process of this worker last registered. Kept
   * through restarts until it is reported.
   */
  crash: { readonly happened: boolean; reported(): void }
  /** `now` is the gateway's own time. */
  clock: Clock
  journal: UsageJournal
  /** How long a request may wait in all for what others hold, in milliseconds. */
  usageWaitMs: number
  send(request: LeaseRequest): Promise<LeaseReply>
  /** Runs `work` after this time; 0 means at the end of this tick. */
  after(milliseconds: number, work: () => void): void
}

/** How much longer than `usageWaitMs` a request waits, for the round trip. */
const roundTripMs = 500
/**
 * The control plane counts from the arrival of a grant request. A request that has waited nearly as long is refused
 * with the oldest.
 */
const refusedEarlyMs = 100
const retryMs = 100
/** While events are missing, the registration is repeated after this time, doubled each time. */
const behindMs = 20
const maxBehindMs = 320
/** How long the control plane may still grant a failed grant request. */
const uncertainMs = 10_000
const retryAfterSeconds = 1
const none: ReadonlySet<string> = new Set()

export class WorkerUsage implements UsageLimits {
  readonly #options: WorkerUsageOptions
  readonly #accounts: WorkerAccounts
  readonly #waiting: WaitingRequests
  /** Accounts to report with the next message, by booked name. */
  readonly #report = new Set<string>()
  /**
   * Accounts of failed grant requests, by booked or plain name: until when (monotonic) they are reported to find a
   * late grant.
   */
  readonly #uncertain = new Map<string, number>()
  readonly #prefetch = new Set<WorkerAccount>()
  readonly #inFlight = new Set<number>()
  #sent = 0
  /** Raised with each registration. */
  #epoch = 0
  #isRegistered = false
  #flushing = false
  #draining = false
  #stopped = false
  /** The last completed message got no answer. */
  #unanswered = false

  constructor(options: WorkerUsageOptions) {
    this.#options = options
    this.#accounts = new WorkerAccounts(options.clock)
    this.#waiting = new WaitingRequests(this.#accounts)
  }

  reserve(demands: readonly Demand[], signal: AbortSignal): Reservation | Promise<Reservation> {
    // Nothing would be asked for, so no reply would ever come.
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

  /** The stream was opened or reopened: registers what this process holds. */
  connected(): void {
    void this.#register()
  }

  /** The control plane recalls what is not open of these accounts. Their limits may have changed. */
  recall(booked: readonly string[]): void {
    for (const name of booked) {
      const account = this.#accounts.get(plainName(name))
      account.nearLimit = true
      this.#accounts.forgetRefusals(plainName(name))
      account.askAt = Number.NEGATIVE_INFINITY
      this.#report.add(account.balance?.account ?? name)
    }
    this.#flushSoon()
  }

  /** Call about once a second. */
  tick(): void {
    for (const balance of this.#accounts.idle()) this.#report.add(balance.account)
    for (const balance of this.#accounts.balances())
      if (balance.acknowledgedReturned < balance.returned) this.#report.add(balance.account)
    for (const account of this.#uncertain.keys()) this.#report.add(account)
    const { hasUnwrittenOutcomes, lastEvent, acknowledgedEvent } = this.#options.journal
    if (!hasUnwrittenOutcomes) this.#accounts.forget({ lastEvent, acknowledged: acknowledgedEvent, sent: this.#sent })
    this.#accounts.answeredTo(Math.min(this.#sent + 1, ...this.#inFlight))
    if (this.#isRegistered && this.#inFlight.size === 0 && this.#accounts.needsContact) void this.#exchange([], none)
    this.#flushSoon()
  }

  /** Returns everything that is not open. Resolves when the control plane knows, or cannot be reached. */
  async drain(): Promise<void> {
    this.#draining = true
    const balances = [...this.#accounts.idle(true)]
    if (balances.length > 0 && this.#isRegistered)
      await this.#exchange([], new Set(balances.map(({ account }) => account)))
    this.#stopped = true
    this.#epoch++
  }

  /**
   * The worker's memory is an older copy, so what its former process spent is unknown: its whole balance counts as
   * spent (usage/lease/README.md rule 14). Resolves when the control plane knows, or cannot be reached.
   */
  async giveUp(): Promise<void> {
    this.#stopped = true
    this.#epoch++
    const { process, send } = this.#options
    const registration = { through: 0, counted: 0, crashed: true }
    try {
      await send({ process, number: ++this.#sent, registration, grant_requests: [], balances: [] })
    } catch {
      // Then it stays spent until the worker is found to be lost.
    }
  }

  /** Opens an amount, and asks ahead if the balance will not last for as much again. */
  #open(account: WorkerAccount, amount: number): WorkerBalance {
    const balance = this.#accounts.open(account, amount)
    if (!account.nearLimit && !account.asking && balance.available < balance.reserved) {
      this.#prefetch.add(account)
      this.#flushSoon()
    }
    return balance
  }

  /** Reserves more at once, or nothing. */
  extend(reservation: WorkerReservation, more: readonly ReservedAmount[]): boolean {
    const demands = more.map(({ account, amount }) => ({ account: plainName(account), want: amount, min: amount }))
    if (!this.#accounts.fit(demands)) return false
    for (const { account, want } of demands) reservation.add(this.#open(this.#accounts.get(account), want), want)
    return true
  }

  /** Books `used` of the amount held on a balance. */
  book(balance: WorkerBalance, held: number, used: number): void {
    balance.open -= held
    // No limit is larger, so a larger amount changes nothing, and the counter stays an exact integer.
    balance.settled = Math.min(balance.settled + used, maxAmount)
    balance.usedAt = this.#options.clock.monotonic()
    balance.settledBy = null
    if (held === used) return
    const account = this.#accounts.get(plainName(balance.account))
    if (account.nearLimit) this.#report.add(balance.account)
    if (account.nearLimit || account.waiting > 0) this.#flushSoon()
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
    after(Math.max(usageWaitMs, recallWaitMs) + roundTripMs, () => {
      if (!this.#waiting.remove(request)) return
      // The request waited for amounts held by others, and the reply is on its way: nobody is unreachable.
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

  /**
   * Sends returns and grant requests together, and each group of grant requests near a limit in a message of its own.
   */
  #flush(): void {
    if (this.#stopped) return
    this.#serve(none)
    if (!this.#isRegistered) return
    const grantRequests = new Map<string, GrantRequest>()
    for (const group of this.#waiting.totalDemands()) {
      if ([...group.keys()].some((name) => this.#accounts.get(name).nearLimit)) this.#requestTogether(group)
      else this.#requestEach(group, grantRequests)
    }
    for (const account of this.#prefetch) {
      const { name, balance, nearLimit, asking, waiting } = account
      if (balance !== null && !nearLimit && !asking && waiting === 0 && this.#pause(name) <= 0) {
        grantRequests.set(name, {
          account: name,
          want: Math.min(Math.max(1, balance.reserved), maxRequestedAmount),
          min: 0,
          waited: 0,
          wait: this.#options.usageWaitMs,
          near_limit: false,
        })
      }
    }
    this.#prefetch.clear()
    const reported = new Set(this.#report)
    this.#report.clear()
    if (grantRequests.size > 0 || reported.size > 0) void this.#exchange([...grantRequests.values()], reported)
  }

  #requestEach(group: ReadonlyMap<string, TotalDemand>, grantRequests: Map<string, GrantRequest>): void {
    for (const [name, { want, min, since }] of group) {
      const account = this.#accounts.get(name)
      const known = grantRequests.get(name)
      const missing = known === undefined ? want - this.#accounts.available(account) : want
      if (account.asking || missing <= 0 || this.#pause(name) > 0) continue
      const amounts = {
        want: Math.min(missing + (known?.want ?? 0), maxRequestedAmount),
        min: Math.min(min, known?.min ?? min),
      }
      grantRequests.set(name, {
        account: name,
        ...amounts,
        waited: this.#since(since),
        wait: this.#options.usageWaitMs,
        near_limit: false,
      })
    }
  }

  /** Asks in one message for all that a group of requests needs, and keeps nothing of it meanwhile. */
  #requestTogether(group: ReadonlyMap<string, TotalDemand>): void {
    const grantRequests: GrantRequest[] = []
    const reported = new Set<string>()
    for (const [name, { want, min, since }] of group) {
      const account = this.#accounts.get(name)
      if (account.asking || this.#pause(name) > 0) return
      if (!account.nearLimit && this.#accounts.available(account) >= want) continue
      account.nearLimit = true
      const [waited, wait] = [this.#since(since), this.#options.usageWaitMs]
      grantRequests.push({
        account: name,
        want: Math.min(want, maxRequestedAmount),
        min,
        waited,
        wait,
        near_limit: true,
      })
      if (account.balance !== null) reported.add(account.balance.account)
    }
    for (const booked of reported) this.#report.delete(booked)
    if (grantRequests.length > 0) void this.#exchange(grantRequests, reported)
  }

  /** How long the control plane must not be asked for an account, in milliseconds; zero or less if it may be asked. */
  #pause(account: AccountName): number {
    return this.#accounts.get(account).askAt - this.#options.clock.monotonic()
  }

  #since(instant: number): number {
    return Math.round(this.#options.clock.monotonic() - instant)
  }

  /** Sends one message and applies its reply. `reported` names balances to report; what they can spare is returned. */
  async #exchange(grantRequests: readonly GrantRequest[], reported: ReadonlySet<string>): Promise<void> {
    const [epoch, upTo, message] = [this.#epoch, this.#waiting.last, ++this.#sent]
    for (const { account } of grantRequests) this.#accounts.get(account).asking = true
    this.#inFlight.add(message)
    try {
      await this.#giveBack(reported)
      if (epoch !== this.#epoch) return
      const balances = this.#reports(grantRequests, reported)
      const sentAt = this.#options.clock.monotonic()
      const { process, send } = this.#options
      const reply = await send({
        process,
        number: message,
        registration: null,
        grant_requests: grantRequests,
        balances,
      })
      this.#unanswered = false
      if (epoch !== this.#epoch) return this.#markUncertain(grantRequests)
      this.#accounts.contact(sentAt)
      for (const { account } of grantRequests) this.#accounts.get(account).asking = false
      this.#applyReply(reply, { grantRequests, balances, upTo, message, sentAt })
    } catch {
      // Unreachable or not ready: what waits is asked for again until its time is over, and is refused then.
      this.#unanswered = true
      this.#markUncertain(grantRequests)
      if (epoch === this.#epoch) this.#failed(grantRequests)
    } finally {
      this.#inFlight.delete(message)
    }
  }

  #failed(grantRequests: readonly GrantRequest[]): void {
    for (const { account } of grantRequests) this.#accounts.get(account).asking = false
    if (grantRequests.length > 0) this.#options.after(retryMs, () => this.#flushSoon())
  }

  /**
   * These may have been granted without a reply reaching the worker, so they are reported for a while. The grant
   * may be in another window than the known one, so the plain name is reported too.
   */
  #markUncertain(grantRequests: readonly GrantRequest[]): void {
    const until = this.#options.clock.monotonic() + uncertainMs
    for (const { account } of grantRequests) {
      this.#uncertain.set(account, until)
      const { balance } = this.#accounts.get(account)
      if (balance !== null) this.#uncertain.set(balance.account, until)
    }
  }

  /** Returns what balances can spare, once the outcomes that freed it are durable. */
  async #giveBack(reported: ReadonlySet<string>): Promise<void> {
    const { journal } = this.#options
    if (journal.hasUnwrittenOutcomes) return
    const returns: [WorkerBalance, number][] = []
    for (const name of reported) {
      const balance = this.#accounts.balance(name)
      if (balance === undefined || !this.#accounts.canSpare(balance, this.#draining)) continue
      const { available } = balance
      returns.push([balance, available])
      balance.returned += available
    }
    const reportable = await journal.committed().then(
      () => !journal.hasUnwrittenOutcomes,
      () => false,
    )
    for (const [balance, amount] of returns) {
      if (reportable) balance.reportable += amount
      else balance.returned -= amount
    }
  }

  #reports(grantRequests: readonly GrantRequest[], reported: ReadonlySet<string>): BalanceReport[] {
    const names = new Set(reported)
    for (const { account } of grantRequests) {
      const { balance } = this.#accounts.get(account)
      if (balance !== null) names.add(balance.account)
    }
    return [...names].map((booked) => this.#accounts.balance(booked)?.report() ?? zeroBalance(booked))
  }

  #applyReply(
    reply: LeaseReply,
    sent: {
      grantRequests: readonly GrantRequest[]
      balances: readonly BalanceReport[]
      upTo: number
      message: number
      sentAt: number
    },
  ): void {
    if (reply.registration === 'needed') return void this.#register()
    for (const report of sent.balances) {
      const { account } = report
      this.#accounts.balance(account)?.acknowledge(report)
      const doubt = this.#uncertain.get(account)
      if (doubt !== undefined && doubt < sent.sentAt) this.#uncertain.delete(account)
    }
    for (const totals of reply.balances) {
      if (!this.#accounts.adopt(totals, sent.message)) this.#uncertain.set(totals.account, sent.sentAt + uncertainMs)
    }
    const partial = new Set<string>()
    for (const grant of reply.grants) {
      const account = this.#accounts.get(grant.account)
      const balance = this.#accounts.balance(grant.booked) ?? null
      if (balance !== null) balance.reserved = 0
      account.balance = balance
      account.until = grant.until
      account.nearLimit = grant.near_limit
      account.exhausted = null
      if (grant.partial) {
        partial.add(grant.account)
        account.shortAt = this.#options.clock.monotonic()
      }
    }
    for (const name of reply.deferred) {
      const account = this.#accounts.get(name)
      account.nearLimit = true
      account.shortAt = this.#options.clock.monotonic()
    }
    this.#serve(partial)
    for (const refusal of reply.refusals) this.#applyRefusal(refusal, sent)
    for (const { account } of [...reply.balances, ...sent.balances]) {
      const balance = this.#accounts.balance(account)
      if (balance !== undefined && this.#accounts.canSpare(balance)) this.#report.add(account)
    }
    this.#flushSoon()
  }

  #applyRefusal(refusal: LeaseRefusal, sent: { grantRequests: readonly GrantRequest[]; upTo: number }): void {
    const { account: name, reason, retry_after: retryAfter, left, until } = refusal
    const { clock, usageWaitMs } = this.#options
    const account = this.#accounts.get(name)
    account.nearLimit = true
    const isFinal = reason === 'exhausted' || reason === 'short' || reason === 'too_many_values'
    if (isFinal && until !== null && clock.now() >= until) {
      // The refused window has ended: ask for the next one.
      account.askAt = clock.monotonic() + retryMs
      this.#options.after(retryMs, () => this.#flushSoon())
      return
    }
    const min = sent.grantRequests.find((grantRequest) => grantRequest.account === name)?.min ?? 1
    if (reason === 'held') account.shortAt = this.#options.clock.monotonic()
    if (reason === 'exhausted' || reason === 'short' || reason === 'too_many_values') {
      this.#accounts.refuse(account, min, { ...refusal, reason })
    }
    if (reason === 'unknown' && retryAfter !== null) {
      account.askAt = this.#options.clock.monotonic() + 1000 * retryAfter
      this.#options.after(1000 * retryAfter, () => this.#flushSoon())
    }
    // Requests that came later than the oldest may still get what comes back.
    const arrivedBy = isFinal ? Number.POSITIVE_INFINITY : clock.monotonic() - usageWaitMs
    for (const request of this.#waiting.takeRefused(account, sent.upTo, arrivedBy + refusedEarlyMs)) {
      request.reject(new UsageRefused(name, reason, { retryAfter, left }))
    }
  }

  /** Reports what this process holds until the ledger has all earlier events and accepts the registration. */
  async #register(): Promise<void> {
    const { journal, crash, clock, after, process, send } = this.#options
    const epoch = ++this.#epoch
    this.#isRegistered = false
    for (const account of this.#accounts.all()) {
      account.asking = false
      account.askAt = Number.NEGATIVE_INFINITY
    }
    const through = journal.lastEvent
    let behind = behindMs
    while (epoch === this.#epoch && !this.#stopped) {
      const counted = journal.lastEvent
      const balances = [...this.#accounts.balances()].map((balance) => balance.report())
      const message = ++this.#sent
      const sentAt = clock.monotonic()
      let pause = behind
      behind = Math.min(2 * behind, maxBehindMs)
      try {
        const reply = await send({
          process,
          number: message,
          registration: { through, counted, crashed: crash.happened },
          grant_requests: [],
          balances,
        })
        if (epoch !== this.#epoch) return
        if (reply.registration === 'done') {
          this.#isRegistered = true
          crash.reported()
          this.#accounts.contact(sentAt)
          return this.#applyReply(reply, { grantRequests: [], balances, upTo: 0, message, sentAt })
        }
      } catch {
        // Unreachable. The next stream starts another registration; until then this one is retried.
        pause = retryMs
      }
      await new Promise<void>((resolve) => after(pause, resolve))
    }
  }
}
