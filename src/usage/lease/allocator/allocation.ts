/**
 * One turn of the control plane's side of usage (allocator.ts): messages and those who wait go in, decisions on a book of
 * cells come out. Nothing is in force, and nobody is answered, before the transaction of the turn stands.
 *
 * Longer than most: what one turn reads, decides and says of an account is one state.
 */
import type { Clock } from '../../../lib/clock.ts'
import { countsMoney } from '../../account-name.ts'
import {
  type Ask,
  type CellReport,
  type Denial,
  grantedBeyond,
  mayComeBack,
  mostAsked,
  mostHeld,
  mostUsageWaitMs,
  outstanding,
  plainName,
  recallWaitMs,
} from '../lease.ts'
import type { RecallPeers } from '../recall-peers.ts'
import { noCell } from '../worker/worker-balance.ts'
import type { AccountBook } from './account-book.ts'
import {
  type Call,
  type Game,
  needOf,
  newReply,
  type Reply,
  type TurnMatter,
  toReply,
  type Waiting,
} from './allocation-input.ts'
import type { AccountLimit, HeldWorker, LedgerChange, WorkerAnswer } from './balance-ledger.ts'
import { aboveHalf, type Decision, decide, type Standings, settledOf, silentHolders } from './contention.ts'
import type { Elsewhere } from './other-workers.ts'

export interface TurnOptions {
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
const unknown: Omit<Denial, 'account'> = {
  reason: 'unknown',
  retry_after: retryAfterSeconds,
  left: null,
  until: null,
}
const suspended: Decision = { kind: 'refuse', reason: 'unknown' }
/** Above so many times of what is asked, for each worker, an account is no longer tight. */
const tightFactor = 4

/** One turn: decisions on a book, which come into force together or not at all. */
export class Turn {
  readonly #options: TurnOptions
  readonly #games: Map<string, Game>
  readonly #book: AccountBook
  readonly #limits: ReadonlyMap<string, AccountLimit>
  readonly #connected: ReadonlySet<string>
  readonly #elsewhere: Elsewhere
  readonly #suspended: boolean
  readonly #answers: WorkerAnswer[] = []
  readonly #replies = new Map<Call, Reply>()
  /** In order of arrival. */
  readonly #waiting: Waiting[]
  readonly #decided = new Set<Waiting>()
  readonly #short = new Set<string>()
  /** By account, which workers wait for some of it, and how often. */
  readonly #askers = new Map<string, Map<string, number>>()

  constructor(options: TurnOptions, { games, waiting, book, limits, elsewhere, suspended: isSuspended }: TurnMatter) {
    this.#options = options
    this.#games = games
    this.#waiting = [...waiting]
    this.#book = book
    this.#limits = limits
    this.#connected = new Set(options.workers.connected())
    this.#elsewhere = elsewhere
    this.#suspended = isSuspended
    for (const each of waiting) this.#countAsks(each, 1)
    for (const answer of elsewhere.answers) this.#hearElsewhere(answer)
  }

  #hearElsewhere(answer: WorkerAnswer): void {
    const game = this.#games.get(answer.account)
    if (game === undefined || this.#connected.has(answer.worker)) return
    if (answer.told <= (game.told.get(answer.worker) ?? 0)) return
    game.told.set(answer.worker, answer.told)
    this.#heard(game, answer.worker, answer)
  }

  #reachable(worker: string): boolean {
    return this.#connected.has(worker) || this.#elsewhere.workers.has(worker)
  }

