/**
 * The control plane's side of the usage protocol (lease.ts). What it knows is the ledger; nothing else is state but who
 * waits at the moment.
 *
 * Messages that have come since the last turn are decided together: one read of the cells they are about, one
 * transaction that raises counters. That transaction holds only where the lanes are still held by the same streams and no
 * account is over its limit, so that several control planes may do this at once; where it does not hold, the turn is made
 * again from another read. An answer goes out after the transaction.
 *
 *   grant       while much is free: what was asked for, and up to twice as much more, so that the next ask comes later
 *   end game    while little is (end-game.ts): what the others hold is called back first
 *
 * A lane whose process has not said hello gets nothing: what its former process held must be settled first.
 */
import { Failure } from '../failure.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { AccountBook } from './account-book.ts'
import type { AccountLimit, AccountLimits, CellLedger, HeldLane } from './cell-ledger.ts'
import { type Decision, decide, type Standings, silentHolders } from './end-game.ts'
import {
  type Ask,
  type CellReport,
  type CellTotals,
  type Denial,
  type Grant,
  type LeaseReply,
  type LeaseRequest,
  mayComeBack,
  outstanding,
  plainName,
} from './lease.ts'

export interface AuthorityOptions {
  ledger: CellLedger
  limits: AccountLimits
  clock: Clock
  log: Log
  /** Runs it after so long; 0 is the end of this tick. */
  after(milliseconds: number, work: () => void): void
  lanes: {
    /** Names of the lanes that can be reached now. */
    connected(): readonly string[]
    holds(lane: HeldLane): boolean
    recall(lane: string, accounts: readonly string[]): void
  }
}

export interface Caller extends HeldLane {
  gatewayId: string
  /** Aborted when the caller has gone: it gets nothing that it would not hear of. */
  signal: AbortSignal
}

interface Call {
  caller: Caller
  request: LeaseRequest
  arrivedAt: number
  resolve(reply: LeaseReply): void
  reject(error: unknown): void
}

/** Asks of one message that are granted together or not at all. */
interface Waiting {
  call: Call
  asks: { ask: Ask; booked: string }[]
}

/** The end game of one account. */
interface Game {
  account: string
  reports: Map<string, CellReport>
  recalledAt: number
}

interface Reply {
  hello: LeaseReply['hello']
  cells: Map<string, CellTotals>
  grants: Grant[]
  denials: Denial[]
  later: string[]
}

const turnAttempts = 8
const messagesRemembered = 1000
/** How often an end game is looked at while nothing is heard, and recalls are said again. */
const lookMs = 50
const recallAgainMs = 250
const retryAfterSeconds = 1
/** Above so many times of what is asked, for each lane, an account is no longer tight. */
const tightFactor = 4

export class Authority {
  readonly #options: AuthorityOptions
  #inbox: Call[] = []
  readonly #games = new Map<string, Game>()
  #waiting: Waiting[] = []
  readonly #processes = new Map<string, Process>()
  #turning = false
  #due = false
  #looking = false

  constructor(options: AuthorityOptions) {
    this.#options = options
  }

  /**
   * Takes a lane's message in; answers when all it asks for is decided. Rejects with `lane_fenced` where another stream
   * holds the lane, `lane_rolled_back` where it must not go on, and with what the databases fail of.
   */
  receive(caller: Caller, request: LeaseRequest): Promise<LeaseReply> {
    const { promise, resolve, reject } = Promise.withResolvers<LeaseReply>()
    this.#inbox.push({ caller, request, arrivedAt: this.#options.clock.monotonic(), resolve, reject })
    this.#turnSoon()
    return promise
  }

