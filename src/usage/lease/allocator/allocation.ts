/**
 * One allocation: takes new messages and waiting grant requests, and decides what each gets from the account book.
 * Nothing takes effect and no reply is sent before the ledger transaction of the allocation has committed.
 *
 * Longer than most: reading, deciding and replying share one state.
 */
import type { Clock } from '../../../lib/clock.ts'
import { countsMoney } from '../../account-name.ts'
import {
  type BalanceReport,
  type GrantRequest,
  grantedBeyond,
  type LeaseRefusal,
  maxAmount,
  maxRequestedAmount,
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
  type WaitingGrantRequests,
} from './allocation-input.ts'
import type { AccountLimit, LedgerChange, WorkerAnswer, WorkerConnection } from './balance-ledger.ts'
import { type AccountState, aboveHalf, type Decision, decide, totalSettled, unresponsiveHolders } from './contention.ts'
import type { OtherWorkersState } from './other-workers.ts'

export interface AllocationOptions {
  clock: Clock
  workers: {
    /** Names of the connected workers. */
    connected(): readonly string[]
    recall(worker: string, accounts: readonly string[]): void
  }
  peers: RecallPeers
}

/** How often a recall is repeated. */
const recallAgainMs = 250
const retryAfterSeconds = 1
const unknown: Omit<LeaseRefusal, 'account'> = {
  reason: 'unknown',
  retry_after: retryAfterSeconds,
  left: null,
  until: null,
}
const suspended: Decision = { kind: 'refuse', reason: 'unknown' }
/**
 * An account is no longer near its limit when more than this many times the requested amount is free for each worker.
 */
const nearLimitFactor = 4

