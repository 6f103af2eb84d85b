/**
 * A world in which the real code of both sides of the usage protocol runs: clock, network, journals and the ledger are
 * simulated and fail in every way that the protocol claims to survive. Everything follows from one seed.
 *
 * What is checked at every step is the ledger's own: no account over its limit, no settlement above a grant. What was
 * truly spent is counted apart, at each dispatch, so that a lost record would show.
 *
 * Longer than most: a world that fails in all these ways is one state.
 */
import { silentLog } from '../../lib/log/log.ts'
import { readAccountName } from '../account-name.ts'
import { Allocator } from '../lease/allocator/allocator.ts'
import type {
  BalanceLedger,
  LedgerBalance,
  LedgerChange,
  LedgerStatus,
  MissingGrants,
  RegistrationResult,
  WorkerAnswer,
} from '../lease/allocator/balance-ledger.ts'
import {
  answerWithinMs,
  type BalanceReport,
  inRound,
  type LeaseReply,
  type LeaseRequest,
  plainName,
  type Registration,
} from '../lease/lease.ts'
import type { UsageSignal } from '../lease/recall-peers.ts'
import { type UsageJournal, WorkerUsage } from '../lease/worker/worker-usage.ts'
import { type Reservation, type ReservedAmount, UsageRefused } from '../usage-limits.ts'

export interface WorldOptions {
  seed: number
  workers: number
  /** Of several each worker is connected to one, another with each stream. */
  controlPlanes?: number
  /** By account; amounts of requests are 1, of money up to `largest`, both in units. */
  limits: Readonly<Record<string, number>>
  largest: number
  /** So many nano-dollars are one unit: where there are many, counters pass whole rounds. */
  unit: number
  requests: number
  /** How long a provider takes, in milliseconds; something up to 1.5 s where it is not said. */
  lasting?: number
  /** How long a message takes at most, 900 ms where it is not said. */
  slowest?: number
  /** Probabilities of a message being lost, and said twice. */
  loss: number
  repetition: number
  workerCrashes: number
  hostCrashes: number
  controlPlaneCrashes: number
  partitions: number
  failingWrites: number
  /** When the window of the budgets ends and another begins, in milliseconds. */
  windowEndsAt?: number
  /** How often a provider charges more than was held for the request, and for all its limits of money. */
  overcharges?: number
  /** How often the ledger is restored from an earlier copy. */
  restores?: number
}

/** Deterministic noise (mulberry32). */
function noise(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}

export class Scheduler {
  #now = 0
  #order = 0
  #queue: { at: number; order: number; work: () => void }[] = []

  get now(): number {
    return this.#now
  }

  after(milliseconds: number, work: () => void): void {
    const item = { at: this.#now + milliseconds, order: this.#order++, work }
    let [low, high] = [0, this.#queue.length]
    while (low < high) {
      const middle = (low + high) >> 1
      const other = this.#queue[middle]
      if (other !== undefined && (other.at > item.at || (other.at === item.at && other.order > item.order)))
        low = middle + 1
      else high = middle
    }
    this.#queue.splice(low, 0, item)
  }

  /** Runs until an instant; all that promises owe is done between two steps. */
  async run(until: number): Promise<void> {
    for (;;) {
      const next = this.#queue.at(-1)
      if (next === undefined || next.at > until) break
      this.#queue.pop()
      this.#now = next.at
      next.work()
      for (let allocation = 0; allocation < 12; allocation++) await null
    }
    this.#now = until
  }
}

interface Outcome {
  exchange: string
  settlements: readonly ReservedAmount[]
}

/** What a worker's chain holds, as its journal has it. */
class Journal implements UsageJournal {
  /** Committed, and committed for so long that a crash of the host leaves it. */
  readonly events: Outcome[] = []
  readonly opens = new Map<string, readonly ReservedAmount[]>()
  /** As many events as a restart found; the ledger cannot have more of them unless the host lost some. */
  recovered = Number.POSITIVE_INFINITY
  happened = false
  acknowledgedEvent = 0
  #pending: { apply(): void; undo(): void }[] = []
  #batch: PromiseWithResolvers<void> | null = null
  #owed: Outcome[] = []
  readonly #world: World

  constructor(world: World) {
    this.#world = world
  }

  get hasUnwrittenOutcomes(): boolean {
    return this.#owed.length > 0
  }

  get lastEvent(): number {
    return this.events.length
  }

  reported(): void {
    this.happened = false
  }

  committed(): Promise<void> {
    return this.#batch?.promise ?? Promise.resolve()
  }

  open(exchange: string, held: readonly ReservedAmount[]): Promise<void> {
    if (this.hasUnwrittenOutcomes) return Promise.reject(new Error('full'))
    return this.#append(
      () => this.opens.set(exchange, held),
      () => undefined,
    )
  }

  close(outcome: Outcome): Promise<void> {
    return this.#append(
      () => {
        this.opens.delete(outcome.exchange)
        this.events.push(outcome)
      },
      () => this.#owed.push(outcome),
    )
  }

