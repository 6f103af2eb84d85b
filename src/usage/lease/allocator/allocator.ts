/**
 * The control plane's side of the usage protocol (usage/lease/lease.ts). What it knows is the ledger; nothing else is state but who
 * waits at the moment.
 *
 * Messages that have come since the last turn are decided together: one read of the cells they are about, one
 * transaction that raises counters. That transaction holds only where the workers are still held by the same streams and no
 * account is over its limit, so that several control planes may do this at once; where it does not hold, the turn is made
 * again from another read. An answer goes out after the transaction. Workers that are connected to another control plane
 * are called back by it (usage/lease/recall-peers.ts), and answer by way of the ledger (other-workers.ts).
 *
 *   grant       while much is free: what was asked for, and up to twice as much more, so that the next ask comes later
 *   end game    while little is (contention.ts): what the others hold is called back first
 *
 * A worker whose process has not said hello gets nothing: what its former process held must be settled first.
 *
 * Longer than most: who waits, what was heard of each account and which processes are known is one state.
 */
import { Failure } from '../../../failure.ts'
import type { Log } from '../../../lib/log/log.ts'
import { readAccountName } from '../../account-name.ts'
import { endedLongAgo } from '../../window.ts'
import { grantedBeyond, type LeaseReply, type LeaseRequest, outstanding, plainName, recallWaitMs } from '../lease.ts'
import type { RecallReceiver, UsageSignal } from '../recall-peers.ts'
import { noCell } from '../worker/worker-balance.ts'
import { AccountBook } from './account-book.ts'
import { Turn, type TurnOptions } from './allocation.ts'
import { type Call, type Caller, type Game, newReply, toReply, type Waiting } from './allocation-input.ts'
import type { AccountLimits, CellLedger, ForgottenGrants, HeldWorker } from './balance-ledger.ts'
import { MessageNumbers } from './message-numbers.ts'
import { OtherWorkers } from './other-workers.ts'
import { RecallAnswers } from './recall-answers.ts'

export interface AuthorityOptions extends TurnOptions {
  ledger: CellLedger
  limits: AccountLimits
  log: Log
  /** Runs it after so long; 0 is the end of this tick. */
  after(milliseconds: number, work: () => void): void
  /**
   * How much must be left of accounts of money so that they are not used up: what the cheapest request costs
   * (usage/lease/README.md rule 18).
   */
  floors(accounts: readonly string[]): Promise<ReadonlyMap<string, number>>
  /** The ledger was found to be an older copy: workers are to connect again. */
  onRestored(): void
  workers: TurnOptions['workers'] & { holds(worker: HeldWorker): boolean }
}

const turnAttempts = 8
/** How often an end game is looked at while nothing is heard. */
const lookMs = 50

export class Allocator implements RecallReceiver {
  readonly #options: AuthorityOptions
  #inbox: Call[] = []
  readonly #games = new Map<string, Game>()
  #waiting: Waiting[] = []
  readonly #answers = new RecallAnswers()
  readonly #elsewhere: OtherWorkers
  readonly #startedAt: number
  readonly #processes = new Map<string, MessageNumbers>()
  /** By worker, the stream on which it said hello last. */
  readonly #hellos = new Map<string, string>()
  #turning = false
  /** Accounts whose limits were changed while a turn was on. */
  readonly #changedMeanwhile: string[] = []
  #due = false
  #looking = false

  constructor(options: AuthorityOptions) {
    this.#options = options
    this.#startedAt = options.clock.now()
    this.#elsewhere = new OtherWorkers(options)
  }

