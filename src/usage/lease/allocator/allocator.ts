/**
 * The control plane's side of the lease protocol (usage/lease/lease.ts). The ledger is its only durable state; in
 * memory it keeps the grant requests that wait.
 *
 * Messages that arrived since the last allocation are decided together: one read of their balances, and one transaction
 * that raises counters. The transaction fails if a worker's stream has changed or an account would exceed its limit, so
 * several control planes may allocate at once. After a failure the allocation is repeated from a new read. Replies go
 * out after the transaction. Workers on another control plane are recalled through it (usage/lease/recall-peers.ts) and
 * answer through the ledger (other-workers.ts).
 *
 *  grant        while much is free: what was asked for, and up to twice as much more, so that the next grant request comes later
 *  contention   while little is free (contention.ts): the balances of other workers are recalled first
 *
 * A worker whose process has not registered gets nothing: the balances of its former process must be settled first.
 *
 * Longer than most: waiting grant requests, recalls and known processes are one state.
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
  type WaitingGrantRequests,
} from './allocation-input.ts'
import type { AccountLimits, BalanceLedger, MissingGrants, WorkerConnection } from './balance-ledger.ts'
import { MessageNumbers } from './message-numbers.ts'
import { OtherWorkers } from './other-workers.ts'
import { RecallAnswers } from './recall-answers.ts'

export interface AllocatorOptions extends AllocationOptions {
  ledger: BalanceLedger
  limits: AccountLimits
  log: Log
  /** Runs `work` after this time; 0 means at the end of this tick. */
  after(milliseconds: number, work: () => void): void
  /**
   * How much must be left of money accounts so that they are not used up: the price of the cheapest request
   * (usage/lease/README.md rule 18).
   */
  floors(accounts: readonly string[]): Promise<ReadonlyMap<string, number>>
  /** The ledger turned out to be an older copy: workers must connect again. */
  onRestored(): void
  workers: AllocationOptions['workers'] & { holds(worker: WorkerConnection): boolean }
}

const allocationAttempts = 8
/** How often a contention is decided again without new messages. */
const pollMs = 50

export class Allocator implements RecallReceiver {
  readonly #options: AllocatorOptions
  #inbox: LeaseCall[] = []
  readonly #contentions = new Map<string, Contention>()
  #waiting: WaitingGrantRequests[] = []
  readonly #answers = new RecallAnswers()
  readonly #otherWorkers: OtherWorkers
  readonly #startedAt: number
  readonly #processes = new Map<string, MessageNumbers>()
  /** By worker, the stream on which it last registered. */
  readonly #registrations = new Map<string, string>()
  #isAllocating = false
  /** Accounts whose limits changed during an allocation. */
  readonly #changedDuringAllocation: string[] = []
  #isScheduled = false
  #isPolling = false

  constructor(options: AllocatorOptions) {
    this.#options = options
    this.#startedAt = options.clock.now()
    this.#otherWorkers = new OtherWorkers(options)
  }

  /**
   * Receives a worker's message. Resolves when all its grant requests are decided. Rejects with `worker_fenced` if
   * another stream has taken the worker over, `worker_rolled_back` if the worker must not go on, and with database
   * errors.
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

  /** Whether a worker has registered on this stream. */
  isRegistered({ worker, streamId }: WorkerConnection): boolean {
    return this.#registrations.get(worker) === streamId
  }

