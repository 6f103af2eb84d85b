/**
 * Builds the next batches of a worker's events: NDJSON lines with the digests of the chain (fleet/protocol/wire.ts),
 * over the exact bytes of the bodies. A newly committed event is put into its line from memory, in the same tick. The
 * outbox is read only for events that are not held here: after a start, behind a backlog, or if the ledger names
 * another head.
 *
 * A batch that was handed out does not change, so that it can be sent again. The memory is bounded.
 */
import { ChainWalk } from '../../events/log/chain.ts'
import { type ChainHead, eventBatchLimit, eventLineHead } from '../protocol/wire.ts'

/** More than a line has around its body. */
const aroundBody = 128
const closingBrace = 0x7d
const lineFeed = 0x0a

export interface BatchBounds {
  /** The most events of a batch, and its most bytes, more than any line has. */
  events: number
  bytes: number
  /** How many batches are held at a time, two or more. */
  most: number
}

/** As many events as the control plane accepts at once; it chooses the size of its transactions itself. */
const usualBounds: BatchBounds = { events: eventBatchLimit, bytes: 1024 * 1024, most: 3 }

interface Batch {
  /** The chain's head before this batch, and after it. */
  readonly before: ChainHead
  after: ChainHead
  readonly bytes: Buffer<ArrayBuffer>
  length: number
  events: number
  given: boolean
}

export class ShipperBatches {
  readonly #bounds: BatchBounds
  readonly #batches: Batch[] = []
  /** The chain's head after everything that is held; null until the ledger's is known. */
  #end: ChainHead | null = null
  #walk = new ChainWalk('')
  /** The buffer of a finished batch, for the next one. */
  #spare: Buffer<ArrayBuffer> | null = null

  constructor(bounds: BatchBounds = usualBounds) {
    this.#bounds = bounds
  }

  /** The number of the last event that is held or already in the ledger. */
  get last(): number {
    return this.#end?.seq ?? 0
  }

  /** Whether a batch is complete. */
  get full(): boolean {
    const [first] = this.#batches
    return this.#batches.length > 1 || (first !== undefined && first.events >= this.#bounds.events)
  }

  /** Whether the next batch to ship takes more events. */
  get open(): boolean {
    return !this.full && this.#batches[0]?.given !== true
  }

  /** Drops what the ledger has at this head, and everything if the head is not from here. */
  follow(head: ChainHead): void {
    const [first] = this.#batches
    if (first !== undefined && same(first.after, head)) this.#batches.shift()
    const from = this.#batches[0]?.before ?? this.#end
    if (from !== null && same(from, head)) return
    this.#batches.length = 0
    this.#end = head
    this.#walk = new ChainWalk(head.digest)
  }

  /** Like `follow`, if the head is the reply to the last batch, so that its buffer can be used again. */
  replied(head: ChainHead): void {
    const [first] = this.#batches
    if (first?.given === true && same(first.after, head)) this.#spare = first.bytes
    this.follow(head)
  }

  /** Adds event number `n` with this body. Returns false if it is not the next one or there is no room. */
  add(n: number, bytes: Buffer, start: number, end: number): boolean {
    if (this.#end === null || n !== this.#end.seq + 1) return false
    const batch = this.#withRoom(this.#end, end - start + aroundBody)
    if (batch === null) return false
    this.#walk.step(n, bytes.subarray(start, end))
    const { digest } = this.#walk
    const target = batch.bytes
    let at = batch.length + target.write(eventLineHead(n, digest), batch.length, 'latin1')
    at += bytes.copy(target, at, start, end)
    target[at++] = closingBrace
    target[at++] = lineFeed
    batch.length = at
    batch.events++
    batch.after = this.#end = { seq: n, digest }
    return true
  }

  /** The lines of the first batch, which is closed then; null if there is none. */
  first(): Buffer<ArrayBuffer> | null {
    const [first] = this.#batches
    if (first === undefined) return null
    first.given = true
    return first.bytes.subarray(0, first.length)
  }

  #withRoom(end: ChainHead, bytes: number): Batch | null {
    const { events: maxEvents, bytes: maxBytes, most } = this.#bounds
    const last = this.#batches.at(-1)
    if (last !== undefined && !last.given && last.events < maxEvents && last.length + bytes <= maxBytes) return last
    if (this.#batches.length >= most) return null
    const room = this.#spare ?? Buffer.allocUnsafeSlow(maxBytes)
    this.#spare = null
    const batch = { before: end, after: end, bytes: room, length: 0, events: 0, given: false }
    this.#batches.push(batch)
    return batch
  }
}

const same = (one: ChainHead, other: ChainHead): boolean => one.seq === other.seq && one.digest === other.digest
