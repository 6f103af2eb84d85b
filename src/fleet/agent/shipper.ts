/**
 * Ships a worker's events to the control plane: in order, in batches (shipper-batches.ts), from the ledger's head of
 * its chain. Lost and repeated messages do no harm: the reply is the ledger's head, and shipping continues after it.
 *
 * Each batch costs the control plane a request and a transaction, whatever its size. So an event after a quiet time is
 * sent at once, under load batches follow at a pace that lets them fill, and a full one never waits.
 */
import { asFailure, type Failure, type FailureCode } from '../../failure.ts'
import type { Clock } from '../../lib/clock.ts'
import type { CommittedEvents } from '../outbox/batch.ts'
import type { Outbox } from '../outbox/outbox.ts'
import type { OutboxReader } from '../outbox/reader.ts'
import { eventBody } from '../outbox/record.ts'
import { backoff } from '../protocol/backoff.ts'
import type { ChainHead } from '../protocol/wire.ts'
import { ShipperBatches } from './shipper-batches.ts'

export interface ShipperOptions {
  outbox: Outbox
  /** Posts a batch (fleet/protocol/wire.ts). Returns the ledger's head of the chain. */
  post(batch: Buffer<ArrayBuffer>): Promise<ChainHead>
  /** Called if shipping cannot continue from its head, after event `after`. It stops until `resume`. */
  onBroken(failure: Failure, after: number): void
  /** The control plane's chain agrees with this worker's up to here. */
  onAgreed(head: ChainHead): void
  /** Called after a failure that will be retried. */
  onFailure(failure: Failure): void
  random: () => number
  clock: Pick<Clock, 'monotonic'>
  /** How long an event waits for more. */
  lingerMs: number
  /** The shortest time between the starts of batches that are not full. */
  paceMs?: number
  batches?: ShipperBatches
}

/** How many events are read from the outbox at a time. */
const readAtOnce = 64
/** Failures after which nothing can be shipped from the same head. */
const ending: ReadonlySet<string> = new Set<FailureCode>(['chain_gap', 'chain_lost', 'chain_fork', 'worker_fenced'])
const usualPaceMs = 100
/** The longest pause before a refused batch is offered again. */
const maxWaitMs = 2000

export class Shipper {
  readonly #options: ShipperOptions
  readonly #reader: OutboxReader
  readonly #batches: ShipperBatches
  #head: ChainHead | null = null
  #timer: Timer | null = null
  #dueAt = 0
  #shipping = false
  #attempt = 0
  #stopped = false
  /** When the last batch was sent, monotonic. */
  #sentAt = Number.NEGATIVE_INFINITY

  constructor(options: ShipperOptions) {
    this.#options = options
    this.#reader = options.outbox.reader()
    this.#batches = options.batches ?? new ShipperBatches()
    options.outbox.onReplicaAdvanced((news) => this.#handle(news))
  }

  /** Continues after this head, which the control plane has just named. */
  resume(head: ChainHead): void {
    this.#head = head
    this.#attempt = 0
    this.#batches.follow(head)
    this.#options.outbox.shipped(head.seq)
    this.#soon(0)
  }

  /** True when the control plane has every committed event. */
  get done(): boolean {
    return this.#head !== null && this.#head.seq >= this.#options.outbox.lastEvent
  }

  stop(): void {
    this.#stopped = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#reader.close()
  }

  #handle({ first, bytes, bodies }: CommittedEvents): void {
    for (let index = 0; index < bodies.length; index += 2) {
      if (!this.#batches.add(first + index / 2, bytes, bodies[index] ?? 0, bodies[index + 1] ?? 0)) break
    }
    // After a failure the pending batch is retried at its time, whether or not new events arrive.
    if (this.#timer === null || (this.#attempt === 0 && this.#full)) this.#soon(this.#pause())
  }

  /** Whether there is a full batch, here or in the outbox. */
  get #full(): boolean {
    return this.#batches.full || this.#behind
  }

  /** Whether there are events that are only in the outbox. */
  get #behind(): boolean {
    return this.#batches.last < this.#options.outbox.lastEvent
  }

  /** How long to wait before sending what there is, in milliseconds. */
  #pause(): number {
    const { lingerMs, clock, paceMs = usualPaceMs } = this.#options
    if (this.#full) return 0
    return Math.max(lingerMs, this.#sentAt + paceMs - clock.monotonic())
  }

  #soon(milliseconds: number): void {
    if (this.#stopped || this.#shipping || this.#head === null) return
    const dueAt = this.#options.clock.monotonic() + milliseconds
    if (this.#timer !== null) {
      if (this.#dueAt <= dueAt) return
      clearTimeout(this.#timer)
    }
    this.#dueAt = dueAt
    this.#timer = setTimeout(() => {
      this.#timer = null
      void this.#ship()
    }, milliseconds)
  }

  async #ship(): Promise<void> {
    const head = this.#head
    if (head === null || this.#stopped) return
    this.#shipping = true
    this.#sentAt = this.#options.clock.monotonic()
    let wait: number | null = null
    try {
      const batch = await this.#next(head)
      if (batch !== null) {
        const reply = await this.#options.post(batch)
        this.#attempt = 0
        // A handshake that came meanwhile has a newer head.
        if (this.#head === head) {
          this.#head = reply
          this.#batches.follow(reply)
        }
        this.#options.outbox.shipped(reply.seq)
        this.#options.onAgreed(reply)
      }
    } catch (error) {
      wait = await this.#failed(asFailure(error), head)
    }
    this.#shipping = false
    if (!this.done) this.#soon(wait ?? this.#pause())
  }

  /** The next batch; null if there are no events or the head has changed. */
  async #next(head: ChainHead): Promise<Buffer<ArrayBuffer> | null> {
    while (this.#batches.open && this.#behind) {
      for (const { n, record } of this.#reader.read(this.#batches.last, readAtOnce)) {
        const body = eventBody(record)
        this.#batches.add(n, body, 0, body.length)
      }
      // Yields, so that other work waits for a part of a batch only.
      await nextTurn()
      if (this.#head !== head || this.#stopped) return null
    }
    const batch = await this.#batches.first()
    return this.#head === head && !this.#stopped ? batch : null
  }

  async #failed(failure: Failure, head: ChainHead): Promise<number> {
    if (failure.code === 'chain_gap' && (await this.#rewind(head))) return 0
    if (ending.has(failure.code)) {
      if (this.#head === head) this.#head = null
      this.#options.onBroken(failure, head.seq)
    } else this.#options.onFailure(failure)
    return Math.min(maxWaitMs, backoff(this.#attempt++, this.#options.random))
  }

  /** Asks for the ledger's head with an empty batch and continues from it. Returns false if it is the same. */
  async #rewind(head: ChainHead): Promise<boolean> {
    try {
      const announced = await this.#options.post(Buffer.alloc(0))
      if (announced.seq === head.seq && announced.digest === head.digest) return false
      if (this.#head === head) {
        this.#head = announced
        this.#batches.follow(announced)
      }
      return true
    } catch (error) {
      this.#options.onFailure(asFailure(error))
      return false
    }
  }
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
