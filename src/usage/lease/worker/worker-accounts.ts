/**
 * The accounts that a worker knows, and what it may spend of each, by the worker's invariant: settled + open ≤ granted
 * − returned.
 */
import type { Clock } from '../../../lib/clock.ts'
import type { AccountName, Demand } from '../../usage-limits.ts'
import { type BalanceTotals, type LeaseRefusal, outstanding, plainName } from '../lease.ts'
import { WorkerBalance } from './worker-balance.ts'

export interface WorkerAccount {
  readonly name: AccountName
  /** The balance to spend from; for a budget with windows, that of the current window. */
  balance: WorkerBalance | null
  /** The end of the window, milliseconds since the epoch. */
  until: number | null
  /** Little is left anywhere: the worker keeps only open amounts. */
  nearLimit: boolean
  asking: boolean
  /** How many requests wait for it. */
  waiting: number
  /** When the control plane last said that too little is left for all; monotonic. */
  shortAt: number
  /** The control plane could not answer. It is not asked again before this instant; monotonic. */
  askAt: number
  /** The last refusal: too little is left for requests that need this much. */
  exhausted: CachedRefusal | null
}

export interface CachedRefusal {
  min: number
  /** Monotonic. */
  until: number
  reason: 'exhausted' | 'short' | 'too_many_values'
  retryAfter: number | null
  left: number | null
}

/** How long balances may be spent after the last answered message, counted from when that was sent. */
const leaseMs = 30_000
/** How often a worker that holds something sends a message when it has nothing else to send. */
const contactMs = 5000
const idleMs = 2000
/** How long a refusal is cached. */
const refusalMs = 5000