  /** Limits were changed, or amounts set free: whoever holds some of them, or was refused, is told. */
  changed(accounts: readonly string[]): void {
    if (accounts.length === 0) return
    for (const lane of this.#options.lanes.connected()) this.#options.lanes.recall(lane, accounts)
    this.#turnSoon()
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
    if (this.#inbox.length > 0) this.#turnSoon()
    if (this.#games.size > 0) this.#lookAgain()
  }

  /** Takes a hello in; false where the call is answered or refused with that. */
  async #greeted({ caller, request, reject, resolve }: Call): Promise<boolean> {
    const { lane, streamId } = caller
    const empty = { cells: [], grants: [], denials: [], later: [] }
    if (request.hello === null) {
      const known = this.#processes.get(lane)
      const repeated = known?.process === request.process && !known.first(request.number)
      if (known?.process === request.process && !repeated) return true
      // What the first of them is granted the lane must look for, whichever answer reaches it.
      if (repeated) reject(new Failure('conflict'))
      else resolve({ ...empty, hello: 'needed' })
      return false
    }
    try {
      const result = await this.#options.ledger.hello(
        { lane, streamId, process: request.process, number: request.number },
        request.hello,
        request.cells,
      )
      if (result === 'rolled_back' || result === 'released') throw new Failure('lane_rolled_back')
      if (result === 'overtaken') throw new Failure('lane_fenced')
      if (result === 'done') {
        if (this.#processes.get(lane)?.process !== request.process)
          this.#processes.set(lane, new Process(request.process))
        return true
      }
      resolve({ ...empty, hello: 'behind' })
    } catch (error) {
      reject(error)
    }
    return false
  }

  async #decide(calls: readonly Call[]): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      this.#dropLost()
      const present = calls.filter((call) => this.#isHeld(call))
      const asked = present.flatMap(({ request }) => request.asks.map(({ account }) => account))
      const plain = new Set([...asked, ...[...this.#games.keys()].map(plainName)])
      if (present.every(({ request }) => request.asks.length + request.cells.length === 0) && plain.size === 0) {
        for (const call of present) call.resolve(toReply(newReply(call)))
        return
      }
      const limits = await this.#options.limits.limits([...plain])
      const told = present.flatMap(({ request }) => request.cells.map(({ account }) => account))
      const booked = [...limits.values()].map((limit) => limit.booked)
      const book = new AccountBook(
        await this.#options.ledger.cells([...new Set([...booked, ...told, ...this.#games.keys()])]),
      )
      const turn = new Turn(this.#options, this.#games, this.#waiting, book, limits)
      for (const call of present) turn.take(call)
      turn.play()
      if (await this.#options.ledger.raise(turn.change(present))) {
        this.#waiting = turn.end()
        return
      }
      if (attempt === turnAttempts) throw new Failure('dependency_unavailable', { retryAfter: 1 })
    }
  }

  /** Those who wait and have gone, or lost their lane, get nothing; without anyone waiting an end game is over. */
  #dropLost(): void {
    this.#waiting = this.#waiting.filter(({ call }) => this.#isHeld(call))
    const needed = new Set(this.#waiting.flatMap(({ asks }) => asks.map(({ booked }) => booked)))
    for (const account of this.#games.keys()) if (!needed.has(account)) this.#games.delete(account)
  }

  #isHeld({ caller, reject }: Call): boolean {
    if (!caller.signal.aborted && this.#options.lanes.holds(caller)) return true
    reject(new Failure('lane_fenced'))
    return false
  }
}

/** What is remembered of a lane's process: which of its last messages have come. */
class Process {
  readonly process: string
  readonly #numbers = new Set<number>()
  #below = 0

  constructor(process: string) {
    this.process = process
  }

  /** Whether the message of this number comes for the first time; one that is very late counts as repeated. */
  first(number: number): boolean {
    if (number < this.#below || this.#numbers.has(number)) return false
    this.#numbers.add(number)
    this.#below = Math.max(this.#below, number - messagesRemembered)
    if (this.#numbers.size > 2 * messagesRemembered) {
      for (const each of this.#numbers) if (each < this.#below) this.#numbers.delete(each)
    }
    return true
  }
}

/** One turn: decisions on a book, which come into force together or not at all. */
class Turn {
  readonly #options: AuthorityOptions
  readonly #games: Map<string, Game>
  readonly #book: AccountBook
  readonly #limits: ReadonlyMap<string, AccountLimit>
  readonly #connected: ReadonlySet<string>
  readonly #replies = new Map<Call, Reply>()
  /** In order of arrival. */
  readonly #waiting: Waiting[]
  readonly #decided = new Set<Waiting>()

  constructor(
    options: AuthorityOptions,
    games: Map<string, Game>,
    waiting: readonly Waiting[],
    book: AccountBook,
    limits: ReadonlyMap<string, AccountLimit>,
  ) {
    this.#options = options
    this.#games = games
    this.#waiting = [...waiting]
    this.#book = book
    this.#limits = limits
    this.#connected = new Set(options.lanes.connected())
  }

  take(call: Call): void {
    const { lane } = call.caller
    const reply = this.#replyTo(call)
    for (const report of call.request.cells) {
      this.#book.returned(report.account, lane, report.returned)
      this.#games.get(report.account)?.reports.set(lane, report)
      const cell = this.#book.cell(report.account, lane)
      if (cell !== null && cell.granted > report.granted) reply.cells.set(cell.account, cell)
    }
    const together: Waiting = { call, asks: [] }
    for (const ask of call.request.asks) this.#takeAsk(together, ask, reply)
    if (together.asks.length > 0) this.#waiting.push(together)
  }

  #takeAsk(together: Waiting, ask: Ask, reply: Reply): void {
    const { caller, request } = together.call
    const limit = this.#limits.get(ask.account)
    if (limit === undefined || (limit.gatewayId !== null && limit.gatewayId !== caller.gatewayId)) {
      reply.denials.push({ account: ask.account, reason: 'unknown', retry_after: retryAfterSeconds })
      return
    }
    const { booked } = limit
    const report = request.cells.find(({ account }) => account === booked)
    const cell = this.#book.cell(booked, caller.lane)
    if (cell !== null && outstanding(cell) > 0 && cell.granted > (report?.granted ?? 0)) {
      // An earlier grant did not arrive: the lane hears of it, and asks again if that is not enough.
      reply.cells.set(cell.account, cell)
      reply.grants.push({ account: ask.account, booked, until: limit.until, tight: ask.tight, partial: false })
      return
    }
    if (ask.tight) {
      const game = this.#game(booked)
      if (report !== undefined) game.reports.set(caller.lane, report)
      together.asks.push({ ask, booked })
    } else if (this.#free(limit) >= ask.want) this.#grant(reply, caller.lane, ask, limit, ask.want)
    else {
      reply.later.push(ask.account)
      if (ask.min > 0) this.#game(booked)
    }
  }

  #free({ limit, booked }: AccountLimit): number {
    return limit === null ? Number.POSITIVE_INFINITY : limit - this.#book.held(booked)
  }

  /** While much is free a lane gets more than it asked for; never so much that the others would lack it. */
  #grant(reply: Reply, lane: string, ask: Ask, limit: AccountLimit, amount: number): void {
    const free = this.#free(limit)
    const lanes = Math.max(1, this.#connected.size)
    const tight = free <= tightFactor * ask.want * lanes
    const spare = Number.isFinite(free) ? Math.floor((free - ask.want) / (2 * lanes)) : ask.want
    const more = tight || ask.tight ? 0 : Math.min(2 * ask.want, spare)
    const cell = this.#book.grant(limit.booked, lane, amount + more)
    reply.cells.set(cell.account, cell)
    const { booked, until } = limit
    reply.grants.push({ account: ask.account, booked, until, tight, partial: amount < ask.want })
  }

  #game(account: string): Game {
    const known = this.#games.get(account)
    if (known !== undefined) return known
    const fresh = { account, reports: new Map(), recalledAt: Number.NEGATIVE_INFINITY }
    this.#games.set(account, fresh)
    return fresh
  }

  /** Decides on all who wait, in order of arrival. */
  play(): void {
    for (const waiting of this.#waiting) {
      const { call } = waiting
      const { lane } = call.caller
      const decisions = waiting.asks.map(({ ask, booked }) => {
        const need = { lane, arrivedAt: call.arrivedAt, want: ask.want, min: ask.min, waited: ask.waited }
        return { ask, booked, decision: decide(need, this.#standings(booked)) }
      })
      const refused = decisions.filter(({ decision }) => decision.kind === 'refuse')
      if (refused.length === 0 && decisions.some(({ decision }) => decision.kind === 'wait')) continue
      this.#decided.add(waiting)
      for (const { ask, decision } of refused.length > 0 ? refused : decisions) this.#answer(call, ask, decision)
    }
  }

  #answer(call: Call, ask: Ask, decision: Decision): void {
    const reply = this.#replyTo(call)
    const limit = this.#limits.get(ask.account)
    if (decision.kind === 'grant' && limit !== undefined) {
      this.#grant(reply, call.caller.lane, ask, limit, decision.amount)
    } else if (decision.kind === 'refuse') {
      const windowEnd = limit?.until ?? null
      const seconds = windowEnd === null ? null : Math.ceil((windowEnd - this.#options.clock.now()) / 1000)
      const { reason } = decision
      reply.denials.push({
        account: ask.account,
        reason,
        retry_after: reason === 'exhausted' ? seconds : retryAfterSeconds,
      })
    }
  }

  #standings(booked: string): Standings {
    const limit = this.#limits.get(plainName(booked))
    return {
      // Of a window that has ended nothing is granted any more.
      limit: limit?.booked === booked ? limit.limit : 0,
      cells: this.#book.of(booked),
      reports: this.#games.get(booked)?.reports ?? new Map(),
      connected: (lane) => this.#connected.has(lane),
      mayComeBack: mayComeBack(plainName(booked)),
      now: this.#options.clock.monotonic(),
    }
  }

  change(calls: readonly Call[]) {
    const lanes = new Map<string, HeldLane>()
    for (const { caller } of [...calls, ...[...this.#decided].map(({ call }) => call)]) {
      lanes.set(caller.lane, { lane: caller.lane, streamId: caller.streamId })
    }
    const limits = [...this.#book.granted].flatMap((account) => {
      const limit = this.#limits.get(plainName(account))?.limit ?? null
      return limit === null ? [] : [{ account, limit }]
    })
    const { raises } = this.#book
    return { lanes: raises.length === 0 ? [] : [...lanes.values()], raises, limits }
  }

  /** The transaction stands: answers go out, what is lacking is called back. Gives who still waits. */
  end(): Waiting[] {
    const waiting = this.#waiting.filter((each) => !this.#decided.has(each))
    const unanswered = new Set(waiting.map(({ call }) => call))
    for (const game of this.#games.values()) this.#recall(game)
    for (const [call, reply] of this.#replies) if (!unanswered.has(call)) call.resolve(toReply(reply))
    return waiting
  }

  #recall(game: Game): void {
    const { clock, lanes } = this.#options
    const now = clock.monotonic()
    if (now - game.recalledAt < recallAgainMs) return
    game.recalledAt = now
    for (const { lane } of silentHolders(null, this.#standings(game.account))) {
      if (this.#connected.has(lane)) lanes.recall(lane, [game.account])
    }
  }

  #replyTo(call: Call): Reply {
    const known = this.#replies.get(call)
    if (known !== undefined) return known
    const fresh = newReply(call)
    this.#replies.set(call, fresh)
    return fresh
  }
}

const newReply = ({ request }: Call): Reply => ({
  hello: request.hello === null ? null : 'done',
  cells: new Map(),
  grants: [],
  denials: [],
  later: [],
})

const toReply = ({ cells, ...rest }: Reply): LeaseReply => ({
  ...rest,
  cells: [...cells.values()].map(({ account, granted, returned, settled }) => ({
    account,
    granted,
    returned,
    settled,
  })),
})
