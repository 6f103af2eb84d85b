/**
 * Ships a lane's events to the control plane: in order, in batches, from the head of its chain that the ledger names.
 * Digests are computed here, over the exact bytes. What is lost or repeated on the way does no harm: the reply is the
 * ledger's head, and shipping goes on behind it.
 *
 * A batch costs the control plane a request and a transaction, however small it is. So news after a quiet time goes at
 * once, and while there is a lot of it batches follow each other at a pace that lets them fill; a full one never waits.
 */
import { chainNext } from '../events/chain.ts'
import { asFailure, type Failure, type FailureCode } from '../failure.ts'
import type { Clock } from '../lib/clock.ts'
import { backoff } from './backoff.ts'
import type { Outbox } from './outbox.ts'
import type { OutboxReader } from './outbox-reader.ts'
import { eventBody } from './outbox-record.ts'
import { type ChainHead, eventLineHead } from './wire.ts'

export interface ShipperOptions {
  outbox: Outbox
  /** Posts NDJSON; gives the ledger's head of the chain. */
  post(lines: Buffer<ArrayBuffer>): Promise<ChainHead>
  /** Called where shipping cannot go on from the head it has, behind event `after`: it stops until `resume`. */
  onBroken(failure: Failure, after: number): void
  /** The control plane has the chain up to here as it is here. */
  onAgreed(head: ChainHead): void
  /** Called after a failure that is tried again. */
  onFailure(failure: Failure): void
  random: () => number
  clock: Pick<Clock, 'monotonic'>
  /** How long news wait for more. */
  lingerMs: number
}

/** More than a line has around its body. */
const aroundBody = 128
/** A full batch: few enough that the control plane takes it in within a few milliseconds (protocols section 7). */
const batchEvents = 128
/** After these nothing can be shipped from the same head. */
const ending: ReadonlySet<string> = new Set<FailureCode>(['chain_gap', 'chain_lost', 'chain_fork', 'lane_fenced'])
/** Batches that are not full begin at least so far apart. */
const paceMs = 50

export class Shipper {
  readonly #options: ShipperOptions
  readonly #reader: OutboxReader
  #head: ChainHead | null = null
  #timer: Timer | null = null
  #dueAt = 0
  #shipping = false
  #attempt = 0
  #stopped = false
  /** When the last batch went, monotonic. */
  #sentAt = Number.NEGATIVE_INFINITY

  constructor(options: ShipperOptions) {
    this.#options = options
    this.#reader = options.outbox.reader()
    options.outbox.onNews(() => this.#soon(this.#pause()))
  }

  /** Goes on behind this head, which the control plane has just named. */
  resume(head: ChainHead): void {
    this.#head = head
    this.#attempt = 0
    this.#options.outbox.shipped(head.seq)
    this.#soon(0)
  }

  /** True when the control plane has every event that was committed. */
  get done(): boolean {
    return this.#head !== null && this.#head.seq >= this.#options.outbox.lastEvent
  }

  stop(): void {
    this.#stopped = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#reader.close()
  }

  /** How long to wait before what there is now goes, in milliseconds. */
  #pause(): number {
    const { outbox, lingerMs, clock } = this.#options
    if (this.#head !== null && outbox.lastEvent - this.#head.seq >= batchEvents) return 0
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
      const lines = this.#lines(head)
      if (lines !== null) {
        const reply = await this.#options.post(lines)
        this.#attempt = 0
        // A hello that came in the meantime knows better.
        if (this.#head === head) this.#head = reply
        this.#options.outbox.shipped(reply.seq)
        this.#options.onAgreed(reply)
      }
    } catch (error) {
      wait = await this.#failed(asFailure(error), head)
    }
    this.#shipping = false
    if (!this.done) this.#soon(wait ?? this.#pause())
  }

  /** The next batch, or null where there is no news; bodies are copied from the outbox and never made text. */
  #lines(head: ChainHead): Buffer<ArrayBuffer> | null {
    const events = this.#reader.read(head.seq, batchEvents)
    if (events.length === 0) return null
    const bytes = Buffer.allocUnsafe(events.reduce((sum, { record }) => sum + record.length + aroundBody, 0))
    let { digest } = head
    let at = 0
    for (const { n, record } of events) {
      const body = eventBody(record)
      digest = chainNext(digest, n, body)
      at += bytes.write(eventLineHead(n, digest), at, 'latin1')
      at += body.copy(bytes, at)
      at += bytes.write('}\n', at, 'latin1')
    }
    return bytes.subarray(0, at)
  }

  async #failed(failure: Failure, head: ChainHead): Promise<number> {
    if (failure.code === 'chain_gap' && (await this.#rewind(head))) return 0
    if (ending.has(failure.code)) {
      if (this.#head === head) this.#head = null
      this.#options.onBroken(failure, head.seq)
    } else this.#options.onFailure(failure)
    return backoff(this.#attempt++, this.#options.random)
  }

  /** Goes on from the head that the ledger has: an empty batch is answered with it. False where that is no news. */
  async #rewind(head: ChainHead): Promise<boolean> {
    try {
      const announced = await this.#options.post(Buffer.alloc(0))
      if (announced.seq === head.seq && announced.digest === head.digest) return false
      if (this.#head === head) this.#head = announced
      return true
    } catch (error) {
      this.#options.onFailure(asFailure(error))
      return false
    }
  }
}