  retry(): void {
    // What fails again is owed again.
    for (const outcome of this.#owed.splice(0)) this.close(outcome).catch(() => undefined)
  }

  /** The process was killed: what was not written is gone, what was opened is interrupted. */
  interrupt(): void {
    this.#pending = []
    this.#batch = null
    this.#owed = []
    this.recovered = Math.min(this.recovered, this.events.length)
    for (const [exchange, held] of this.opens) this.events.push({ exchange, settlements: held })
    this.opens.clear()
  }

  #append(apply: () => void, undo: () => void): Promise<void> {
    if (this.#batch === null) {
      const batch = Promise.withResolvers<void>()
      // A batch without a waiting caller may fail: a caller that waits holds the promise itself.
      batch.promise.catch(() => undefined)
      this.#batch = batch
      this.#world.scheduler.after(this.#world.random() * 2, () => this.#commit(batch))
    }
    this.#pending.push({ apply, undo })
    return this.#batch.promise
  }

  #commit(batch: PromiseWithResolvers<void>): void {
    if (this.#batch !== batch) return
    const pending = this.#pending
    this.#pending = []
    this.#batch = null
    if (this.#world.diskFails()) {
      for (const { undo } of pending) undo()
      batch.reject(new Error('disk'))
      this.#world.scheduler.after(100, () => this.retry())
    } else {
      for (const { apply } of pending) apply()
      batch.resolve()
    }
  }
}

/** As many transactions of each control plane as are remembered of it (usage/lease/ledger-epoch.ts). */
type Marks = ReadonlyMap<string, number>

const mergeMarks = (some: Marks, others: Marks): Marks =>
  new Map([...some, ...[...others].map(([writer, count]) => [writer, Math.max(count, some.get(writer) ?? 0)] as const)])

interface Holder {
  streamId: string
  takenAt: number
  process: string
  registration: number
  registeredAt: number
  pendingReconciliation: boolean
}

class MemoryLedger {
  rows = new Map<string, LedgerBalance>()
  chains = new Map<string, number>()
  outcomes = new Map<string, number>()
  holders = new Map<string, Holder>()
  epoch = new Map<string, number>()
  /** When each worker last heartbeat. */
  heartbeats = new Map<string, number>()
  recallAnswers = new Map<string, WorkerAnswer>()
  readonly problems: string[] = []
  /** How many rounds have ended. */
  rounds = 0
  /** The server is away. */
  down = false
  /** Nothing is granted before. */
  #pausedUntil = Number.NEGATIVE_INFINITY
  /** Providers may charge more than was held; by account, how much was granted afterwards for that. */
  readonly #mayExceed: boolean
  readonly #exceeded = new Map<string, number>()
  /** Until all workers have registered again the sum of grants means nothing. */
  #restored = false
  readonly #limits: Readonly<Record<string, number>>
  readonly #now: () => number

  constructor(limits: Readonly<Record<string, number>>, now: () => number, mayExceed = false) {
    this.#limits = limits
    this.#now = now
    this.#mayExceed = mayExceed
  }

  /** Copies what there is; gives what puts it back. */
  copy(): () => void {
    const { rows, chains, outcomes, holders, epoch, heartbeats, recallAnswers } = this
    const copied = structuredClone({ rows, chains, outcomes, holders, epoch, heartbeats, recallAnswers })
    return () => {
      Object.assign(this, structuredClone(copied))
      this.#pausedUntil = Number.NEGATIVE_INFINITY
      this.#restored = true
    }
  }

  balances(accounts: readonly string[]): LedgerBalance[] {
    return [...this.rows.values()].filter(({ account }) => accounts.includes(account)).map((row) => ({ ...row }))
  }

  get awaits(): boolean {
    return (
      this.#now() < this.#pausedUntil ||
      [...this.holders.values()].some(({ pendingReconciliation }) => pendingReconciliation)
    )
  }

  isBehind(epoch: Marks): boolean {
    return [...epoch].some(([writer, written]) => (this.epoch.get(writer) ?? 0) < written)
  }

  status(epoch: Marks): LedgerStatus {
    if (this.isBehind(epoch)) return 'behind'
    return this.awaits ? 'awaiting' : 'whole'
  }

  answers(accounts: readonly string[]): WorkerAnswer[] {
    return [...this.recallAnswers.values()].filter(({ account }) => accounts.includes(account))
  }

