/**
 * Workers, a network and a control plane for the tests of rates, in simulated time: the real code on both sides, a real
 * SQLite in between, and messages that are late, lost or sent twice as the test says.
 */
import { Database as Sqlite } from 'bun:sqlite'
import { ledgerMigrations } from '../../store/schema/migrate.ts'
import type { Statement } from '../../store/statement.ts'
import { type RecordedUse, sumUses } from '../rate/rate.ts'
import { answerSlots } from '../rate/rate-ledger.ts'
import { type SlotBalance, type SlotsReply, slotsReplySchema, slotsRequestSchema } from '../rate/rate-protocol.ts'
import { WorkerRates } from '../rate/worker-rates.ts'

/** libSQL binds every number as a real, so that divisions have a fraction; this SQLite binds whole ones as integers. */
const withReals = (sql: string, args: Statement['args']): string => {
  let plain = 0
  return sql.replaceAll(/\?(\d*)/g, (parameter, number: string) => {
    const position = number === '' ? plain++ : Number(number) - 1
    return typeof args[position] === 'number' ? `cast(${parameter} as real)` : parameter
  })
}

/** What becomes of one message: its delay each way, and whether it or its answer is lost, or it arrives again. */
export interface Fate {
  there: number
  back: number
  lost: 'no' | 'message' | 'answer'
  again: number | null
}

export const promptly: Fate = { there: 1, back: 1, lost: 'no', again: null }

let migrated: Uint8Array | null = null

/** A ledger in memory. The migrations run once in a process: a copy costs less. */
function migratedLedger(): Sqlite {
  if (migrated === null) {
    const ledger = new Sqlite(':memory:')
    for (const { sql } of ledgerMigrations) ledger.run(sql)
    migrated = ledger.serialize()
    ledger.close()
  }
  return Sqlite.deserialize(migrated)
}

export class SlotWorld {
  now = 1_000_000
  readonly ledger = migratedLedger()
  readonly workers = new Map<string, WorkerRates>()
  /** Workers without any connection. */
  readonly cut = new Set<string>()
  messages = 0
  /** What the workers' journals hold, which outlives their processes. */
  readonly #journals = new Map<string, RecordedUse[]>()
  readonly #knownFrom = new Map<string, number>()
  readonly #limits: ReadonlyMap<string, number>
  readonly #fate: () => Fate
  #events: { at: number; run: () => void }[] = []
  #ids = 0

  constructor(limits: ReadonlyMap<string, number>, fate: () => Fate) {
    this.#limits = limits
    this.#fate = fate
  }

  /**
   * Starts a worker, or starts it again: after a kill with its journal, after a crash of the host without it. `offset` is
   * how its clock differs.
   */
  start(name: string, offset = 0, after: 'kill' | 'crash' = 'kill'): WorkerRates {
    const run = ++this.#ids
    if (after === 'crash') {
      this.#journals.delete(name)
      this.#knownFrom.set(name, run)
    }
    const uses = sumUses(this.#journals.get(name) ?? [])
    const worker = new WorkerRates({
      clock: { monotonic: () => this.now + offset, host: () => this.now },
      process: `${run}`,
      past: { run, knownFrom: this.#knownFrom.get(name) ?? 0, uses },
      post: (balances) => this.#post(name, worker, balances),
      sleep: this.#sleep,
    })
    this.workers.set(name, worker)
    return worker
  }

  /** Writes uses into a worker's journal, as its gateway does before it dispatches. */
  record(name: string, uses: readonly RecordedUse[]): void {
    this.#journals.set(name, [...(this.#journals.get(name) ?? []), ...uses])
  }

  at(at: number, run: () => void): void {
    this.#events.push({ at, run })
  }

  /** Lets time pass, event by event, with everything that follows from each. */
  async until(end: number): Promise<void> {
    for (;;) {
      const next = this.#events.reduce<number>((found, { at }) => Math.min(found, at), end)
      const due = this.#events.filter(({ at }) => at <= next)
      if (due.length === 0) break
      this.#events = this.#events.filter(({ at }) => at > next)
      this.now = Math.max(this.now, next)
      for (const { run } of due) run()
      await new Promise((resolve) => setImmediate(resolve))
    }
    this.now = end
  }

  readonly #sleep = (milliseconds: number) =>
    new Promise<void>((resolve) => this.at(this.now + milliseconds, () => resolve()))

  async #post(name: string, sender: WorkerRates, balances: readonly SlotBalance[]): Promise<SlotsReply> {
    this.messages += 1
    const fate = this.#fate()
    await this.#sleep(fate.there)
    const unreachable = () => this.cut.has(name) || this.workers.get(name) !== sender
    if (fate.lost === 'message' || unreachable()) throw new Error('lost')
    if (fate.again !== null)
      this.at(this.now + fate.again, () => void this.#answer(name, balances).catch(() => undefined))
    const reply = await this.#answer(name, balances)
    await this.#sleep(fate.back)
    if (fate.lost === 'answer' || unreachable()) throw new Error('lost')
    return reply
  }

  /** Answers as the route does, which validates both directions. */
  async #answer(worker: string, reported: readonly SlotBalance[]): Promise<SlotsReply> {
    const { ledger } = this
    const { balances } = slotsRequestSchema.parse({ worker: 0, stream_id: crypto.randomUUID(), balances: reported })
    const reply = await answerSlots(
      {
        slotsOf: async (account) => this.#limits.get(account.split('/')[1] ?? '') ?? 0,
        ledger: {
          read: async <Shape>(sql: string, args: Statement['args'] = []) =>
            ledger.query(withReals(sql, args)).all(...args) as Shape[],
          write: async (statements) => {
            ledger.transaction(() => {
              for (const { sql, args } of statements) ledger.query(withReals(sql, args)).run(...args)
            })()
          },
        },
        now: () => this.now,
        newId: () => `${++this.#ids}`,
        sleep: this.#sleep,
        recall: (account, want, workers, at) => this.#recall(account, want, workers, at),
      },
      worker,
      balances,
    )
    return slotsReplySchema.parse(reply)
  }

  #recall(account: string, want: number, workers: readonly string[], at: number): void {
    for (const name of workers) {
      const fate = this.#fate()
      if (fate.lost !== 'no' || this.cut.has(name)) continue
      this.at(this.now + fate.there, () => this.workers.get(name)?.recall(account, want, at))
    }
  }
}
