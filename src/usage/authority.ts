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
import { type Decision, decide, type Need, type Standings, silentHolders } from './end-game.ts'
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

interface Waiting extends Need {
  call: Call
  ask: Ask
}

/** The end game of one account. */
interface Game {
  account: string
  needs: Waiting[]
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
  readonly #processes = new Map<string, string>()
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
      if (this.#processes.get(lane) === request.process) return true
      resolve({ ...empty, hello: 'needed' })
      return false
    }
    try {
      const result = await this.#options.ledger.hello(
        { lane, streamId, process: request.process },
        request.hello,
        request.cells,
      )
      if (result === 'rolled_back' || result === 'released') throw new Failure('lane_rolled_back')
      if (result === 'overtaken') throw new Failure('lane_fenced')
      if (result === 'done') {
        this.#processes.set(lane, request.process)
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
      const turn = new Turn(this.#options, this.#games, book, limits)
      for (const call of present) turn.take(call)
      turn.play()
      if (await this.#options.ledger.raise(turn.change(present))) return turn.end()
      if (attempt === turnAttempts) throw new Failure('dependency_unavailable', { retryAfter: 1 })
    }
  }

  /** Those who wait and have gone, or lost their lane, get nothing. */
  #dropLost(): void {
    for (const [account, game] of this.#games) {
      game.needs = game.needs.filter(({ call }) => this.#isHeld(call))
      if (game.needs.length === 0) this.#games.delete(account)
    }
  }

  #isHeld({ caller, reject }: Call): boolean {
    if (!caller.signal.aborted && this.#options.lanes.holds(caller)) return true
    reject(new Failure('lane_fenced'))
    return false
  }
}

/** One turn: decisions on a book, which come into force together or not at all. */
class Turn {
  readonly #options: AuthorityOptions
  readonly #games: Map<string, Game>
  readonly #book: AccountBook
  readonly #limits: ReadonlyMap<string, AccountLimit>
  readonly #replies = new Map<Call, Reply>()
  /** Needs that are decided with this turn, and calls that wait beyond it. */
  readonly #decided = new Set<Waiting>()
  readonly #joined: { game: string; need: Waiting }[] = []

  constructor(
    options: AuthorityOptions,
    games: Map<string, Game>,
    book: AccountBook,
    limits: ReadonlyMap<string, AccountLimit>,
  ) {
    this.#options = options
    this.#games = games
    this.#book = book
    this.#limits = limits
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
    for (const ask of call.request.asks) this.#take(call, ask, reply)
  }

  #take(call: Call, ask: Ask, reply: Reply): void {
    const limit = this.#limits.get(ask.account)
    const { lane, gatewayId } = call.caller
    if (limit === undefined || (limit.gatewayId !== null && limit.gatewayId !== gatewayId)) {
      reply.denials.push({ account: ask.account, reason: 'unknown', retry_after: retryAfterSeconds })
      return
    }
    const report = call.request.cells.find(({ account }) => account === limit.booked)
    const cell = this.#book.cell(limit.booked, lane)
    if (cell !== null && outstanding(cell) > 0 && cell.granted > (report?.granted ?? 0)) {
      // An earlier grant did not arrive: the lane hears of it, and asks again if that is not enough.
      reply.cells.set(cell.account, cell)
      reply.grants.push({ ...grantOf(ask, limit), tight: true, partial: false })
      return
    }
    const free = limit.limit === null ? Number.POSITIVE_INFINITY : limit.limit - this.#book.held(limit.booked)
    if (free >= ask.want && !this.#games.has(limit.booked)) this.#grant(reply, lane, ask, limit, free)
    else if (ask.tight) this.#join(call, ask, limit.booked, report)
    else {
      reply.later.push(ask.account)
      if (ask.min > 0) this.#game(limit.booked)
    }
  }

  /** While much is free a lane gets more than it asked for; never so much that the others would lack it. */
  #grant(reply: Reply, lane: string, ask: Ask, limit: AccountLimit, free: number): void {
    const lanes = Math.max(1, this.#options.lanes.connected().length)
    const tight = free <= tightFactor * ask.want * lanes
    const more = Number.isFinite(free) ? Math.floor((free - ask.want) / (2 * lanes)) : ask.want
    const amount = ask.want + (tight ? 0 : Math.min(2 * ask.want, more))
    const cell = this.#book.grant(limit.booked, lane, amount)
    reply.cells.set(cell.account, cell)
    reply.grants.push({ ...grantOf(ask, limit), tight, partial: false })
  }