  workersWithin(milliseconds: number): string[] {
    const since = this.#now() - milliseconds
    return [...this.heartbeats].filter(([, at]) => at >= since).map(([worker]) => worker)
  }

  startFullReconciliation(epoch: Marks, workers: ReadonlySet<string>): void {
    for (const worker of workers) {
      const unknown = {
        streamId: '',
        takenAt: 0,
        process: '',
        registration: 0,
        registeredAt: 0,
        pendingReconciliation: true,
      }
      if (!this.holders.has(worker)) this.holders.set(worker, unknown)
    }
    for (const holder of this.holders.values()) holder.pendingReconciliation = true
    for (const [writer, written] of epoch) this.epoch.set(writer, Math.max(written, this.epoch.get(writer) ?? 0))
    this.#pausedUntil = this.#now() + 3000
  }

  awaitSince(since: number): void {
    if (!this.#restored) this.problems.push('a ledger that was not restored was taken for one')
    for (const holder of this.holders.values()) if (holder.registeredAt < since) holder.pendingReconciliation = true
    this.#pausedUntil = this.#now() + 3000
  }

  count(writer: string): void {
    this.epoch.set(writer, 1 + (this.epoch.get(writer) ?? 0))
  }

  apply({ workers, increases, limits, grants, answers = [] }: LedgerChange, epoch: Marks, writer: string): boolean {
    if (increases.length > 0) {
      if (workers.some(({ worker, streamId }) => this.holders.get(worker)?.streamId !== streamId)) return false
      if (this.isBehind(epoch) || (grants && this.awaits)) return false
    }
    const before = new Map([...this.rows].map(([key, row]) => [key, { ...row }]))
    for (const increase of increases) this.#recordIncrease(increase)
    if (limits.some(({ account, limit }) => this.held(account) > limit)) {
      this.rows = before
      return false
    }
    if (increases.length > 0) this.count(writer)
    for (const answer of answers) {
      const key = `${answer.account} ${answer.worker}`
      this.recallAnswers.set(key, {
        ...answer,
        answer_number: Math.max(answer.answer_number, (this.recallAnswers.get(key)?.answer_number ?? 0) + 1),
      })
    }
    this.#check()
    return true
  }

  #recordIncrease(increase: LedgerChange['increases'][number]): void {
    const row = this.#row(increase.account, increase.worker)
    const rounds = Math.max(row.rounds, increase.rounds)
    const [old, { granted, returned }] = [inRound(row, rounds), inRound({ ...row, ...increase }, rounds)]
    this.rounds += rounds - row.rounds
    row.rounds = rounds
    row.granted = Math.max(old.granted, granted)
    row.returned = Math.max(old.returned, Math.min(returned, row.granted - row.settled))
  }

  register(
    { worker, streamId, process, number }: { worker: string; streamId: string; process: string; number: number },
    { through, counted, crashed }: Registration,
    balances: readonly BalanceReport[],
    { forgotten, epoch }: { forgotten: MissingGrants | undefined; epoch: Marks },
  ): RegistrationResult {
    const holder = this.holders.get(worker)
    if (holder?.streamId !== streamId) return 'overtaken'
    if (holder.process === process && holder.registration >= number) return 'overtaken'
    const seq = this.chains.get(worker) ?? 0
    if (seq < through) return 'behind'
    if (this.isBehind(epoch)) return 'behind'
    for (const apply of forgotten?.increases ?? []) {
      const others = holder.pendingReconciliation ? 0 : this.held(apply.account) - this.#heldBy(apply.account, worker)
      if (apply.granted - apply.returned + others <= (apply.limit ?? Number.POSITIVE_INFINITY))
        this.#recordIncrease(apply)
    }
    if (forgotten !== undefined) this.awaitSince(forgotten.since)
    const reported = new Map(balances.map((balance) => [balance.account, balance]))
    for (const row of this.rows.values()) {
      if (row.worker !== worker) continue
      const balance = reported.get(row.account)
      if (balance === undefined) {
        if (crashed) row.settled = row.granted - row.returned
        else row.returned = row.granted - row.settled
      } else if (inRound(balance, row.rounds).returned < row.returned) return 'rolled_back'
      else if (balance.settled < row.settled && seq <= counted) return 'rolled_back'
    }
    Object.assign(holder, { process, registration: number, registeredAt: this.#now(), pendingReconciliation: false })
    this.#check()
    return 'done'
  }

  ingest(
    worker: string,
    { from, events }: { from: number; events: readonly Outcome[] },
    { known, writer }: { known: Marks; writer: string },
  ): number {
    const head = this.chains.get(worker) ?? 0
    if (from > head) return head
    const behind = this.isBehind(known)
    const trusted = behind || (this.holders.get(worker)?.pendingReconciliation ?? true)
    if (!behind && from + events.length > head) this.count(writer)
    for (const { exchange, settlements } of events.slice(head - from)) {
      this.outcomes.set(exchange, (this.outcomes.get(exchange) ?? 0) + 1)
      for (const { account, amount } of settlements) {
        const row = this.#row(account, worker)
        if (trusted) row.granted = Math.max(row.granted, row.returned + row.settled + amount)
        const excess = row.settled + amount - (row.granted - row.returned)
        if (excess > 0) {
          if (!this.#mayExceed) this.problems.push(`settled above a grant: ${account}`)
          this.#exceeded.set(account, (this.#exceeded.get(account) ?? 0) + excess)
          row.granted += excess
        }
        row.settled += amount
      }
    }
    this.chains.set(worker, Math.max(head, from + events.length))
    this.#check()
    return this.chains.get(worker) ?? 0
  }

  held(account: string): number {
    return this.#sum(account, ({ granted, returned }) => granted - returned)
  }

  #heldBy(account: string, worker: string): number {
    return this.#sum(account, (row) => (row.worker === worker ? row.granted - row.returned : 0))
  }

  settled(account: string): number {
    return this.#sum(account, ({ settled }) => settled)
  }

  #sum(account: string, amount: (row: LedgerBalance) => number): number {
    return [...this.rows.values()].reduce((sum, row) => (row.account === account ? sum + amount(row) : sum), 0)
  }

  #row(account: string, worker: string): LedgerBalance {
    const key = `${account} ${worker}`
    const row = this.rows.get(key) ?? { account, worker, rounds: 0, granted: 0, returned: 0, settled: 0 }
    this.rows.set(key, row)
    return row
  }

