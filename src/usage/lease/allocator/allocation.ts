/**
 * One turn of the control plane's side of usage (allocator.ts): messages and those who wait go in, decisions on a book of
 * balances come out. Nothing is in force, and nobody is answered, before the transaction of the turn stands.
 *
 * Longer than most: what one turn reads, decides and says of an account is one state.
 */
import type { Clock } from '../../../lib/clock.ts'
import { countsMoney } from '../../account-name.ts'
import {
  type Ask,
  type BalanceReport,
  grantedBeyond,
  type LeaseRefusal,
  maxAmount,
  maxAskAmount,
  maxUsageWaitMs,
  mayComeBack,
  outstanding,
  plainName,
  recallWaitMs,
} from '../lease.ts'
import type { RecallPeers } from '../recall-peers.ts'
import { zeroBalance } from '../worker/worker-balance.ts'
import type { AccountBook } from './account-book.ts'
import {
  type AllocationInput,
  type Contention,
  type LeaseCall,
  needOf,
  newReplyDraft,
  type ReplyDraft,
  toReply,
  type WaitingAsks,
} from './allocation-input.ts'
import type { AccountLimit, LedgerChange, WorkerAnswer, WorkerConnection } from './balance-ledger.ts'
import { type AccountState, aboveHalf, type Decision, decide, totalSettled, unresponsiveHolders } from './contention.ts'
import type { OtherWorkersState } from './other-workers.ts'

export interface AllocationOptions {
  clock: Clock
  workers: {
    /** Names of the workers that can be reached now. */
    connected(): readonly string[]
    recall(worker: string, accounts: readonly string[]): void
  }
  peers: RecallPeers
}

/** How often recalls are said again. */
const recallAgainMs = 250
const retryAfterSeconds = 1
const unknown: Omit<LeaseRefusal, 'account'> = {
  reason: 'unknown',
  retry_after: retryAfterSeconds,
  left: null,
  until: null,
}
const suspended: Decision = { kind: 'refuse', reason: 'unknown' }
/** Above so many times of what is asked, for each worker, an account is no longer tight. */
const tightFactor = 4

/** One turn: decisions on a book, which come into force together or not at all. */
export class Allocation {
  readonly #options: AllocationOptions
  readonly #contentions: Map<string, Contention>
  readonly #book: AccountBook
  readonly #limits: ReadonlyMap<string, AccountLimit>
  readonly #connected: ReadonlySet<string>
  readonly #otherWorkers: OtherWorkersState
  readonly #suspended: boolean
  readonly #answers: WorkerAnswer[] = []
  readonly #replies = new Map<LeaseCall, ReplyDraft>()
  /** In order of arrival. */
  readonly #waiting: WaitingAsks[]
  readonly #decided = new Set<WaitingAsks>()
  readonly #short = new Set<string>()
  /** By account, which workers wait for some of it, and how often. */
  readonly #askers = new Map<string, Map<string, number>>()

  constructor(
    options: AllocationOptions,
    { contentions, waiting, book, limits, otherWorkers, suspended: isSuspended }: AllocationInput,
  ) {
    this.#options = options
    this.#contentions = contentions
    this.#waiting = [...waiting]
    this.#book = book
    this.#limits = limits
    this.#connected = new Set(options.workers.connected())
    this.#otherWorkers = otherWorkers
    this.#suspended = isSuspended
    for (const each of waiting) this.#countAsks(each, 1)
    for (const answer of otherWorkers.answers) this.#recordAnswer(answer)
  }

  #recordAnswer(answer: WorkerAnswer): void {
    const contention = this.#contentions.get(answer.account)
    if (contention === undefined || this.#connected.has(answer.worker)) return
    if (answer.told <= (contention.told.get(answer.worker) ?? 0)) return
    contention.told.set(answer.worker, answer.told)
    this.#recordReport(contention, answer.worker, answer)
  }

