/**
 * The control plane's side of the usage protocol (usage/lease/lease.ts). What it knows is the ledger; nothing else is state but who
 * waits at the moment.
 *
 * Messages that have come since the last turn are decided together: one read of the balances they are about, one
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
import { zeroBalance } from '../worker/worker-balance.ts'
import { AccountBook } from './account-book.ts'
import { Allocation, type AllocationOptions } from './allocation.ts'
import {
  type Contention,
  type LeaseCall,
  type LeaseCaller,
  newReplyDraft,
  toReply,
  type WaitingAsks,
} from './allocation-input.ts'
import type { AccountLimits, BalanceLedger, MissingGrants, WorkerConnection } from './balance-ledger.ts'
import { MessageNumbers } from './message-numbers.ts'
import { OtherWorkers } from './other-workers.ts'
import { RecallAnswers } from './recall-answers.ts'

export interface AllocatorOptions extends AllocationOptions {
  ledger: BalanceLedger
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
  workers: AllocationOptions['workers'] & { holds(worker: WorkerConnection): boolean }
}

const allocationAttempts = 8
/** How often an end game is looked at while nothing is heard. */
const pollMs = 50

export class Allocator implements RecallReceiver {
  readonly #options: AllocatorOptions
  #inbox: LeaseCall[] = []
  readonly #contentions = new Map<string, Contention>()
  #waiting: WaitingAsks[] = []
  readonly #answers = new RecallAnswers()
  readonly #otherWorkers: OtherWorkers
  readonly #startedAt: number
  readonly #processes = new Map<string, MessageNumbers>()
  /** By worker, the stream on which it said hello last. */
  readonly #registrations = new Map<string, string>()
  #isAllocating = false
  /** Accounts whose limits were changed while a turn was on. */
  readonly #changedDuringAllocation: string[] = []
  #isScheduled = false
  #isPolling = false

  constructor(options: AllocatorOptions) {
    this.#options = options
    this.#startedAt = options.clock.now()
    this.#otherWorkers = new OtherWorkers(options)
  }