  #join(call: Call, ask: Ask, booked: string, report: CellReport | undefined): void {
    const { lane } = call.caller
    const need = { call, ask, lane, want: ask.want, min: ask.min, arrivedAt: call.arrivedAt }
    const game = this.#game(booked)
    if (report !== undefined) game.reports.set(lane, report)
    this.#joined.push({ game: booked, need })
  }

  #game(account: string): Game {
    const known = this.#games.get(account)
    if (known !== undefined) return known
    const fresh = { account, needs: [], reports: new Map(), recalledAt: Number.NEGATIVE_INFINITY }
    this.#games.set(account, fresh)
    return fresh
  }

  /** Decides on all who wait, in order of arrival. */
  play(): void {
    for (const game of this.#games.values()) {
      const limit = this.#limits.get(plainName(game.account))
      const joined = this.#joined.flatMap(({ game: account, need }) => (account === game.account ? [need] : []))
      for (const need of [...game.needs, ...joined]) {
        const decision = decide(need, this.#standings(game, limit))
        if (decision.kind === 'wait') continue
        this.#decided.add(need)
        this.#answer(need, decision, game.account, limit)
      }
    }
  }

  #answer(need: Waiting, decision: Exclude<Decision, { kind: 'wait' }>, booked: string, limit?: AccountLimit): void {
    const reply = this.#replyTo(need.call)
    const { account } = need.ask
    if (decision.kind === 'refuse') {
      const windowEnd = limit?.until ?? null
      const seconds = windowEnd === null ? null : Math.ceil((windowEnd - this.#options.clock.now()) / 1000)
      const retry = decision.reason === 'exhausted' ? seconds : retryAfterSeconds
      reply.denials.push({ account, reason: decision.reason, retry_after: retry })
      return
    }
    const cell = this.#book.grant(booked, need.lane, decision.amount)
    reply.cells.set(cell.account, cell)
    reply.grants.push({ account, booked, tight: true, partial: decision.partial, until: limit?.until ?? null })
  }

  #standings(game: Game, limit: AccountLimit | undefined): Standings {
    const connected = new Set(this.#options.lanes.connected())
    return {
      // A window that has ended is no one's to grant from.
      limit: limit?.booked === game.account ? limit.limit : 0,
      cells: this.#book.of(game.account),
      reports: game.reports,
      connected: (lane) => connected.has(lane),
      mayComeBack: mayComeBack(plainName(game.account)),
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
    const raises = this.#book.raises
    return { lanes: raises.length === 0 ? [] : [...lanes.values()], raises, limits }
  }

  /** The transaction stands: answers go out, and what is still to be waited for is called back. */
  end(): void {
    for (const { game, need } of this.#joined) if (!this.#decided.has(need)) this.#game(game).needs.push(need)
    const waiting = new Set<Call>()
    for (const game of this.#games.values()) {
      game.needs = game.needs.filter((need) => !this.#decided.has(need))
      for (const { call } of game.needs) waiting.add(call)
      this.#recall(game)
      if (game.needs.length === 0) this.#games.delete(game.account)
    }
    for (const [call, reply] of this.#replies) if (!waiting.has(call)) call.resolve(toReply(reply))
  }

  #recall(game: Game): void {
    const { clock, lanes } = this.#options
    const now = clock.monotonic()
    const newHere = game.recalledAt === Number.NEGATIVE_INFINITY
    if (!newHere && (game.needs.length === 0 || now - game.recalledAt < recallAgainMs)) return
    game.recalledAt = now
    const standings = this.#standings(game, this.#limits.get(plainName(game.account)))
    for (const { lane } of silentHolders(null, standings)) {
      if (standings.connected(lane)) lanes.recall(lane, [game.account])
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

const grantOf = ({ account }: Ask, { booked, until }: AccountLimit) => ({ account, booked, until })