  /**
   * Takes a worker's message in; answers when all it asks for is decided. Rejects with `worker_fenced` where another stream
   * holds the worker, `worker_rolled_back` where it must not go on, and with what the databases fail of.
   */
  receive(caller: Caller, request: LeaseRequest): Promise<LeaseReply> {
    const { promise, resolve, reject } = Promise.withResolvers<LeaseReply>()
    const told = (reply: LeaseReply) => {
      resolve(reply)
      this.#answers.told(
        caller.worker,
        request.cells.map(({ account }) => account),
      )
    }
    this.#inbox.push({ caller, request, arrivedAt: this.#options.clock.monotonic(), resolve: told, reject })
    this.#turnSoon()
    return promise
  }

  /** Whether a worker has said hello on this stream. */
  hasGreeted({ worker, streamId }: HeldWorker): boolean {
    return this.#hellos.get(worker) === streamId
  }

  /** Limits were changed, or amounts set free: whoever holds some of them, or was refused, is told. */
  changed(accounts: readonly string[]): void {
    if (accounts.length === 0) return
    this.#recallAll(accounts)
    this.#options.peers.tell({ kind: 'recall', accounts: [...accounts] })
    // A turn that has read the former limits may still grant by them.
    if (this.#turning) this.#changedMeanwhile.push(...accounts)
    this.#turnSoon()
  }

  /** Another control plane calls accounts back, or has heard of some; of slots it is not for this one to know. */
  hear(signal: UsageSignal): void {
    if (signal.kind === 'answered' && signal.accounts.some((account) => this.#games.has(account))) this.#turnSoon()
    if (signal.kind !== 'recall') return
    this.#elsewhere.call(signal.accounts)
    this.#recallHolders(signal.accounts).catch((error: unknown) => {
      // Whoever called says it again while it needs to.
      this.#options.log.warn({ error: String(error) }, 'What another control plane called back could not be')
    })
  }

  async #recallHolders(accounts: readonly string[]): Promise<void> {
    const { ledger, workers } = this.#options
    const connected = new Set(workers.connected())
    for (const cell of await ledger.cells(accounts)) {
      if (outstanding(cell) > 0 && connected.has(cell.worker)) workers.recall(cell.worker, [cell.account])
    }
  }

  /**
   * Wants back what connected workers hold of these accounts, by their booked names; resolves when each has told what it
   * keeps, or after a second.
   */
  async callBack(accounts: readonly string[]): Promise<void> {
    const { ledger, workers, after } = this.#options
    const connected = new Set(workers.connected())
    const cells = (await ledger.cells(accounts)).filter((cell) => outstanding(cell) > 0)
    const held = cells.filter(({ worker }) => connected.has(worker))
    const late = new Promise<void>((resolve) => after(recallWaitMs, resolve))
    const answered = [this.#answers.expect(held, late), this.#elsewhere.callBack(cells, late)]
    for (const { worker, account } of held) workers.recall(worker, [account])
    await Promise.all(answered)
  }

  #recallAll(accounts: readonly string[]): void {
    for (const worker of this.#options.workers.connected()) this.#options.workers.recall(worker, accounts)
  }

  #turnSoon(): void {
    if (this.#due || this.#turning) return
    this.#due = true
    this.#options.after(0, () => {
      this.#due = false
      void this.#turn()
    })
  }

  /** While somebody waits, time passing may decide. */
  #lookAgain(): void {
    if (this.#looking) return
    this.#looking = true
    this.#options.after(lookMs, () => {
      this.#looking = false
      this.#turnSoon()
    })
  }

  async #turn(): Promise<void> {
    if (this.#turning) return
    this.#turning = true
    const calls = this.#inbox
    this.#inbox = []
    try {
      const heard: Call[] = []
      for (const call of calls) if (await this.#greeted(call)) heard.push(call)
      await this.#decide(heard)
    } catch (error) {
      for (const call of calls) call.reject(error)
      this.#options.log.error({ error: String(error) }, 'Usage could not be granted')
    }
    this.#turning = false
    const changed = this.#changedMeanwhile.splice(0)
    if (changed.length > 0) this.#recallAll(changed)
    if (this.#inbox.length > 0) this.#turnSoon()
    if (this.#games.size > 0) this.#lookAgain()
  }

  /** Takes a hello in; false where the call is answered or refused with that. */
  async #greeted(call: Call): Promise<boolean> {
    const { caller, request, reject, resolve } = call
    const { worker, streamId } = caller
    const empty = { cells: [], grants: [], denials: [], later: [] }
    if (request.hello === null) {
      const known = this.#processes.get(worker)
      const repeated = known?.process === request.process && !known.first(request.number)
      if (known?.process === request.process && !repeated) return true
      // What the first of them is granted the worker must look for, whichever answer reaches it.
      if (repeated) reject(new Failure('conflict'))
      else resolve({ ...empty, hello: 'needed' })
      return false
    }
    try {
      const result = await this.#options.ledger.hello(
        { worker, streamId, process: request.process, number: request.number },
        request.hello,
        request.cells,
        await this.#forgotten(call),
      )
      if (result === 'rolled_back' || result === 'released') throw new Failure('worker_rolled_back')
      if (result === 'overtaken') throw new Failure('worker_fenced')
      if (result === 'done') {
        this.#elsewhere.forget()
        this.#hellos.set(worker, streamId)
        if (this.#processes.get(worker)?.process !== request.process) {
          this.#forgetProcesses()
          this.#processes.set(worker, new MessageNumbers(request.process))
        }
        return true
      }
      resolve({ ...empty, hello: 'behind' })
    } catch (error) {
      reject(error)
    }
    return false
  }

  /** A worker that has gone says hello when it comes back, whatever is remembered of it. */
  #forgetProcesses(): void {
    const connected = new Set(this.#options.workers.connected())
    for (const worker of this.#processes.keys()) if (!connected.has(worker)) this.#processes.delete(worker)
    for (const worker of this.#hellos.keys()) if (!connected.has(worker)) this.#hellos.delete(worker)
  }

  async #noticed(): Promise<void> {
    if (await this.#options.ledger.awaitAll()) this.#options.onRestored()
  }

  /**
   * A ledger that was restored from an older copy has forgotten grants. What workers hold counts again, and nothing is
   * granted before all have told (restored-ledger.ts).
   */
  async #forgotten({ caller, request }: Call): Promise<ForgottenGrants | undefined> {
    const { ledger, limits, clock, log } = this.#options
    const { worker, gatewayId } = caller
    const now = clock.now()
    const told = request.cells.filter(
      ({ account, granted, rounds }) => (granted > 0 || rounds > 0) && !endedLongAgo(account, now),
    )
    if (told.length === 0) return undefined
    const book = new AccountBook(await ledger.cells(told.map(({ account }) => account)))
    const forgotten = told.filter(
      (cell) => grantedBeyond(cell, book.cell(cell.account, worker) ?? noCell(cell.account)) > 0,
    )
    if (forgotten.length === 0) return undefined
    log.warn(
      { worker, accounts: forgotten.map(({ account }) => account) },
      'A worker holds more of limits than the ledger knew',
    )
    const known = await limits.limits(forgotten.map(({ account }) => plainName(account)))
    const raises = forgotten.flatMap(({ account, rounds, granted, returned }) => {
      const limit = known.get(plainName(account))
      // The worker says hello again: what it holds must not be forgotten because the state does not answer.
      if (limit === undefined && readAccountName(account) !== null) throw new Failure('dependency_unavailable')
      const own = limit !== undefined && (limit.gatewayId === null || limit.gatewayId === gatewayId)
      return own ? [{ account, worker, rounds, granted, returned, limit: limit.limit }] : []
    })
    return { raises, since: this.#startedAt }
  }

  async #decide(calls: readonly Call[]): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      this.#dropLost()
      const present = calls.filter((call) => this.#isHeld(call))
      const asked = present.flatMap(({ request }) => request.asks.map(({ account }) => account))
      const waited = this.#waiting.flatMap(({ asks }) => asks.map(({ account }) => account))
      const told = present.flatMap(({ request }) => request.cells.map(({ account }) => account))
      // A worker that missed an answer asks what was granted by the plain name: it does not know the window.
      const unsure = told.filter((account) => account.startsWith('budget/') && plainName(account) === account)
      const plain = new Set([...asked, ...waited, ...unsure, ...[...this.#games.keys()].map(plainName)])
      if (present.every(({ request }) => request.asks.length + request.cells.length === 0) && plain.size === 0) {
        for (const call of present) call.resolve(toReply(newReply(call)))
        return
      }
      const limits = await this.#options.limits.limits([...plain])
      const booked = [...limits.values()].map((limit) => limit.booked)
      const accounts = [...new Set([...booked, ...told, ...this.#games.keys()])]
      const elsewhere = await this.#elsewhere.look(accounts)
      const { cells, standing } = await this.#options.ledger.book(accounts)
      if (standing === 'behind') await this.#noticed()
      const book = new AccountBook(cells)
      const [games, waiting, suspended] = [this.#games, this.#waiting, standing !== 'whole']
      const turn = new Turn(this.#options, { games, waiting, book, limits, elsewhere, suspended })
      for (const call of present) turn.take(call)
      turn.play()
      if (await this.#options.ledger.raise(turn.change(present))) {
        const floors = turn.short.length === 0 ? new Map<string, number>() : await this.#options.floors(turn.short)
        this.#waiting = turn.end(floors)
        return
      }
      if (attempt === turnAttempts) throw new Failure('dependency_unavailable', { retryAfter: 1 })
    }
  }

  /** Those who wait and have gone, or lost their worker, get nothing; without anyone waiting an end game is over. */
  #dropLost(): void {
    this.#waiting = this.#waiting.filter(({ call }) => this.#isHeld(call))
    const needed = new Set(this.#waiting.flatMap(({ asks }) => asks.map(({ account }) => account)))
    for (const booked of this.#games.keys()) if (!needed.has(plainName(booked))) this.#games.delete(booked)
  }

  #isHeld({ caller, reject }: Call): boolean {
    if (!caller.signal.aborted && this.#options.workers.holds(caller)) return true
    reject(new Failure('worker_fenced'))
    return false
  }
}
