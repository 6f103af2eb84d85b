/**
 * The workers on other control planes, as the ledger shows them: which have sent heartbeats recently, their last
 * answers to recalls, and which accounts other control planes have recently recalled from workers here.
 */
import type { Clock } from '../../../lib/clock.ts'
import { maxUsageWaitMs, recallWaitMs } from '../lease.ts'
import type { RecallPeers } from '../recall-peers.ts'
import type { BalanceLedger, WorkerAnswer } from './balance-ledger.ts'

/** What one allocation needs to know about them. */
export interface OtherWorkersState {
  readonly workers: ReadonlySet<string>
  readonly answers: readonly WorkerAnswer[]
  /**
   * Whether another control plane may still wait for answers about this account, and whether it has just repeated its
   * recall.
   */
  recalledElsewhere(account: string): boolean
  contendedElsewhere(account: string): boolean
}

export interface OtherWorkersOptions {
  ledger: Pick<BalanceLedger, 'answers' | 'workersWithin'>
  workers: { connected(): readonly string[] }
  peers: RecallPeers
  clock: Clock
  after(milliseconds: number, work: () => void): void
}

/** A worker sends a heartbeat every second, and its row follows within another. */
const silentMs = 5000
const refreshMs = 1000
/** A grant request waits at most `maxUsageWaitMs`, and its recall is repeated every 250 ms until all have answered. */
const recallWindowMs = maxUsageWaitMs + recallWaitMs
const contentionWindowMs = 500
const pollMs = 100

export class OtherWorkers {
  readonly #options: OtherWorkersOptions
  #recentWorkers: readonly string[] = []
  #readAt = Number.NEGATIVE_INFINITY
  /** When an account was last recalled; monotonic. */
  readonly #recalls = new Map<string, number>()

  constructor(options: OtherWorkersOptions) {
    this.#options = options
  }

  /** Another control plane recalls these accounts. */
  call(accounts: readonly string[]): void {
    const now = this.#options.clock.monotonic()
    for (const [account, at] of this.#recalls) if (at < now - recallWindowMs) this.#recalls.delete(account)
    for (const account of accounts) this.#recalls.set(account, now)
  }

  /** Makes the next `read` query the ledger. */
  forget(): void {
    this.#readAt = Number.NEGATIVE_INFINITY
  }

  /** Without other workers it reads only the heartbeats, once a second. */
  async read(accounts: readonly string[]): Promise<OtherWorkersState> {
    const workers = await this.#workers()
    const answers = workers.size === 0 ? [] : await this.#options.ledger.answers(accounts)
    const now = this.#options.clock.monotonic()
    const within = (account: string, milliseconds: number) => now - (this.#recalls.get(account) ?? now) < milliseconds
    return {
      workers,
      answers,
      recalledElsewhere: (account) => this.#recalls.has(account) && within(account, recallWindowMs),
      contendedElsewhere: (account) => this.#recalls.has(account) && within(account, contentionWindowMs),
    }
  }

  /** Recalls what workers on other control planes hold. Resolves when each has answered, or when `late` resolves. */
  async recallAndWait(balances: readonly { worker: string; account: string }[], late: Promise<void>): Promise<void> {
    const { ledger, peers } = this.#options
    const workers = await this.#workers()
    const held = balances.filter(({ worker }) => workers.has(worker))
    if (held.length === 0) return
    const accounts = [...new Set(held.map(({ account }) => account))]
    const answerNumbers = async () =>
      new Map(
        (await ledger.answers(accounts)).map((answer) => [`${answer.worker} ${answer.account}`, answer.answer_number]),
      )
    const before = await answerNumbers()
    peers.send({ kind: 'recall', accounts })
    const over = late.then(() => true)
    for (let ended = false; !ended; ) {
      const now = await answerNumbers()
      const silent = ({ worker, account }: { worker: string; account: string }) =>
        (now.get(`${worker} ${account}`) ?? 0) <= (before.get(`${worker} ${account}`) ?? 0)
      if (!held.some(silent)) return
      ended = await Promise.race([
        over,
        new Promise<boolean>((resolve) => this.#options.after(pollMs, () => resolve(false))),
      ])
    }
  }

  async #workers(): Promise<ReadonlySet<string>> {
    const { ledger, clock, workers } = this.#options
    const now = clock.monotonic()
    if (now - this.#readAt >= refreshMs) {
      this.#recentWorkers = await ledger.workersWithin(silentMs)
      this.#readAt = now
    }
    return new Set(this.#recentWorkers).difference(new Set(workers.connected()))
  }
}