  #check(): void {
    for (const { account, granted, returned, settled } of this.rows.values()) {
      const exact = [granted, returned, settled].every((counter) => Number.isSafeInteger(counter) && counter >= 0)
      if (!exact) this.problems.push(`${account}: ${granted}, ${returned}, ${settled}`)
    }
    for (const account of new Set([...this.rows.values()].map((row) => row.account))) {
      const limit = (this.#limits[plainName(account)] ?? 0) + (this.#exceeded.get(account) ?? 0)
      if (!this.#restored && this.held(account) > limit)
        this.problems.push(`granted ${this.held(account)} of ${account}`)
      if (this.settled(account) > limit) this.problems.push(`settled ${this.settled(account)} of ${account}`)
    }
  }
}

/** What one control plane remembers of the ledger. */
class Memory {
  readonly writer: string
  #made = 0
  read = new Map<string, number>()

  constructor(writer: string) {
    this.writer = writer
  }

  get known(): Marks {
    return new Map([...this.read, [this.writer, Math.max(this.#made, this.read.get(this.writer) ?? 0)]])
  }

  made(): void {
    this.#made++
  }
}

interface ControlPlane {
  /** The real thing; another one after each crash. */
  authority: Allocator
  memory: Memory
  startedAt: number
  /** Workers that were made to reconnect, with the time of their last registration. */
  asked: Set<string>
  /** Workers that were connected here. */
  seen: Set<string>
  generation: number
  up: boolean
}

interface Worker {
  name: string
  journal: Journal
  usage: WorkerUsage
  streamId: string
  connected: boolean
  /** When this process last took its stream, and what the control plane remembered with the last heartbeat. */
  takenAt: number | null
  epoch: Marks
  /** Which control plane it is connected to. */
  home: number
  alive: boolean
}

/** A restored copy is older than the lag of what control planes and workers know of the ledger. */
const longestLagMs = 2500

export class World {
  readonly scheduler = new Scheduler()
  readonly random: () => number
  readonly ledger: MemoryLedger
  readonly workers: Worker[] = []
  /** Workers that never come back; what they held stays spent. */
  readonly lost = new Set<string>()
  /** What was truly spent, by account: the provider was called and this is what it cost. */
  readonly spent = new Map<string, number>()
  readonly dispatched = new Set<string>()
  /** By exchange and account, what a provider charged beyond what was held. */
  readonly excesses = new Map<string, number>()
  readonly refusals = { exhausted: 0, short: 0, held: 0, unknown: 0, too_many_values: 0 }
  served = 0
  readonly #controlPlanes: ControlPlane[] = []
  #cut = new Set<number>()
  #diskFailsUntil = 0
  #calm = false
  #ids = 0
  readonly #options: WorldOptions

  constructor(options: WorldOptions) {
    this.#options = options
    this.random = noise(options.seed)
    this.ledger = new MemoryLedger(options.limits, () => this.scheduler.now, (options.overcharges ?? 0) > 0)
    for (let index = 0; index < (options.controlPlanes ?? 1); index++) this.#startControlPlane(index)
    for (let index = 0; index < options.workers; index++) this.workers.push(this.#startWorker(index, new Journal(this)))
  }

  diskFails(): boolean {
    return !this.#calm && this.scheduler.now < this.#diskFailsUntil
  }

  /** Lets requests and failures happen for a while, then heals everything and waits until all is at rest. */
  async run(): Promise<void> {
    const { requests, workers, workerCrashes, hostCrashes, controlPlaneCrashes, partitions, failingWrites } =
      this.#options
    const somewhen = () => this.random() * 8000
    this.#restoreLater(this.#options.restores ?? 0)
    const someWorker = () => Math.floor(this.random() * workers)
    for (let request = 0; request < requests; request++)
      this.scheduler.after(somewhen(), () => void this.request(someWorker()))
    for (let each = 0; each < workerCrashes; each++)
      this.scheduler.after(somewhen(), () => this.#crash(someWorker(), false))
    for (let each = 0; each < hostCrashes; each++)
      this.scheduler.after(somewhen(), () => this.#crash(someWorker(), true))
    for (let each = 0; each < controlPlaneCrashes; each++)
      this.scheduler.after(somewhen(), () => {
        this.#crashControlPlane(Math.floor(this.random() * this.#controlPlanes.length))
      })
    for (let each = 0; each < partitions; each++) this.scheduler.after(somewhen(), () => this.#partition(someWorker()))
    for (let each = 0; each < failingWrites; each++) {
      this.scheduler.after(somewhen(), () => {
        this.#diskFailsUntil = this.scheduler.now + this.random() * 400
      })
    }
    await this.scheduler.run(9000)
    this.#calm = true
    this.#cut.clear()
    for (const worker of this.workers) worker.journal.retry()
    await this.scheduler.run(40_000)
  }

  /** Every account; of those that a budget has for values of a dimension, one. */
  #accountsOfRequest(): readonly string[] {
    const accounts = Object.keys(this.#options.limits)
    const values = accounts.filter((account) => (readAccountName(account)?.value ?? null) !== null)
    if (values.length === 0) return accounts
    const own = values[Math.floor(this.random() * values.length)]
    return accounts.filter((account) => account === own || !values.includes(account))
  }

  /** One request on a worker, from reservation to outcome; resolves to whether it was served. */
  async request(index: number, amount?: number): Promise<boolean> {
    const worker = this.workers[index]
    if (worker === undefined || !worker.alive) return false
    const { journal } = worker
    const exchange = `exchange-${this.#ids++}`
    const demands = this.#accountsOfRequest().flatMap((account) => {
      if (account.endsWith('/requests')) return amount === undefined ? [{ account, want: 1, min: 1 }] : []
      const want = amount ?? this.#options.unit * (1 + Math.floor(this.random() * this.#options.largest))
      return [{ account, want, min: amount ?? (this.random() < 0.5 ? want : Math.ceil(want / 3)) }]
    })
    let reservation: Reservation
    try {
      reservation = await worker.usage.reserve(demands, new AbortController().signal)
    } catch (error) {
      if (!(error instanceof UsageRefused)) throw error
      if (worker.alive) this.refusals[error.reason]++
      return false
    }
    if (!worker.alive) return false
    const { held } = reservation
    try {
      await journal.open(exchange, held)
    } catch {
      // The disk is full: nothing is dispatched.
      reservation.release()
      return false
    }
    if (!worker.alive) return false
    this.#dispatch(worker, exchange, reservation)
    return true
  }

  #dispatch(worker: Worker, exchange: string, reservation: Reservation): void {
    this.served++
    this.dispatched.add(exchange)
    const over =
      this.random() < (this.#options.overcharges ?? 0) ? this.#options.unit * Math.ceil(this.random() * 30) : 0
    const used = reservation.held.map(({ account, amount }) => {
      if (account.endsWith('/requests')) return { account, amount }
      if (over > 0) this.excesses.set(`${exchange} ${account}`, over)
      return { account, amount: over > 0 ? amount + over : Math.floor(this.random() * (amount + 1)) }
    })
    for (const { account, amount } of used) this.spent.set(account, (this.spent.get(account) ?? 0) + amount)
    this.scheduler.after(this.#options.lasting ?? this.random() * 1500, () => {
      if (!worker.alive) return
      // A close that fails is owed by the journal, which tries it again.
      worker.journal.close({ exchange, settlements: reservation.book(used) }).catch(() => undefined)
    })
  }

  #startControlPlane(index: number): void {
    const generation = (this.#controlPlanes[index]?.generation ?? 0) + 1
    const memory = new Memory(`writer-${index}-${generation}`)
    const authority = this.#startAuthority(index, generation, memory)
    this.#controlPlanes[index] = {
      ...{ authority, memory, generation, up: true },
      ...{ startedAt: this.scheduler.now, asked: new Set(), seen: new Set() },
    }
    const look = () => {
      if (this.#controlPlanes[index]?.generation !== generation || !this.#controlPlanes[index].up) return
      this.#look(index)
      this.scheduler.after(1000, look)
    }
    this.scheduler.after(1, look)
  }

  /** As fleet/coordinator/usage.ts: finds a restored ledger, and has workers that it waits for connect again. */
  #look(home: number): void {
    const controlPlane = this.#controlPlanes[home]
    if (controlPlane === undefined || this.ledger.down) return
    const { memory, asked } = controlPlane
    const behind = this.ledger.isBehind(memory.known)
    if (behind) this.ledger.startFullReconciliation(memory.known, this.#controlPlanes[home]?.seen ?? new Set())
    else memory.read = new Map(this.ledger.epoch)
    const pendingReconciliation = new Map(
      [...this.ledger.holders].flatMap(([name, { pendingReconciliation: waits, registeredAt }]) =>
        waits ? [[name, `${name} ${registeredAt}`]] : [],
      ),
    )
    for (const [index, worker] of this.workers.entries()) {
      const time = pendingReconciliation.get(worker.name)
      const heard = controlPlane.authority.isRegistered({ worker: worker.name, streamId: worker.streamId })
      const again = behind || (time !== undefined && (heard || !asked.has(time)))
      if (again && worker.connected && worker.home === home) this.#disconnect(index, worker)
    }
    controlPlane.asked = new Set(pendingReconciliation.values())
  }

  /** Copies the ledger; some time later it is away for a while and the copy is there in its place. One after the other. */
  #restoreLater(times: number): void {
    if (times === 0) return
    this.scheduler.after(this.random() * 5000, () => {
      const restore = this.ledger.copy()
      this.scheduler.after(longestLagMs + this.random() * 3000, () => {
        this.ledger.down = true
        this.scheduler.after(100 + this.random() * 1000, () => {
          restore()
          this.ledger.down = false
          this.#restoreLater(times - 1)
        })
      })
    })
  }

  #startAuthority(index: number, generation: number, memory: Memory): Allocator {
    const alive = () => this.#controlPlanes[index]?.generation === generation && this.#controlPlanes[index].up
    const own = () => this.workers.filter(({ connected, home }) => connected && home === index)
    const later = <Result>(work: () => Result) =>
      new Promise<Result>((resolve, reject) => {
        this.scheduler.after(this.random() * 4, () => {
          if (!alive()) return
          if (this.ledger.down) return this.scheduler.after(1, () => alive() && reject(new Error('down')))
          const result = work()
          this.scheduler.after(this.random() * 4, () => {
            if (alive()) resolve(result)
          })
        })
      })
    return new Allocator({
      floors: async (accounts) => new Map(accounts.map((name) => [name, 1])),
      ledger: this.#ledgerOf(index, memory, later),
      limits: {
        limits: async (accounts) =>
          new Map(
            accounts.map((account) => {
              const limit = this.#options.limits[account] ?? null
              return [account, { ...this.#window(account), limit, gatewayId: null }]
            }),
          ),
      },
      clock: { now: () => this.scheduler.now, monotonic: () => this.scheduler.now },
      log: silentLog,
      after: (milliseconds, work) => this.scheduler.after(milliseconds, () => alive() && work()),
      workers: {
        connected: () => own().map(({ name }) => name),
        holds: ({ worker, streamId }) =>
          this.workers.some(({ name, streamId: held }) => name === worker && held === streamId),
        recall: (name, accounts) => {
          if (own().some((worker) => worker.name === name)) this.#recall(name, accounts)
        },
      },
      peers: { send: (signal) => this.#tell(index, signal) },
      onRestored: () => this.#look(index),
    })
  }

  /** As a budget is booked now. */
  #window(account: string): { booked: string; until: number | null } {
    const { windowEndsAt } = this.#options
    if (windowEndsAt === undefined || !account.startsWith('budget/')) return { booked: account, until: null }
    const isOver = this.scheduler.now >= windowEndsAt
    return { booked: `${account}@${isOver ? 2 : 1}`, until: isOver ? 1e9 : windowEndsAt }
  }

  #ledgerOf(home: number, memory: Memory, later: <Result>(work: () => Result) => Promise<Result>): BalanceLedger {
    const { ledger } = this
    const { writer } = memory
    return {
      balances: (accounts) => later(() => ledger.balances(accounts)),
      book: (accounts) => later(() => ({ balances: ledger.balances(accounts), status: ledger.status(memory.known) })),
      answers: (accounts) => later(() => ledger.answers(accounts)),
      workersWithin: (milliseconds) => later(() => ledger.workersWithin(milliseconds)),
      startFullReconciliation: () =>
        later(() => {
          const behind = ledger.isBehind(memory.known)
          if (behind) ledger.startFullReconciliation(memory.known, this.#controlPlanes[home]?.seen ?? new Set())
          return behind
        }),
      async apply(change) {
        const done = await later(() => ledger.apply(change, memory.known, writer))
        if (done && change.increases.length > 0) memory.made()
        return done
      },
      async register(worker, registration, balances, forgotten) {
        const result = await later(() => {
          const said = ledger.register(worker, registration, balances, { forgotten, epoch: memory.known })
          if (said === 'done') ledger.count(writer)
          return said
        })
        if (result === 'done') memory.made()
        return result
      },
    }
  }

  /** A signal to the other control planes, as far as it is not lost. */
  #tell(from: number, signal: UsageSignal): void {
    for (const index of this.#controlPlanes.keys()) {
      if (index === from || (!this.#calm && this.random() < this.#options.loss)) continue
      this.scheduler.after(1 + this.random() * 40, () => {
        const peer = this.#controlPlanes[index]
        if (peer?.up) peer.authority.receiveSignal(signal)
      })
    }
  }

  #recall(name: string, accounts: readonly string[]): void {
    const index = this.workers.findIndex((worker) => worker.name === name)
    this.#carry(index, () => this.workers[index]?.usage.recall(accounts))
  }

  /** One way of the network. */
  #carry(index: number, deliver: () => void): void {
    const { loss, repetition } = this.#options
    if (this.#cut.has(index) || (!this.#calm && this.random() < loss)) return
    this.scheduler.after(1 + this.random() * (this.random() < 0.1 ? (this.#options.slowest ?? 900) : 40), deliver)
    if (!this.#calm && this.random() < repetition) this.scheduler.after(1 + this.random() * 1500, deliver)
  }

  #startWorker(index: number, journal: Journal, name = `worker-${index}-${this.#ids++}`): Worker {
    const clock = { now: () => this.scheduler.now, monotonic: () => this.scheduler.now }
    const after = (milliseconds: number, work: () => void) =>
      this.scheduler.after(milliseconds, () => {
        if (worker.alive) work()
      })
    const worker: Worker = {
      name,
      journal,
      streamId: '',
      connected: false,
      takenAt: null,
      epoch: new Map(),
      home: 0,
      alive: true,
      usage: new WorkerUsage({
        usageWaitMs: 2000,
        process: `process-${this.#ids++}`,
        crash: journal,
        clock,
        journal,
        after,
        send: (request) => this.#send(index, worker, request),
      }),
    }
    const heartbeat = () => {
      worker.usage.tick()
      this.#ship(index, worker)
      if (worker.connected && !this.#cut.has(index)) {
        worker.epoch = this.#controlPlanes[worker.home]?.memory.known ?? worker.epoch
        const known = this.ledger.holders.get(worker.name)?.streamId === worker.streamId
        if (!this.ledger.down && known) this.ledger.heartbeats.set(worker.name, this.scheduler.now)
        else if (!this.ledger.down) this.#disconnect(index, worker)
      }
      after(300 + this.random() * 700, heartbeat)
    }
    after(1, heartbeat)
    after(this.random() * 100, () => this.#connect(index, worker))
    return worker
  }

  #connect(index: number, worker: Worker): void {
    if (!worker.alive || worker.connected) return
    const home = Math.floor(this.random() * this.#controlPlanes.length)
    const controlPlane = this.#controlPlanes[home]
    if (!controlPlane?.up || this.#cut.has(index) || this.ledger.down) {
      this.scheduler.after(100, () => this.#connect(index, worker))
      return
    }
    if ((this.ledger.chains.get(worker.name) ?? 0) > worker.journal.recovered) {
      this.#retire(index, worker)
      return
    }
    worker.journal.recovered = Number.POSITIVE_INFINITY
    worker.streamId = `stream-${this.#ids++}`
    const known = this.ledger.holders.get(worker.name)
    const takenAt = this.scheduler.now
    const holder = {
      process: '',
      registration: 0,
      registeredAt: 0,
      pendingReconciliation: false,
      ...known,
      streamId: worker.streamId,
      takenAt,
    }
    this.ledger.holders.set(worker.name, holder)
    const head = this.ledger.chains.get(worker.name) ?? 0
    const forgotten = worker.takenAt !== null && (known?.takenAt ?? 0) < worker.takenAt
    if (forgotten || head < worker.journal.acknowledgedEvent || this.ledger.isBehind(worker.epoch)) {
      this.ledger.awaitSince(controlPlane.startedAt)
      holder.pendingReconciliation = true
      controlPlane.asked.add(`${worker.name} ${holder.registeredAt}`)
    }
    controlPlane.seen.add(worker.name)
    worker.journal.acknowledgedEvent = head
    worker.takenAt = takenAt
    worker.connected = true
    worker.home = home
    this.#ship(index, worker)
    worker.usage.connected()
  }

  /** The ledger has events that the worker has lost: another instance begins, and this one's shares stay spent. */
  #retire(index: number, worker: Worker): void {
    worker.alive = false
    this.lost.add(worker.name)
    for (const { exchange } of worker.journal.events)
      if (!this.ledger.outcomes.has(exchange)) this.dispatched.delete(exchange)
    this.workers[index] = this.#startWorker(index, new Journal(this))
  }

  #disconnect(index: number, worker: Worker): void {
    worker.connected = false
    this.scheduler.after(50 + this.random() * 300, () => this.#connect(index, worker))
  }

  #send(index: number, worker: Worker, request: LeaseRequest): Promise<LeaseReply> {
    const { promise, resolve, reject } = Promise.withResolvers<LeaseReply>()
    const { streamId, home } = worker
    const controlPlane = this.#controlPlanes[home]
    const left = new AbortController()
    this.scheduler.after(answerWithinMs(request), () => {
      left.abort()
      reject(new Error('timeout'))
    })
    this.#carry(index, () => {
      if (controlPlane === undefined || controlPlane !== this.#controlPlanes[home] || !controlPlane.up) {
        return reject(new Error('reset'))
      }
      const caller = { worker: worker.name, streamId, gatewayId: 'gateway', signal: left.signal }
      controlPlane.authority.receive(caller, request).then(
        (reply) => {
          const { known } = controlPlane.memory
          this.#carry(index, () => {
            // A killed process receives nothing any more.
            if (!worker.alive) return
            if (reply.grants.length > 0) worker.epoch = mergeMarks(worker.epoch, known)
            resolve(reply)
          })
        },
        (error: unknown) => this.#carry(index, () => worker.alive && reject(error)),
      )
    })
    return promise
  }

  #ship(index: number, worker: Worker): void {
    if (!worker.connected) return
    const { streamId } = worker
    const from = worker.journal.acknowledgedEvent
    const events = worker.journal.events.slice(from)
    if (events.length === 0) return
    const { home } = worker
    this.#carry(index, () => {
      const controlPlane = this.#controlPlanes[home]
      // Who holds the worker is known to its control plane, whatever a restored ledger says. A process that came after the
      // one that sent this holds it from when it connected.
      const holder = this.workers[index]
      const isFenced =
        worker.streamId !== streamId || (holder !== undefined && holder !== worker && holder.takenAt !== null)
      if (!controlPlane?.up || this.ledger.down || isFenced) return
      const { memory } = controlPlane
      const before = this.ledger.chains.get(worker.name) ?? 0
      const head = this.ledger.ingest(worker.name, { from, events }, memory)
      if (head > before) memory.made()
      this.#carry(index, () => {
        if (worker.streamId === streamId) worker.journal.acknowledgedEvent = head
      })
    })
  }