/** One allocation. Its decisions take effect together or not at all. */
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
  readonly #waiting: WaitingGrantRequests[]
  readonly #decided = new Set<WaitingGrantRequests>()
  readonly #short = new Set<string>()
  /** By account: which workers wait for some of it, and how many grant requests each has. */
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
    for (const each of waiting) this.#countGrantRequests(each, 1)
    for (const answer of otherWorkers.answers) this.#recordAnswer(answer)
  }

  #recordAnswer(answer: WorkerAnswer): void {
    const contention = this.#contentions.get(answer.account)
    if (contention === undefined || this.#connected.has(answer.worker)) return
    if (answer.answer_number <= (contention.answerNumbers.get(answer.worker) ?? 0)) return
    contention.answerNumbers.set(answer.worker, answer.answer_number)
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
        this.#answers.push({ ...report, worker, answer_number: this.#options.clock.now() })
      }
      const balance = this.#book.balance(report.account, worker)
      if (!this.#suspended && balance !== null && grantedBeyond(balance, report) > 0)
        reply.balances.set(balance.account, balance)
    }
    const together: GrantRequest[] = []
    for (const grantRequest of call.request.grant_requests) {
      const bounded = {
        ...grantRequest,
        want: Math.min(grantRequest.want, maxRequestedAmount),
        wait: Math.min(grantRequest.wait, maxUsageWaitMs),
      }
      if (this.#takeGrantRequest(call, bounded, reply) === 'waits') together.push(bounded)
    }
    if (together.length === 0) return
    const waiting = { call, grantRequests: together }
    this.#waiting.push(waiting)
    this.#countGrantRequests(waiting, 1)
  }

  #takeGrantRequest(call: LeaseCall, grantRequest: GrantRequest, reply: ReplyDraft): 'waits' | 'answered' {
    const { caller, request } = call
    const limit = this.#limits.get(grantRequest.account)
    if (limit === undefined || (limit.gatewayId !== null && limit.gatewayId !== caller.gatewayId)) {
      reply.refusals.push({ ...unknown, account: grantRequest.account })
      return 'answered'
    }
    if (limit.tooManyValues) {
      const { until } = limit
      reply.refusals.push({
        account: grantRequest.account,
        reason: 'too_many_values',
        retry_after: null,
        left: null,
        until,
      })
      return 'answered'
    }
    if (
      !Number.isSafeInteger(grantRequest.want) ||
      !Number.isSafeInteger(grantRequest.min) ||
      grantRequest.min > maxRequestedAmount
    ) {
      reply.refusals.push({ ...unknown, account: grantRequest.account, reason: 'short', retry_after: null })
      return 'answered'
    }
    if (this.#suspended) {
      reply.refusals.push({ ...unknown, account: grantRequest.account })
      return 'answered'
    }
    const { booked } = limit
    const report = request.balances.find(({ account }) => account === booked)
    const balance = this.#book.balance(booked, caller.worker)
    if (balance !== null && outstanding(balance) > 0 && grantedBeyond(balance, report ?? zeroBalance(booked)) > 0) {
      // An earlier grant did not arrive. The reply repeats it, and the worker asks again if that is not enough.
      reply.balances.set(balance.account, balance)
      reply.grants.push({
        account: grantRequest.account,
        booked,
        until: limit.until,
        near_limit: grantRequest.near_limit,
        partial: false,
      })
      return 'answered'
    }
    if (grantRequest.near_limit) {
      const contention = this.#contention(booked)
      if (report !== undefined) this.#recordReport(contention, caller.worker, report)
      return 'waits'
    }
    if (grantRequest.min > this.#left(limit)) {
      // Too little even if everything came back, so no recall is sent.
      reply.refusals.push(this.#refusal(grantRequest, 'exhausted'))
      return 'answered'
    }
    const alone: WaitingGrantRequests = { call, grantRequests: [grantRequest] }
    const state = this.#accountState(booked, alone)
    const unfair = state.othersAsk && aboveHalf(needOf(alone, grantRequest), state)
    if (!unfair && this.#free(limit) >= grantRequest.want)
      this.#grant(reply, caller.worker, grantRequest, limit, grantRequest.want)
    else {
      reply.deferred.push(grantRequest.account)
      if (grantRequest.min > 0) this.#contention(booked)
    }
    return 'answered'
  }

  #free({ limit, booked }: AccountLimit): number {
    return Math.min(limit ?? maxAmount, maxAmount) - this.#book.held(booked)
  }

  /** Grants more than was asked for while much is free, but leaves enough for the other workers. */
  #grant(reply: ReplyDraft, worker: string, grantRequest: GrantRequest, limit: AccountLimit, amount: number): void {
    const free = this.#free(limit)
    const workers = Math.max(1, this.#connected.size + this.#otherWorkers.workers.size)
    const nearLimit = free <= nearLimitFactor * grantRequest.want * workers
    const spare = Math.floor((free - grantRequest.want) / (2 * workers))
    const more = nearLimit || grantRequest.near_limit ? 0 : Math.min(2 * grantRequest.want, spare)
    const balance = this.#book.grant(limit.booked, worker, amount + more)
    reply.balances.set(balance.account, balance)
    const { booked, until } = limit
    reply.grants.push({
      account: grantRequest.account,
      booked,
      until,
      near_limit: nearLimit,
      partial: amount < grantRequest.want,
    })
  }

  #contention(account: string): Contention {
    const known = this.#contentions.get(account)
    if (known !== undefined) return known
    const since = this.#options.clock.monotonic()
    const answerNumbers = new Map<string, number>()
    for (const answer of this.#otherWorkers.answers)
      if (answer.account === account) answerNumbers.set(answer.worker, answer.answer_number)
    const fresh = {
      account,
      reports: new Map(),
      since,
      heard: new Map(),
      recalledAt: Number.NEGATIVE_INFINITY,
      answerNumbers,
    }
    this.#contentions.set(account, fresh)
    return fresh
  }

  #recordReport(contention: Contention | undefined, worker: string, report: BalanceReport): void {
    contention?.reports.set(worker, report)
    contention?.heard.set(worker, this.#options.clock.monotonic())
  }

  /**
   * Decides all waiting grant requests in order of arrival. Asks that would give a worker more than half of an
   * account come last.
   */
  decideAll(): void {
    const [modest, greedy]: [WaitingGrantRequests[], WaitingGrantRequests[]] = [[], []]
    for (const waiting of this.#waiting) {
      const above = waiting.grantRequests.some((grantRequest) =>
        aboveHalf(needOf(waiting, grantRequest), this.#accountState(this.#booked(grantRequest), waiting)),
      )
      if (above) greedy.push(waiting)
      else modest.push(waiting)
    }
    for (const waiting of [...modest, ...greedy]) this.#decide(waiting)
  }

  #decide(waiting: WaitingGrantRequests): void {
    const { call } = waiting
    const decisions = waiting.grantRequests.map((grantRequest) => {
      // If the window has ended, the request waits for the next one.
      const { account: booked } = this.#contention(this.#booked(grantRequest))
      const need = needOf(waiting, grantRequest)
      const isUnknown = this.#suspended || !this.#limits.has(grantRequest.account)
      return { grantRequest, decision: isUnknown ? suspended : decide(need, this.#accountState(booked, waiting)) }
    })
    const refused = decisions.filter(({ decision }) => decision.kind === 'refuse')
    if (refused.length === 0 && decisions.some(({ decision }) => decision.kind === 'wait')) return
    this.#decided.add(waiting)
    this.#countGrantRequests(waiting, -1)
    for (const { grantRequest, decision } of refused.length > 0 ? refused : decisions)
      this.#answer(call, grantRequest, decision)
  }

  /** Another control plane that recalls the account counts as asking too. */
  #othersRequest(booked: string, { call }: WaitingGrantRequests): boolean {
    if (this.#otherWorkers.contendedElsewhere(booked)) return true
    const askers = this.#askers.get(booked)
    if (askers === undefined) return false
    return askers.size > 1 || !askers.has(call.caller.worker)
  }

  #countGrantRequests({ call, grantRequests }: WaitingGrantRequests, by: 1 | -1): void {
    const { worker } = call.caller
    for (const grantRequest of grantRequests) {
      const booked = this.#booked(grantRequest)
      const askers = this.#askers.get(booked) ?? new Map<string, number>()
      const count = (askers.get(worker) ?? 0) + by
      if (count > 0) askers.set(worker, count)
      else askers.delete(worker)
      if (askers.size > 0) this.#askers.set(booked, askers)
      else this.#askers.delete(booked)
    }
  }

  #answer(call: LeaseCall, grantRequest: GrantRequest, decision: Decision): void {
    const reply = this.#replyTo(call)
    const limit = this.#limits.get(grantRequest.account)
    if (decision.kind === 'grant' && limit !== undefined) {
      this.#grant(reply, call.caller.worker, grantRequest, limit, decision.amount)
    } else if (decision.kind === 'refuse') {
      reply.refusals.push(this.#refusal(grantRequest, decision.reason))
    }
  }

  #refusal(grantRequest: GrantRequest, reason: 'exhausted' | 'held' | 'unknown'): LeaseRefusal {
    const limit = this.#limits.get(grantRequest.account)
    const until = limit?.until ?? null
    const seconds = until === null ? null : Math.ceil((until - this.#options.clock.now()) / 1000)
    const left = limit === undefined ? null : Math.max(0, this.#left(limit))
    if (reason !== 'exhausted')
      return { account: grantRequest.account, reason, retry_after: retryAfterSeconds, left, until }
    if (left !== null && left > 0 && countsMoney(grantRequest.account)) this.#short.add(grantRequest.account)
    return { account: grantRequest.account, reason, retry_after: seconds, left, until }
  }

  /** What is left of an account if everything outstanding comes back. */
  #left({ limit, booked }: AccountLimit): number {
    const reports = this.#contentions.get(booked)?.reports ?? new Map<string, BalanceReport>()
    return Math.min(limit ?? maxAmount, maxAmount) - totalSettled({ balances: this.#book.of(booked), reports })
  }

  #booked({ account }: GrantRequest): string {
    return this.#limits.get(account)?.booked ?? account
  }

  #accountState(booked: string, waiting: WaitingGrantRequests | null): AccountState {
    const limit = this.#limits.get(plainName(booked))
    const contention = this.#contentions.get(booked)
    const now = this.#options.clock.monotonic()
    const lastHeard = (worker: string) => contention?.heard.get(worker) ?? contention?.since ?? now
    return {
      // Nothing more is granted from a window that has ended.
      limit: limit?.booked === booked ? Math.min(limit.limit ?? maxAmount, maxAmount) : 0,
      balances: this.#book.of(booked),
      reports: contention?.reports ?? new Map(),
      connected: (worker) => this.#reachable(worker),
      inReach: (worker) => this.#reachable(worker) && now - lastHeard(worker) <= recallWaitMs,
      othersAsk: waiting !== null && this.#othersRequest(booked, waiting),
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

  /** Money accounts that were refused with something left. Whether they are used up depends on the cheapest request. */
  get short(): readonly string[] {
    return [...this.#short]
  }

  /**
   * Call after the transaction has committed: sends the replies and the recalls, and returns the grant requests that
   * still wait. `floors` says how much must be left of an account in `short` so that it is not used up.
   */
  end(floors: ReadonlyMap<string, number>): WaitingGrantRequests[] {
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
      // Nothing is recalled from a window that has ended.
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