  #reachable(worker: string): boolean {
    return this.#connected.has(worker) || this.#otherWorkers.workers.has(worker)
  }

  take(call: LeaseCall): void {
    const { worker } = call.caller
    const reply = this.#replyTo(call)
    for (const reported of call.request.balances) {
      const booked = this.#limits.get(reported.account)?.booked ?? reported.account
      const report = booked === reported.account ? reported : zeroBalance(booked)
      this.#book.returned(worker, report)
      this.#recordReport(this.#contentions.get(report.account), worker, report)
      if (this.#otherWorkers.recalledElsewhere(report.account)) {
        this.#answers.push({ ...report, worker, told: this.#options.clock.now() })
      }
      const balance = this.#book.balance(report.account, worker)
      if (!this.#suspended && balance !== null && grantedBeyond(balance, report) > 0)
        reply.balances.set(balance.account, balance)
    }
    const together: Ask[] = []
    for (const ask of call.request.asks) {
      const bounded = { ...ask, want: Math.min(ask.want, maxAskAmount), wait: Math.min(ask.wait, maxUsageWaitMs) }
      if (this.#takeAsk(call, bounded, reply) === 'waits') together.push(bounded)
    }
    if (together.length === 0) return
    const waiting = { call, asks: together }
    this.#waiting.push(waiting)
    this.#countAsks(waiting, 1)
  }

  #takeAsk(call: LeaseCall, ask: Ask, reply: ReplyDraft): 'waits' | 'answered' {
    const { caller, request } = call
    const limit = this.#limits.get(ask.account)
    if (limit === undefined || (limit.gatewayId !== null && limit.gatewayId !== caller.gatewayId)) {
      reply.refusals.push({ ...unknown, account: ask.account })
      return 'answered'
    }
    if (!Number.isSafeInteger(ask.want) || !Number.isSafeInteger(ask.min) || ask.min > maxAskAmount) {
      reply.refusals.push({ ...unknown, account: ask.account, reason: 'short', retry_after: null })
      return 'answered'
    }
    if (this.#suspended) {
      reply.refusals.push({ ...unknown, account: ask.account })
      return 'answered'
    }
    const { booked } = limit
    const report = request.balances.find(({ account }) => account === booked)
    const balance = this.#book.balance(booked, caller.worker)
    if (balance !== null && outstanding(balance) > 0 && grantedBeyond(balance, report ?? zeroBalance(booked)) > 0) {
      // An earlier grant did not arrive: the worker hears of it, and asks again if that is not enough.
      reply.balances.set(balance.account, balance)
      reply.grants.push({ account: ask.account, booked, until: limit.until, tight: ask.tight, partial: false })
      return 'answered'
    }
    if (ask.tight) {
      const contention = this.#contention(booked)
      if (report !== undefined) this.#recordReport(contention, caller.worker, report)
      return 'waits'
    }
    if (ask.min > this.#left(limit)) {
      // Even if everything came back it would be too little: nobody is called.
      reply.refusals.push(this.#refusal(ask, 'exhausted'))
      return 'answered'
    }
    const alone: WaitingAsks = { call, asks: [ask] }
    const state = this.#accountState(booked, alone)
    const unfair = state.othersAsk && aboveHalf(needOf(alone, ask), state)
    if (!unfair && this.#free(limit) >= ask.want) this.#grant(reply, caller.worker, ask, limit, ask.want)
    else {
      reply.later.push(ask.account)
      if (ask.min > 0) this.#contention(booked)
    }
    return 'answered'
  }

  #free({ limit, booked }: AccountLimit): number {
    return Math.min(limit ?? maxAmount, maxAmount) - this.#book.held(booked)
  }

  /** While much is free a worker gets more than it asked for; never so much that the others would lack it. */
  #grant(reply: ReplyDraft, worker: string, ask: Ask, limit: AccountLimit, amount: number): void {
    const free = this.#free(limit)
    const workers = Math.max(1, this.#connected.size + this.#otherWorkers.workers.size)
    const tight = free <= tightFactor * ask.want * workers
    const spare = Math.floor((free - ask.want) / (2 * workers))
    const more = tight || ask.tight ? 0 : Math.min(2 * ask.want, spare)
    const balance = this.#book.grant(limit.booked, worker, amount + more)
    reply.balances.set(balance.account, balance)
    const { booked, until } = limit
    reply.grants.push({ account: ask.account, booked, until, tight, partial: amount < ask.want })
  }

  #contention(account: string): Contention {
    const known = this.#contentions.get(account)
    if (known !== undefined) return known
    const since = this.#options.clock.monotonic()
    const told = new Map<string, number>()
    for (const answer of this.#otherWorkers.answers)
      if (answer.account === account) told.set(answer.worker, answer.told)
    const fresh = { account, reports: new Map(), since, heard: new Map(), recalledAt: Number.NEGATIVE_INFINITY, told }
    this.#contentions.set(account, fresh)
    return fresh
  }

  #recordReport(contention: Contention | undefined, worker: string, report: BalanceReport): void {
    contention?.reports.set(worker, report)
    contention?.heard.set(worker, this.#options.clock.monotonic())
  }

  /** Decides on all who wait: in order of arrival, but those last who would have more than half of an account. */
  decideAll(): void {
    const [modest, greedy]: [WaitingAsks[], WaitingAsks[]] = [[], []]
    for (const waiting of this.#waiting) {
      const above = waiting.asks.some((ask) =>
        aboveHalf(needOf(waiting, ask), this.#accountState(this.#booked(ask), waiting)),
      )
      if (above) greedy.push(waiting)
      else modest.push(waiting)
    }
    for (const waiting of [...modest, ...greedy]) this.#decide(waiting)
  }

  #decide(waiting: WaitingAsks): void {
    const { call } = waiting
    const decisions = waiting.asks.map((ask) => {
      // After a window's end it is the next one that the request waits for.
      const { account: booked } = this.#contention(this.#booked(ask))
      const need = needOf(waiting, ask)
      const isUnknown = this.#suspended || !this.#limits.has(ask.account)
      return { ask, decision: isUnknown ? suspended : decide(need, this.#accountState(booked, waiting)) }
    })
    const refused = decisions.filter(({ decision }) => decision.kind === 'refuse')
    if (refused.length === 0 && decisions.some(({ decision }) => decision.kind === 'wait')) return
    this.#decided.add(waiting)
    this.#countAsks(waiting, -1)
    for (const { ask, decision } of refused.length > 0 ? refused : decisions) this.#answer(call, ask, decision)
  }

  /** Who calls an account back from elsewhere waits for some of it. */
  #othersAsk(booked: string, { call }: WaitingAsks): boolean {
    if (this.#otherWorkers.contendedElsewhere(booked)) return true
    const askers = this.#askers.get(booked)
    if (askers === undefined) return false
    return askers.size > 1 || !askers.has(call.caller.worker)
  }

  #countAsks({ call, asks }: WaitingAsks, by: 1 | -1): void {
    const { worker } = call.caller
    for (const ask of asks) {
      const booked = this.#booked(ask)
      const askers = this.#askers.get(booked) ?? new Map<string, number>()
      const count = (askers.get(worker) ?? 0) + by
      if (count > 0) askers.set(worker, count)
      else askers.delete(worker)
      if (askers.size > 0) this.#askers.set(booked, askers)
      else this.#askers.delete(booked)
    }
  }

  #answer(call: LeaseCall, ask: Ask, decision: Decision): void {
    const reply = this.#replyTo(call)
    const limit = this.#limits.get(ask.account)
    if (decision.kind === 'grant' && limit !== undefined) {
      this.#grant(reply, call.caller.worker, ask, limit, decision.amount)
    } else if (decision.kind === 'refuse') {
      reply.refusals.push(this.#refusal(ask, decision.reason))
    }
  }

  #refusal(ask: Ask, reason: 'exhausted' | 'held' | 'unknown'): LeaseRefusal {
    const limit = this.#limits.get(ask.account)
    const until = limit?.until ?? null
    const seconds = until === null ? null : Math.ceil((until - this.#options.clock.now()) / 1000)
    const left = limit === undefined ? null : Math.max(0, this.#left(limit))
    if (reason !== 'exhausted') return { account: ask.account, reason, retry_after: retryAfterSeconds, left, until }
    if (left !== null && left > 0 && countsMoney(ask.account)) this.#short.add(ask.account)
    return { account: ask.account, reason, retry_after: seconds, left, until }
  }

  /** What is left of an account if all that is held comes back. */
  #left({ limit, booked }: AccountLimit): number {
    const reports = this.#contentions.get(booked)?.reports ?? new Map<string, BalanceReport>()
    return Math.min(limit ?? maxAmount, maxAmount) - totalSettled({ balances: this.#book.of(booked), reports })
  }

  #booked({ account }: Ask): string {
    return this.#limits.get(account)?.booked ?? account
  }

  #accountState(booked: string, waiting: WaitingAsks | null): AccountState {
    const limit = this.#limits.get(plainName(booked))
    const contention = this.#contentions.get(booked)
    const now = this.#options.clock.monotonic()
    const lastHeard = (worker: string) => contention?.heard.get(worker) ?? contention?.since ?? now
    return {
      // Of a window that has ended nothing is granted any more.
      limit: limit?.booked === booked ? Math.min(limit.limit ?? maxAmount, maxAmount) : 0,
      balances: this.#book.of(booked),
      reports: contention?.reports ?? new Map(),
      connected: (worker) => this.#reachable(worker),
      inReach: (worker) => this.#reachable(worker) && now - lastHeard(worker) <= recallWaitMs,
      othersAsk: waiting !== null && this.#othersAsk(booked, waiting),
      mayComeBack: mayComeBack(plainName(booked)),
      now,
    }
  }

  change(calls: readonly LeaseCall[]): LedgerChange {
    const workers = new Map<string, WorkerConnection>()
    for (const { caller } of [...calls, ...[...this.#decided].map(({ call }) => call)]) {
      workers.set(caller.worker, { worker: caller.worker, streamId: caller.streamId })
    }
    const limits = [...this.#book.granted].flatMap((account) => {
      const limit = this.#limits.get(plainName(account))?.limit ?? null
      return limit === null ? [] : [{ account, limit }]
    })
    const { increases } = this.#book
    const grants = this.#book.granted.size > 0
    return {
      workers: increases.length === 0 ? [] : [...workers.values()],
      increases,
      limits,
      grants,
      answers: this.#answers,
    }
  }

  /** Accounts of money that were refused though something is left: whether they are used up depends on what it pays for. */
  get short(): readonly string[] {
    return [...this.#short]
  }

  /**
   * The transaction stands: answers go out, what is lacking is called back. Gives who still waits. `floors` says how much
   * must be left of the accounts in `short` so that they are not used up.
   */
  end(floors: ReadonlyMap<string, number>): WaitingAsks[] {
    for (const { refusals } of this.#replies.values()) {
      for (const refusal of refusals) {
        if (
          refusal.reason === 'exhausted' &&
          (refusal.left ?? 0) >= (floors.get(refusal.account) ?? Number.POSITIVE_INFINITY)
        ) {
          refusal.reason = 'short'
        }
      }
    }
    const waiting = this.#waiting.filter((each) => !this.#decided.has(each))
    const unanswered = new Set(waiting.map(({ call }) => call))
    for (const [booked, contention] of this.#contentions) {
      // Of a window that has ended nothing is wanted back.
      if (this.#limits.get(plainName(booked))?.booked === booked) this.#recall(contention)
      else this.#contentions.delete(booked)
    }
    const answered = [...new Set(this.#answers.map(({ account }) => account))]
    if (answered.length > 0) this.#options.peers.send({ kind: 'answered', accounts: answered })
    for (const [call, reply] of this.#replies) if (!unanswered.has(call)) call.resolve(toReply(reply))
    return waiting
  }

  #recall(contention: Contention): void {
    const { clock, workers, peers } = this.#options
    const now = clock.monotonic()
    if (now - contention.recalledAt < recallAgainMs) return
    contention.recalledAt = now
    const silent = unresponsiveHolders(null, this.#accountState(contention.account, null)).map(({ worker }) => worker)
    for (const worker of silent) if (this.#connected.has(worker)) workers.recall(worker, [contention.account])
    if (silent.some((worker) => this.#otherWorkers.workers.has(worker)))
      peers.send({ kind: 'recall', accounts: [contention.account] })
  }

  #replyTo(call: LeaseCall): ReplyDraft {
    const known = this.#replies.get(call)
    if (known !== undefined) return known
    const fresh = newReplyDraft(call)
    this.#replies.set(call, fresh)
    return fresh
  }
}