export class WorkerAccounts {
  readonly #clock: Clock
  readonly #accounts = new Map<AccountName, WorkerAccount>()
  readonly #balances = new Map<string, WorkerBalance>()
  /** Those with a cached refusal. Some of the refusals may be over. */
  readonly #refused = new Set<WorkerAccount>()
  /**
   * Dropped balances, with the number of the last message sent before. Replies to those messages must not bring them
   * back.
   */
  readonly #forgotten = new Map<string, number>()
  /** Monotonic. */
  #usableUntil = Number.NEGATIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get(name: AccountName): WorkerAccount {
    const known = this.#accounts.get(name)
    if (known !== undefined) return known
    const never = { shortAt: Number.NEGATIVE_INFINITY, askAt: Number.NEGATIVE_INFINITY, exhausted: null }
    const fresh = { name, balance: null, until: null, nearLimit: false, asking: false, waiting: 0, ...never }
    this.#accounts.set(name, fresh)
    return fresh
  }

  balance(booked: string): WorkerBalance | undefined {
    return this.#balances.get(booked)
  }

  balances(): IterableIterator<WorkerBalance> {
    return this.#balances.values()
  }

  all(): IterableIterator<WorkerAccount> {
    return this.#accounts.values()
  }

  /** A message that was sent at this instant (monotonic) was answered. */
  contact(sentAt: number): void {
    this.#usableUntil = Math.max(this.#usableUntil, sentAt + leaseMs)
  }

  /** Whether balances may soon lapse because no message was answered for a while. */
  get needsContact(): boolean {
    return this.#balances.size > 0 && this.#clock.monotonic() > this.#usableUntil - leaseMs + contactMs
  }

  /** How many accounts are known. */
  get size(): number {
    return this.#accounts.size
  }

  /** What may be reserved of an account now. */
  available(account: WorkerAccount): number {
    if (account.until !== null && this.#clock.now() >= account.until) this.#endWindow(account)
    const { balance } = account
    return balance === null || this.#clock.monotonic() > this.#usableUntil ? 0 : balance.available
  }

  /** Whether all demands fit at once, without overtaking a waiting request. */
  fit(demands: readonly Demand[]): boolean {
    for (const { account: name, want } of demands) {
      const account = this.#accounts.get(name)
      if (account === undefined || account.waiting > 0 || this.available(account) < want) return false
    }
    return true
  }

  /** The account whose cached refusal applies to these demands, or null. */
  refused(demands: readonly Demand[]): WorkerAccount | null {
    for (const { account: name, min } of demands) {
      const account = this.#accounts.get(name)
      const refusal = account?.exhausted ?? null
      if (account === undefined || refusal === null) continue
      if (this.#clock.monotonic() >= refusal.until) account.exhausted = null
      else if (min >= refusal.min && this.available(account) < min) return account
    }
    return null
  }

  /** Drops cached refusals of an account and, for a per-value budget, of all its values. */
  forgetRefusals(name: AccountName): void {
    for (const account of this.#refused) {
      if (account.name !== name && !account.name.startsWith(`${name}/`)) continue
      account.exhausted = null
      this.#refused.delete(account)
    }
  }

  /** Caches a refusal for a while, at most until its window ends. */
  refuse(account: WorkerAccount, min: number, refusal: LeaseRefusal & Pick<CachedRefusal, 'reason'>): void {
    const { reason, left, retry_after: retryAfter, until: windowEnd } = refusal
    const rest = windowEnd === null ? Number.POSITIVE_INFINITY : windowEnd - this.#clock.now()
    account.exhausted = { min, until: this.#clock.monotonic() + Math.min(refusalMs, rest), reason, retryAfter, left }
    this.#refused.add(account)
  }

  /** Reserves an amount of an account. The balance must have it. */
  open(account: WorkerAccount, amount: number): WorkerBalance {
    const { balance } = account
    if (balance === null || balance.available < amount) throw new RangeError(`${account.name} does not hold ${amount}`)
    balance.open += amount
    balance.reserved += amount
    balance.usedAt = this.#clock.monotonic()
    return balance
  }

  /**
   * Applies a balance from the reply to message number `message`. An unknown balance is taken as the ledger has it,
   * since only balances that the ledger knows completely are ever dropped. Returns false if the reply is older than
   * the drop and a later reply may still bring a grant.
   */
  adopt(totals: BalanceTotals, message: number): boolean {
    const known = this.#balances.get(totals.account)
    if (known !== undefined) {
      if (known.adopt(totals)) {
        const account = this.#accounts.get(plainName(totals.account))
        if (account !== undefined) account.exhausted = null
      }
      return true
    }
    if (message <= (this.#forgotten.get(totals.account) ?? 0)) return outstanding(totals) === 0
    const balance = new WorkerBalance(totals, this.#clock.monotonic())
    this.#balances.set(totals.account, balance)
    const account = this.get(plainName(totals.account))
    if (account.name === totals.account) account.balance = balance
    return true
  }

  /** Balances with something to return. */
  *idle(all = false): Generator<WorkerBalance> {
    for (const balance of this.#balances.values()) if (this.canSpare(balance, all)) yield balance
  }

  /** Whether a balance has something to return: it is idle, its window ended, or its account is near its limit. */
  canSpare(balance: WorkerBalance, all = false): boolean {
    if (balance.available <= 0) return false
    const account = this.#accounts.get(plainName(balance.account))
    const kept = account?.balance === balance && !account.nearLimit
    return all || !kept || balance.usedAt <= this.#clock.monotonic() - idleMs
  }

  /**
   * Drops empty balances that the ledger knows completely. `lastEvent` is the last committed event, `acknowledged` the
   * last that the ledger has, `sent` the number of the last message.
   */
  forget({ lastEvent, acknowledged, sent }: { lastEvent: number; acknowledged: number; sent: number }): void {
    const before = this.#clock.monotonic() - idleMs
    for (const balance of this.#balances.values()) {
      const empty = balance.open === 0 && balance.available <= 0 && balance.acknowledgedReturned === balance.returned
      const asking = this.#accounts.get(plainName(balance.account))?.asking ?? false
      if (!empty || asking || balance.usedAt > before) continue
      balance.settledBy ??= lastEvent
      if (balance.settledBy <= acknowledged) this.#drop(balance, sent)
    }
    const now = this.#clock.monotonic()
    for (const account of this.#accounts.values()) {
      if (account.exhausted !== null && now >= account.exhausted.until) account.exhausted = null
      if (account.exhausted === null) this.#refused.delete(account)
      const used = account.balance !== null || account.waiting > 0 || account.asking || account.exhausted !== null
      if (!used && now >= account.askAt) this.#accounts.delete(account.name)
    }
  }

  /** No message up to this number will be answered any more. */
  answeredTo(message: number): void {
    for (const [account, before] of this.#forgotten) if (before < message) this.#forgotten.delete(account)
  }

  #drop(balance: WorkerBalance, sent: number): void {
    this.#balances.delete(balance.account)
    this.#forgotten.set(balance.account, sent)
    const account = this.#accounts.get(plainName(balance.account))
    if (account?.balance === balance) account.balance = null
  }

  #endWindow(account: WorkerAccount): void {
    account.balance = null
    account.until = null
    account.exhausted = null
    account.nearLimit = false
  }
}
