/** The accounts that a worker knows, and what it may spend of each: the worker's rule, settled + open ≤ granted − returned. */
import type { Clock } from '../../../lib/clock.ts'
import type { AccountName, Demand } from '../../allowance.ts'
import { type BalanceTotals, type LeaseRefusal, outstanding, plainName } from '../lease.ts'
import { WorkerBalance } from './worker-balance.ts'

export interface WorkerAccount {
  readonly name: AccountName
  /** The balance that is spent from now; of a budget with windows, that of the running one. */
  balance: WorkerBalance | null
  /** The end of the window, milliseconds since the epoch. */
  until: number | null
  /** Little is left anywhere: nothing is kept that is not open. */
  tight: boolean
  asking: boolean
  /** Requests that wait for it. */
  waiting: number
  /** When the control plane last said that too little is left for all; monotonic. */
  shortAt: number
  /** The control plane cannot say, and is not asked before; monotonic. */
  askAt: number
  /** What was answered: too little is left for whoever needs as much. */
  exhausted: CachedRefusal | null
}

export interface CachedRefusal {
  min: number
  /** Monotonic. */
  until: number
  reason: 'exhausted' | 'short'
  retryAfter: number | null
  left: number | null
}

/** After so long without a word from the control plane nothing is admitted from a balance, counted from the sending. */
const leaseMs = 30_000
/** Where nothing else is to be said, a worker that holds something speaks so often. */
const contactMs = 5000
const idleMs = 2000
/** For how long a refusal is kept where nothing else ends it. */
const refusalMs = 5000

export class WorkerAccounts {
  readonly #clock: Clock
  readonly #accounts = new Map<AccountName, WorkerAccount>()
  readonly #cells = new Map<string, WorkerBalance>()
  /** Forgotten balances, with the number of the last message sent before: answers to such must not bring them back. */
  readonly #forgotten = new Map<string, number>()
  /** Monotonic. */
  #usableUntil = Number.NEGATIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get(name: AccountName): WorkerAccount {
    const known = this.#accounts.get(name)
    if (known !== undefined) return known
    const told = { shortAt: Number.NEGATIVE_INFINITY, askAt: Number.NEGATIVE_INFINITY, exhausted: null }
    const fresh = { name, balance: null, until: null, tight: false, asking: false, waiting: 0, ...told }
    this.#accounts.set(name, fresh)
    return fresh
  }

  balance(booked: string): WorkerBalance | undefined {
    return this.#cells.get(booked)
  }

  balances(): IterableIterator<WorkerBalance> {
    return this.#cells.values()
  }

  all(): IterableIterator<WorkerAccount> {
    return this.#accounts.values()
  }

  /** A message that was sent at this instant (monotonic) was answered. */
  contact(sentAt: number): void {
    this.#usableUntil = Math.max(this.#usableUntil, sentAt + leaseMs)
  }

  /** Whether it holds something that it may soon no longer use, because nothing was said and answered for a while. */
  get needsContact(): boolean {
    return this.#cells.size > 0 && this.#clock.monotonic() > this.#usableUntil - leaseMs + contactMs
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

  /** Whether all can be had at once, without overtaking a request that waits. */
  fit(demands: readonly Demand[]): boolean {
    for (const { account: name, want } of demands) {
      const account = this.#accounts.get(name)
      if (account === undefined || account.waiting > 0 || this.available(account) < want) return false
    }
    return true
  }

  /** The account whose known refusal stands against these demands, or null. */
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

  /** Keeps a refusal for a while, and never beyond the window that it is about. */
  refuse(account: WorkerAccount, min: number, refusal: LeaseRefusal & Pick<CachedRefusal, 'reason'>): void {
    const { reason, left, retry_after: retryAfter, until: windowEnd } = refusal
    const rest = windowEnd === null ? Number.POSITIVE_INFINITY : windowEnd - this.#clock.now()
    account.exhausted = { min, until: this.#clock.monotonic() + Math.min(refusalMs, rest), reason, retryAfter, left }
  }

  /** Sets an amount of an account aside; it must be there. */
  open(account: WorkerAccount, amount: number): WorkerBalance {
    const { balance } = account
    if (balance === null || balance.available < amount) throw new RangeError(`${account.name} does not hold ${amount}`)
    balance.open += amount
    balance.reserved += amount
    balance.usedAt = this.#clock.monotonic()
    return balance
  }

  /**
   * Takes in what the control plane says of a balance, in answer to message number `message`. A balance that is not known is
   * as the ledger has it: only one of which the ledger has everything is ever forgotten. False where the answer is older
   * than the forgetting, and something may be granted that only a later one can tell of.
   */
  adopt(totals: BalanceTotals, message: number): boolean {
    const known = this.#cells.get(totals.account)
    if (known !== undefined) {
      if (known.adopt(totals)) {
        const account = this.#accounts.get(plainName(totals.account))
        if (account !== undefined) account.exhausted = null
      }
      return true
    }
    if (message <= (this.#forgotten.get(totals.account) ?? 0)) return outstanding(totals) === 0
    const balance = new WorkerBalance(totals, this.#clock.monotonic())
    this.#cells.set(totals.account, balance)
    const account = this.get(plainName(totals.account))
    if (account.name === totals.account) account.balance = balance
    return true
  }

  /** Balances with something to give back. */
  *idle(all = false): Generator<WorkerBalance> {
    for (const balance of this.#cells.values()) if (this.canSpare(balance, all)) yield balance
  }

  /** Whether a balance has something to give back: unused for a while, of a window that ended, or of a tight account. */
  canSpare(balance: WorkerBalance, all = false): boolean {
    if (balance.available <= 0) return false
    const account = this.#accounts.get(plainName(balance.account))
    const kept = account?.balance === balance && !account.tight
    return all || !kept || balance.usedAt <= this.#clock.monotonic() - idleMs
  }

  /**
   * Forgets balances that hold nothing and of which the ledger has everything: `lastEvent` is the last that was committed,
   * `acknowledged` the last that the ledger has, `sent` the number of the last message.
   */
  forget({ lastEvent, acknowledged, sent }: { lastEvent: number; acknowledged: number; sent: number }): void {
    const before = this.#clock.monotonic() - idleMs
    for (const balance of this.#cells.values()) {
      const empty = balance.open === 0 && balance.available <= 0 && balance.acknowledgedReturned === balance.returned
      const asking = this.#accounts.get(plainName(balance.account))?.asking ?? false
      if (!empty || asking || balance.usedAt > before) continue
      balance.settledBy ??= lastEvent
      if (balance.settledBy <= acknowledged) this.#drop(balance, sent)
    }
    const now = this.#clock.monotonic()
    for (const account of this.#accounts.values()) {
      if (account.exhausted !== null && now >= account.exhausted.until) account.exhausted = null
      const used = account.balance !== null || account.waiting > 0 || account.asking || account.exhausted !== null
      if (!used && now >= account.askAt) this.#accounts.delete(account.name)
    }
  }

  /** No message up to this number can be answered any more. */
  answeredTo(message: number): void {
    for (const [account, before] of this.#forgotten) if (before < message) this.#forgotten.delete(account)
  }

  #drop(balance: WorkerBalance, sent: number): void {
    this.#cells.delete(balance.account)
    this.#forgotten.set(balance.account, sent)
    const account = this.#accounts.get(plainName(balance.account))
    if (account?.balance === balance) account.balance = null
  }

  #endWindow(account: WorkerAccount): void {
    account.balance = null
    account.until = null
    account.exhausted = null
    account.tight = false
  }
}