  /** Limits changed or amounts were freed: recalls them from all workers, and decides waiting grant requests again. */
  changed(accounts: readonly string[]): void {
    if (accounts.length === 0) return
    this.#recallAll(accounts)
    this.#options.peers.send({ kind: 'recall', accounts: [...accounts] })
    // An allocation that read the old limits may still grant by them.
    if (this.#isAllocating) this.#changedDuringAllocation.push(...accounts)
    this.#allocateSoon()
  }

  /**
   * Handles a signal of another control plane: a recall, or new answers in the ledger. Slot signals are handled
   * elsewhere.
   */
  receiveSignal(signal: UsageSignal): void {
    if (signal.kind === 'answered' && signal.accounts.some((account) => this.#contentions.has(account)))
      this.#allocateSoon()
    if (signal.kind !== 'recall') return
    this.#otherWorkers.call(signal.accounts)
    this.#recallHolders(signal.accounts).catch((error: unknown) => {
      // The other control plane repeats the recall while it needs it.
      this.#options.log.warn({ error: String(error) }, 'A recall of another control plane failed')
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
   * Recalls what workers hold of these accounts, given by booked name. Resolves when each has reported what it keeps,
   * or after a second.
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

  /** While grant requests wait, the passage of time may decide them. */
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

  /** Handles a registration. Returns false if the message was already answered or rejected. */
  async #acceptRegistration(call: LeaseCall): Promise<boolean> {
    const { caller, request, reject, resolve } = call
    const { worker, streamId } = caller
    const empty = { balances: [], grants: [], refusals: [], deferred: [] }
    if (request.registration === null) {
      const known = this.#processes.get(worker)
      const repeated = known?.process === request.process && !known.first(request.number)
      if (known?.process === request.process && !repeated) return true
      // The worker must look for what the first message was granted, whichever reply reaches it.
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

  /** A worker that disconnected registers again when it comes back, so its entries can go. */
  #forgetDisconnected(): void {
    const connected = new Set(this.#options.workers.connected())
    for (const worker of this.#processes.keys()) if (!connected.has(worker)) this.#processes.delete(worker)
    for (const worker of this.#registrations.keys()) if (!connected.has(worker)) this.#registrations.delete(worker)
  }

  async #onLedgerBehind(): Promise<void> {
    if (await this.#options.ledger.startFullReconciliation()) this.#options.onRestored()
  }

  /**
   * A ledger restored from an older copy lacks grants. What workers report counts again, and nothing is granted until
   * all have registered (restored-ledger.ts).
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
      'A worker holds more of limits than the ledger has',
    )
    const known = await limits.limits(missing.map(({ account }) => plainName(account)))
    const increases = missing.flatMap(({ account, rounds, granted, returned }) => {
      const limit = known.get(plainName(account))
      // The worker registers again later. Its balance must not be lost because the state does not answer.
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
      const requestedAccounts = present.flatMap(({ request }) => request.grant_requests.map(({ account }) => account))
      const waitingAccounts = this.#waiting.flatMap(({ grantRequests }) => grantRequests.map(({ account }) => account))
      const reported = present.flatMap(({ request }) => request.balances.map(({ account }) => account))
      // A worker that missed a reply reports the account by its plain name, since it does not know the window.
      const withoutWindow = reported.filter(
        (account) => account.startsWith('budget/') && plainName(account) === account,
      )
      const plain = new Set([
        ...requestedAccounts,
        ...waitingAccounts,
        ...withoutWindow,
        ...[...this.#contentions.keys()].map(plainName),
      ])
      if (
        present.every(({ request }) => request.grant_requests.length + request.balances.length === 0) &&
        plain.size === 0
      ) {
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

  /**
   * Drops grant requests of workers that disconnected or were taken over, and contentions without any waiting grant
   * request.
   */
  #dropDisconnected(): void {
    this.#waiting = this.#waiting.filter(({ call }) => this.#isCurrent(call))
    const needed = new Set(this.#waiting.flatMap(({ grantRequests }) => grantRequests.map(({ account }) => account)))
    for (const booked of this.#contentions.keys()) if (!needed.has(plainName(booked))) this.#contentions.delete(booked)
  }

  #isCurrent({ caller, reject }: LeaseCall): boolean {
    if (!caller.signal.aborted && this.#options.workers.holds(caller)) return true
    reject(new Failure('worker_fenced'))
    return false
  }
}