  #crash(index: number, host: boolean): void {
    const worker = this.workers[index]
    if (worker === undefined || !worker.alive) return
    worker.alive = false
    worker.connected = false
    const { journal } = worker
    if (host) {
      journal.happened = true
      // The last records before the crash never reached the disk.
      const kept = Math.max(0, journal.events.length - Math.floor(this.random() * 4))
      for (const { exchange } of journal.events.splice(kept)) this.dispatched.delete(exchange)
      for (const exchange of [...journal.opens.keys()].filter(() => this.random() < 0.3)) {
        journal.opens.delete(exchange)
        this.dispatched.delete(exchange)
      }
    }
    journal.interrupt()
    this.scheduler.after(30 + this.random() * 3000, () => {
      this.workers[index] = this.#startWorker(index, journal, worker.name)
    })
  }

  #crashControlPlane(home: number): void {
    const controlPlane = this.#controlPlanes[home]
    if (controlPlane === undefined || !controlPlane.up) return
    controlPlane.up = false
    for (const [index, worker] of this.workers.entries()) {
      if (worker.alive && worker.home === home) this.#disconnect(index, worker)
    }
    this.scheduler.after(30 + this.random() * 1500, () => this.#startControlPlane(home))
  }

  #partition(index: number): void {
    this.#cut.add(index)
    const worker = this.workers[index]
    if (worker?.alive && this.random() < 0.5) this.#disconnect(index, worker)
    this.scheduler.after(200 + this.random() * 4000, () => this.#cut.delete(index))
  }
}