  take(call: Call): void {
    const { worker } = call.caller
    const reply = this.#replyTo(call)
    for (const said of call.request.cells) {
      const booked = this.#limits.get(said.account)?.booked ?? said.account
      const report = booked === said.account ? said : noCell(booked)
      this.#book.returned(worker, report)
      this.#heard(this.#games.get(report.account), worker, report)
      if (this.#elsewhere.called(report.account)) {
        this.#answers.push({ ...report, worker, told: this.#options.clock.now() })
      }
      const cell = this.#book.cell(report.account, worker)
      if (!this.#suspended && cell !== null && grantedBeyond(cell, report) > 0) reply.cells.set(cell.account, cell)
    }
    const together: Ask[] = []
    for (const ask of call.request.asks) {
      const bounded = { ...ask, want: Math.min(ask.want, mostAsked), wait: Math.min(ask.wait, mostUsageWaitMs) }
      if (this.#takeAsk(call, bounded, reply) === 'waits') together.push(bounded)
    }
    if (together.length === 0) return
    const waiting = { call, asks: together }
    this.#waiting.push(waiting)
    this.#countAsks(waiting, 1)
  }

  #takeAsk(call: Call, ask: Ask, reply: Reply): 'waits' | 'answered' {
    const { caller, request } = call
    const limit = this.#limits.get(ask.account)
    if (limit === undefined || (limit.gatewayId !== null && limit.gatewayId !== caller.gatewayId)) {
      reply.denials.push({ ...unknown, account: ask.account })
      return 'answered'
    }
    if (!Number.isSafeInteger(ask.want) || !Number.isSafeInteger(ask.min) || ask.min > mostAsked) {
      reply.denials.push({ ...unknown, account: ask.account, reason: 'short', retry_after: null })
      return 'answered'
    }
    if (this.#suspended) {
      reply.denials.push({ ...unknown, account: ask.account })
      return 'answered'
    }
    const { booked } = limit
    const report = request.cells.find(({ account }) => account === booked)
    const cell = this.#book.cell(booked, caller.worker)
    if (cell !== null && outstanding(cell) > 0 && grantedBeyond(cell, report ?? noCell(booked)) > 0) {
      // An earlier grant did not arrive: the worker hears of it, and asks again if that is not enough.
      reply.cells.set(cell.account, cell)
      reply.grants.push({ account: ask.account, booked, until: limit.until, tight: ask.tight, partial: false })
      return 'answered'
    }
    if (ask.tight) {
      const game = this.#game(booked)
      if (report !== undefined) this.#heard(game, caller.worker, report)
      return 'waits'
    }
    if (ask.min > this.#left(limit)) {
      // Even if everything came back it would be too little: nobody is called.
      reply.denials.push(this.#denial(ask, 'exhausted'))
      return 'answered'
    }
    const alone: Waiting = { call, asks: [ask] }
    const standings = this.#standings(booked, alone)
    const unfair = standings.othersAsk && aboveHalf(needOf(alone, ask), standings)
    if (!unfair && this.#free(limit) >= ask.want) this.#grant(reply, caller.worker, ask, limit, ask.want)
    else {
      reply.later.push(ask.account)
      if (ask.min > 0) this.#game(booked)
    }
    return 'answered'
  }

  #free({ limit, booked }: AccountLimit): number {
    return Math.min(limit ?? mostHeld, mostHeld) - this.#book.held(booked)
  }

  /** While much is free a worker gets more than it asked for; never so much that the others would lack it. */
  #grant(reply: Reply, worker: string, ask: Ask, limit: AccountLimit, amount: number): void {
    const free = this.#free(limit)
    const workers = Math.max(1, this.#connected.size + this.#elsewhere.workers.size)
    const tight = free <= tightFactor * ask.want * workers
    const spare = Math.floor((free - ask.want) / (2 * workers))
    const more = tight || ask.tight ? 0 : Math.min(2 * ask.want, spare)
    const cell = this.#book.grant(limit.booked, worker, amount + more)
    reply.cells.set(cell.account, cell)
    const { booked, until } = limit
    reply.grants.push({ account: ask.account, booked, until, tight, partial: amount < ask.want })
  }

  #game(account: string): Game {
    const known = this.#games.get(account)
    if (known !== undefined) return known
    const since = this.#options.clock.monotonic()
    const told = new Map<string, number>()
    for (const answer of this.#elsewhere.answers) if (answer.account === account) told.set(answer.worker, answer.told)
    const fresh = { account, reports: new Map(), since, heard: new Map(), recalledAt: Number.NEGATIVE_INFINITY, told }
    this.#games.set(account, fresh)
    return fresh
  }

  #heard(game: Game | undefined, worker: string, report: CellReport): void {
    game?.reports.set(worker, report)
    game?.heard.set(worker, this.#options.clock.monotonic())
  }

  /** Decides on all who wait: in order of arrival, but those last who would have more than half of an account. */
  play(): void {
    const [modest, greedy]: [Waiting[], Waiting[]] = [[], []]
    for (const waiting of this.#waiting) {
      const above = waiting.asks.some((ask) =>
        aboveHalf(needOf(waiting, ask), this.#standings(this.#booked(ask), waiting)),
      )
      if (above) greedy.push(waiting)
      else modest.push(waiting)
    }
    for (const waiting of [...modest, ...greedy]) this.#decide(waiting)
  }

  #decide(waiting: Waiting): void {
    const { call } = waiting
    const decisions = waiting.asks.map((ask) => {
      // After a window's end it is the next one that the request waits for.
      const { account: booked } = this.#game(this.#booked(ask))
      const need = needOf(waiting, ask)
      const isUnknown = this.#suspended || !this.#limits.has(ask.account)
      return { ask, decision: isUnknown ? suspended : decide(need, this.#standings(booked, waiting)) }
    })
    const refused = decisions.filter(({ decision }) => decision.kind === 'refuse')
    if (refused.length === 0 && decisions.some(({ decision }) => decision.kind === 'wait')) return
    this.#decided.add(waiting)
    this.#countAsks(waiting, -1)
    for (const { ask, decision } of refused.length > 0 ? refused : decisions) this.#answer(call, ask, decision)
  }

  /** Who calls an account back from elsewhere waits for some of it. */
  #othersAsk(booked: string, { call }: Waiting): boolean {
    if (this.#elsewhere.asking(booked)) return true
    const askers = this.#askers.get(booked)
    if (askers === undefined) return false
    return askers.size > 1 || !askers.has(call.caller.worker)
  }

  #countAsks({ call, asks }: Waiting, by: 1 | -1): void {
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

  #answer(call: Call, ask: Ask, decision: Decision): void {
    const reply = this.#replyTo(call)
    const limit = this.#limits.get(ask.account)
    if (decision.kind === 'grant' && limit !== undefined) {
      this.#grant(reply, call.caller.worker, ask, limit, decision.amount)
    } else if (decision.kind === 'refuse') {
      reply.denials.push(this.#denial(ask, decision.reason))
    }
  }

  #denial(ask: Ask, reason: 'exhausted' | 'held' | 'unknown'): Denial {
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
    const reports = this.#games.get(booked)?.reports ?? new Map<string, CellReport>()
    return Math.min(limit ?? mostHeld, mostHeld) - settledOf({ cells: this.#book.of(booked), reports })
  }

  #booked({ account }: Ask): string {
    return this.#limits.get(account)?.booked ?? account
  }

  #standings(booked: string, waiting: Waiting | null): Standings {
    const limit = this.#limits.get(plainName(booked))
    const game = this.#games.get(booked)
    const now = this.#options.clock.monotonic()
    const lastHeard = (worker: string) => game?.heard.get(worker) ?? game?.since ?? now
    return {
      // Of a window that has ended nothing is granted any more.
      limit: limit?.booked === booked ? Math.min(limit.limit ?? mostHeld, mostHeld) : 0,
      cells: this.#book.of(booked),
      reports: game?.reports ?? new Map(),
      connected: (worker) => this.#reachable(worker),
      inReach: (worker) => this.#reachable(worker) && now - lastHeard(worker) <= recallWaitMs,
      othersAsk: waiting !== null && this.#othersAsk(booked, waiting),
      mayComeBack: mayComeBack(plainName(booked)),
      now,
    }
  }

  change(calls: readonly Call[]): LedgerChange {
    const workers = new Map<string, HeldWorker>()
    for (const { caller } of [...calls, ...[...this.#decided].map(({ call }) => call)]) {
      workers.set(caller.worker, { worker: caller.worker, streamId: caller.streamId })
    }
    const limits = [...this.#book.granted].flatMap((account) => {
      const limit = this.#limits.get(plainName(account))?.limit ?? null
      return limit === null ? [] : [{ account, limit }]
    })
    const { raises } = this.#book
    const grants = this.#book.granted.size > 0
    return { workers: raises.length === 0 ? [] : [...workers.values()], raises, limits, grants, answers: this.#answers }
  }

  /** Accounts of money that were refused though something is left: whether they are used up depends on what it pays for. */
  get short(): readonly string[] {
    return [...this.#short]
  }

  /**
   * The transaction stands: answers go out, what is lacking is called back. Gives who still waits. `floors` says how much
   * must be left of the accounts in `short` so that they are not used up.
   */
  end(floors: ReadonlyMap<string, number>): Waiting[] {
    for (const { denials } of this.#replies.values()) {
      for (const denial of denials) {
        if (
          denial.reason === 'exhausted' &&
          (denial.left ?? 0) >= (floors.get(denial.account) ?? Number.POSITIVE_INFINITY)
        ) {
          denial.reason = 'short'
        }
      }
    }
    const waiting = this.#waiting.filter((each) => !this.#decided.has(each))
    const unanswered = new Set(waiting.map(({ call }) => call))
    for (const [booked, game] of this.#games) {
      // Of a window that has ended nothing is wanted back.
      if (this.#limits.get(plainName(booked))?.booked === booked) this.#recall(game)
      else this.#games.delete(booked)
    }
    const answered = [...new Set(this.#answers.map(({ account }) => account))]
    if (answered.length > 0) this.#options.peers.tell({ kind: 'answered', accounts: answered })
    for (const [call, reply] of this.#replies) if (!unanswered.has(call)) call.resolve(toReply(reply))
    return waiting
  }

  #recall(game: Game): void {
    const { clock, workers, peers } = this.#options
    const now = clock.monotonic()
    if (now - game.recalledAt < recallAgainMs) return
    game.recalledAt = now
    const silent = silentHolders(null, this.#standings(game.account, null)).map(({ worker }) => worker)
    for (const worker of silent) if (this.#connected.has(worker)) workers.recall(worker, [game.account])
    if (silent.some((worker) => this.#elsewhere.workers.has(worker)))
      peers.tell({ kind: 'recall', accounts: [game.account] })
  }

  #replyTo(call: Call): Reply {
    const known = this.#replies.get(call)
    if (known !== undefined) return known
    const fresh = newReply(call)
    this.#replies.set(call, fresh)
    return fresh
  }
}
