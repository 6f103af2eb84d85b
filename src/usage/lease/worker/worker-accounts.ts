/** The accounts that a worker knows, and what it may spend of each: the worker's rule, settled + open ≤ granted − returned. */
import type { Clock } from '../../../lib/clock.ts'
import type { AccountName, Demand } from '../../allowance.ts'
import { type CellTotals, type Denial, outstanding, plainName } from '../lease.ts'
import { WorkerCell } from './worker-balance.ts'

export interface WorkerAccount {
  readonly name: AccountName
  /** The cell that is spent from now; of a budget with windows, that of the running one. */
  cell: WorkerCell | null
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
  exhausted: KnownRefusal | null
}

export interface KnownRefusal {
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
  readonly #cells = new Map<string, WorkerCell>()
  /** Forgotten cells, with the number of the last message sent before: answers to such must not bring them back. */
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
    const fresh = { name, cell: null, until: null, tight: false, asking: false, waiting: 0, ...told }
    this.#accounts.set(name, fresh)
    return fresh
  }

  cell(booked: string): WorkerCell | undefined {
    return this.#cells.get(booked)
  }

  cells(): IterableIterator<WorkerCell> {
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
  balance(account: WorkerAccount): number {
    if (account.until !== null && this.#clock.now() >= account.until) this.#endWindow(account)
    const { cell } = account
    return cell === null || this.#clock.monotonic() > this.#usableUntil ? 0 : cell.balance
  }

  /** Whether all can be had at once, without overtaking a request that waits. */
  fit(demands: readonly Demand[]): boolean {
    for (const { account: name, want } of demands) {
      const account = this.#accounts.get(name)
      if (account === undefined || account.waiting > 0 || this.balance(account) < want) return false
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
      else if (min >= refusal.min && this.balance(account) < min) return account
    }
    return null
  }

  /** Keeps a refusal for a while, and never beyond the window that it is about. */
  refuse(account: WorkerAccount, min: number, denial: Denial & Pick<KnownRefusal, 'reason'>): void {
    const { reason, left, retry_after: retryAfter, until: windowEnd } = denial
    const rest = windowEnd === null ? Number.POSITIVE_INFINITY : windowEnd - this.#clock.now()
    account.exhausted = { min, until: this.#clock.monotonic() + Math.min(refusalMs, rest), reason, retryAfter, left }
  }

  /** Sets an amount of an account aside; it must be there. */
  open(account: WorkerAccount, amount: number): WorkerCell {
    const { cell } = account
    if (cell === null || cell.balance < amount) throw new RangeError(`${account.name} does not hold ${amount}`)
    cell.open += amount
    cell.reserved += amount
    cell.usedAt = this.#clock.monotonic()
    return cell
  }

  /**
   * Takes in what the control plane says of a cell, in answer to message number `message`. A cell that is not known is
   * as the ledger has it: only one of which the ledger has everything is ever forgotten. False where the answer is older
   * than the forgetting, and something may be granted that only a later one can tell of.
   */
  adopt(totals: CellTotals, message: number): boolean {
    const known = this.#cells.get(totals.account)
    if (known !== undefined) {
      if (known.adopt(totals)) {
        const account = this.#accounts.get(plainName(totals.account))
        if (account !== undefined) account.exhausted = null
      }
      return true
    }
    if (message <= (this.#forgotten.get(totals.account) ?? 0)) return outstanding(totals) === 0
    const cell = new WorkerCell(totals, this.#clock.monotonic())
    this.#cells.set(totals.account, cell)
    const account = this.get(plainName(totals.account))
    if (account.name === totals.account) account.cell = cell
    return true
  }

  /** Cells with something to give back. */
  *idle(all = false): Generator<WorkerCell> {
    for (const cell of this.#cells.values()) if (this.canSpare(cell, all)) yield cell
  }

  /** Whether a cell has something to give back: unused for a while, of a window that ended, or of a tight account. */
  canSpare(cell: WorkerCell, all = false): boolean {
    if (cell.balance <= 0) return false
    const account = this.#accounts.get(plainName(cell.account))
    const kept = account?.cell === cell && !account.tight
    return all || !kept || cell.usedAt <= this.#clock.monotonic() - idleMs
  }

  /**
   * Forgets cells that hold nothing and of which the ledger has everything: `lastEvent` is the last that was committed,
   * `acknowledged` the last that the ledger has, `sent` the number of the last message.
   */
  forget({ lastEvent, acknowledged, sent }: { lastEvent: number; acknowledged: number; sent: number }): void {
    const before = this.#clock.monotonic() - idleMs
    for (const cell of this.#cells.values()) {
      const empty = cell.open === 0 && cell.balance <= 0 && cell.heard === cell.returned
      const asking = this.#accounts.get(plainName(cell.account))?.asking ?? false
      if (!empty || asking || cell.usedAt > before) continue
      cell.settledBy ??= lastEvent
      if (cell.settledBy <= acknowledged) this.#drop(cell, sent)
    }
    const now = this.#clock.monotonic()
    for (const account of this.#accounts.values()) {
      if (account.exhausted !== null && now >= account.exhausted.until) account.exhausted = null
      const used = account.cell !== null || account.waiting > 0 || account.asking || account.exhausted !== null
      if (!used && now >= account.askAt) this.#accounts.delete(account.name)
    }
  }

  /** No message up to this number can be answered any more. */
  answeredTo(message: number): void {
    for (const [account, before] of this.#forgotten) if (before < message) this.#forgotten.delete(account)
  }

  #drop(cell: WorkerCell, sent: number): void {
    this.#cells.delete(cell.account)
    this.#forgotten.set(cell.account, sent)
    const account = this.#accounts.get(plainName(cell.account))
    if (account?.cell === cell) account.cell = null
  }

  #endWindow(account: WorkerAccount): void {
    account.cell = null
    account.until = null
    account.exhausted = null
    account.tight = false
  }
}