  /**
   * Takes a worker's message in; answers when all it asks for is decided. Rejects with `worker_fenced` where another stream
   * holds the worker, `worker_rolled_back` where it must not go on, and with what the databases fail of.
   */
  receive(caller: LeaseCaller, request: LeaseRequest): Promise<LeaseReply> {
    const { promise, resolve, reject } = Promise.withResolvers<LeaseReply>()
    const resolveAndRecord = (reply: LeaseReply) => {
      resolve(reply)
      this.#answers.record(
        caller.worker,
        request.balances.map(({ account }) => account),
      )
    }
    this.#inbox.push({ caller, request, arrivedAt: this.#options.clock.monotonic(), resolve: resolveAndRecord, reject })
    this.#allocateSoon()
    return promise
  }

  /** Whether a worker has said hello on this stream. */
  isRegistered({ worker, streamId }: WorkerConnection): boolean {
    return this.#registrations.get(worker) === streamId
  }

  /** Limits were changed, or amounts set free: whoever holds some of them, or was refused, is told. */
  changed(accounts: readonly string[]): void {
    if (accounts.length === 0) return
    this.#recallAll(accounts)
    this.#options.peers.send({ kind: 'recall', accounts: [...accounts] })
    // A turn that has read the former limits may still grant by them.
    if (this.#isAllocating) this.#changedDuringAllocation.push(...accounts)
    this.#allocateSoon()
  }

  /** Another control plane calls accounts back, or has heard of some; of slots it is not for this one to know. */
  receiveSignal(signal: UsageSignal): void {
    if (signal.kind === 'answered' && signal.accounts.some((account) => this.#contentions.has(account)))
      this.#allocateSoon()
    if (signal.kind !== 'recall') return
    this.#otherWorkers.call(signal.accounts)
    this.#recallHolders(signal.accounts).catch((error: unknown) => {
      // Whoever called says it again while it needs to.
      this.#options.log.warn({ error: String(error) }, 'What another control plane called back could not be')
    })
  }

  async #recallHolders(accounts: readonly string[]): Promise<void> {
    const { ledger, workers } = this.#options
    const connected = new Set(workers.connected())
    for (const balance of await ledger.balances(accounts)) {
      if (outstanding(balance) > 0 && connected.has(balance.worker)) workers.recall(balance.worker, [balance.account])
    }
  }

  /**
   * Wants back what connected workers hold of these accounts, by their booked names; resolves when each has told what it
   * keeps, or after a second.
   */
  async recallAndWait(accounts: readonly string[]): Promise<void> {
    const { ledger, workers, after } = this.#options
    const connected = new Set(workers.connected())
    const balances = (await ledger.balances(accounts)).filter((balance) => outstanding(balance) > 0)
    const held = balances.filter(({ worker }) => connected.has(worker))
    const late = new Promise<void>((resolve) => after(recallWaitMs, resolve))
    const answered = [this.#answers.expect(held, late), this.#otherWorkers.recallAndWait(balances, late)]
    for (const { worker, account } of held) workers.recall(worker, [account])
    await Promise.all(answered)
  }

  #recallAll(accounts: readonly string[]): void {
    for (const worker of this.#options.workers.connected()) this.#options.workers.recall(worker, accounts)
  }

  #allocateSoon(): void {
    if (this.#isScheduled || this.#isAllocating) return
    this.#isScheduled = true
    this.#options.after(0, () => {
      this.#isScheduled = false
      void this.#runAllocation()
    })
  }

  /** While somebody waits, time passing may decide. */
  #pollAgain(): void {
    if (this.#isPolling) return
    this.#isPolling = true
    this.#options.after(pollMs, () => {
      this.#isPolling = false
      this.#allocateSoon()
    })
  }

  async #runAllocation(): Promise<void> {
    if (this.#isAllocating) return
    this.#isAllocating = true
    const calls = this.#inbox
    this.#inbox = []
    try {
      const accepted: LeaseCall[] = []
      for (const call of calls) if (await this.#acceptRegistration(call)) accepted.push(call)
      await this.#decide(accepted)
    } catch (error) {
      for (const call of calls) call.reject(error)
      this.#options.log.error({ error: String(error) }, 'Usage could not be granted')
    }
    this.#isAllocating = false
    const changed = this.#changedDuringAllocation.splice(0)
    if (changed.length > 0) this.#recallAll(changed)
    if (this.#inbox.length > 0) this.#allocateSoon()
    if (this.#contentions.size > 0) this.#pollAgain()
  }

  /** Takes a hello in; false where the call is answered or refused with that. */
  async #acceptRegistration(call: LeaseCall): Promise<boolean> {
    const { caller, request, reject, resolve } = call
    const { worker, streamId } = caller
    const empty = { balances: [], grants: [], refusals: [], later: [] }
    if (request.registration === null) {
      const known = this.#processes.get(worker)
      const repeated = known?.process === request.process && !known.first(request.number)
      if (known?.process === request.process && !repeated) return true
      // What the first of them is granted the worker must look for, whichever answer reaches it.
      if (repeated) reject(new Failure('conflict'))
      else resolve({ ...empty, registration: 'needed' })
      return false
    }
    try {
      const result = await this.#options.ledger.register(
        { worker, streamId, process: request.process, number: request.number },
        request.registration,
        request.balances,
        await this.#missingGrants(call),
      )
      if (result === 'rolled_back' || result === 'released') throw new Failure('worker_rolled_back')
      if (result === 'overtaken') throw new Failure('worker_fenced')
      if (result === 'done') {
        this.#otherWorkers.forget()
        this.#registrations.set(worker, streamId)
        if (this.#processes.get(worker)?.process !== request.process) {
          this.#forgetDisconnected()
          this.#processes.set(worker, new MessageNumbers(request.process))
        }
        return true
      }
      resolve({ ...empty, registration: 'behind' })
    } catch (error) {
      reject(error)
    }
    return false
  }

  /** A worker that has gone says hello when it comes back, whatever is remembered of it. */
  #forgetDisconnected(): void {
    const connected = new Set(this.#options.workers.connected())
    for (const worker of this.#processes.keys()) if (!connected.has(worker)) this.#processes.delete(worker)
    for (const worker of this.#registrations.keys()) if (!connected.has(worker)) this.#registrations.delete(worker)
  }

  async #onLedgerBehind(): Promise<void> {
    if (await this.#options.ledger.startFullReconciliation()) this.#options.onRestored()
  }

  /**
   * A ledger that was restored from an older copy has forgotten grants. What workers hold counts again, and nothing is
   * granted before all have told (restored-ledger.ts).
   */
  async #missingGrants({ caller, request }: LeaseCall): Promise<MissingGrants | undefined> {
    const { ledger, limits, clock, log } = this.#options
    const { worker, gatewayId } = caller
    const now = clock.now()
    const reported = request.balances.filter(
      ({ account, granted, rounds }) => (granted > 0 || rounds > 0) && !endedLongAgo(account, now),
    )
    if (reported.length === 0) return undefined
    const book = new AccountBook(await ledger.balances(reported.map(({ account }) => account)))
    const missing = reported.filter(
      (balance) => grantedBeyond(balance, book.balance(balance.account, worker) ?? zeroBalance(balance.account)) > 0,
    )
    if (missing.length === 0) return undefined
    log.warn(
      { worker, accounts: missing.map(({ account }) => account) },
      'A worker holds more of limits than the ledger knew',
    )
    const known = await limits.limits(missing.map(({ account }) => plainName(account)))
    const increases = missing.flatMap(({ account, rounds, granted, returned }) => {
      const limit = known.get(plainName(account))
      // The worker says hello again: what it holds must not be forgotten because the state does not answer.
      if (limit === undefined && readAccountName(account) !== null) throw new Failure('dependency_unavailable')
      const own = limit !== undefined && (limit.gatewayId === null || limit.gatewayId === gatewayId)
      return own ? [{ account, worker, rounds, granted, returned, limit: limit.limit }] : []
    })
    return { increases, since: this.#startedAt }
  }

  async #decide(calls: readonly LeaseCall[]): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      this.#dropDisconnected()
      const present = calls.filter((call) => this.#isCurrent(call))
      const askedAccounts = present.flatMap(({ request }) => request.asks.map(({ account }) => account))
      const waitingAccounts = this.#waiting.flatMap(({ asks }) => asks.map(({ account }) => account))
      const reported = present.flatMap(({ request }) => request.balances.map(({ account }) => account))
      // A worker that missed an answer asks what was granted by the plain name: it does not know the window.
      const withoutWindow = reported.filter(
        (account) => account.startsWith('budget/') && plainName(account) === account,
      )
      const plain = new Set([
        ...askedAccounts,
        ...waitingAccounts,
        ...withoutWindow,
        ...[...this.#contentions.keys()].map(plainName),
      ])
      if (present.every(({ request }) => request.asks.length + request.balances.length === 0) && plain.size === 0) {
        for (const call of present) call.resolve(toReply(newReplyDraft(call)))
        return
      }
      const limits = await this.#options.limits.limits([...plain])
      const booked = [...limits.values()].map((limit) => limit.booked)
      const accounts = [...new Set([...booked, ...reported, ...this.#contentions.keys()])]
      const otherWorkers = await this.#otherWorkers.read(accounts)
      const { balances, status } = await this.#options.ledger.book(accounts)
      if (status === 'behind') await this.#onLedgerBehind()
      const book = new AccountBook(balances)
      const [contentions, waiting, suspended] = [this.#contentions, this.#waiting, status !== 'whole']
      const allocation = new Allocation(this.#options, { contentions, waiting, book, limits, otherWorkers, suspended })
      for (const call of present) allocation.take(call)
      allocation.decideAll()
      if (await this.#options.ledger.apply(allocation.change(present))) {
        const floors =
          allocation.short.length === 0 ? new Map<string, number>() : await this.#options.floors(allocation.short)
        this.#waiting = allocation.end(floors)
        return
      }
      if (attempt === allocationAttempts) throw new Failure('dependency_unavailable', { retryAfter: 1 })
    }
  }

  /** Those who wait and have gone, or lost their worker, get nothing; without anyone waiting an end game is over. */
  #dropDisconnected(): void {
    this.#waiting = this.#waiting.filter(({ call }) => this.#isCurrent(call))
    const needed = new Set(this.#waiting.flatMap(({ asks }) => asks.map(({ account }) => account)))
    for (const booked of this.#contentions.keys()) if (!needed.has(plainName(booked))) this.#contentions.delete(booked)
  }

  #isCurrent({ caller, reject }: LeaseCall): boolean {
    if (!caller.signal.aborted && this.#options.workers.holds(caller)) return true
    reject(new Failure('worker_fenced'))
    return false
  }
}
