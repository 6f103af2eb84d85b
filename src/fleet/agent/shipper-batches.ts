/**
 * The next batches of a worker's events, ready to be shipped: NDJSON lines with the digests of the chain (fleet/protocol/wire.ts), over the
 * exact bytes of the bodies. An event that was just committed is put into its line from memory, in its own tick; the
 * outbox is read only for what is not held here: after a start, behind a backlog, or where the ledger names another head.
 *
 * A batch that was given out is not changed any more, so that it can be sent again. What is held is bounded.
 */
import { ChainWalk } from '../../events/log/chain.ts'
import { type ChainHead, eventBatchLimit, eventLineHead } from '../protocol/wire.ts'

/** More than a line has around its body. */
const aroundBody = 128
const closingBrace = 0x7d
const lineFeed = 0x0a

export interface BatchBounds {
  /** Events of a batch, and bytes of it, more than any line has. */
  events: number
  bytes: number
  /** Batches that are held at a time, two or more. */
  most: number
}

/** As many events as the control plane takes at once; how many of them a transaction takes in is its own matter. */
const usualBounds: BatchBounds = { events: eventBatchLimit, bytes: 1024 * 1024, most: 3 }

interface Batch {
  /** The head that it follows, and the one that the chain has with it. */
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
  /** The head behind all that is held; null until the ledger's is known. */
  #end: ChainHead | null = null
  #walk = new ChainWalk('')
  /** The bytes of a batch that is over, for the next one. */
  #spare: Buffer<ArrayBuffer> | null = null

  constructor(bounds: BatchBounds = usualBounds) {
    this.#bounds = bounds
  }

  /** The number of the last event that is held or need not be. */
  get last(): number {
    return this.#end?.seq ?? 0
  }

  /** Whether a batch is complete. */
  get full(): boolean {
    const [first] = this.#batches
    return this.#batches.length > 1 || (first !== undefined && first.events >= this.#bounds.events)
  }

  /** Whether more goes into the batch that is to be shipped next. */
  get open(): boolean {
    return !this.full && this.#batches[0]?.given !== true
  }

  /** The ledger's head is this one: lets go of what it has, and of all where this is not a head from here. */
  follow(head: ChainHead): void {
    const [first] = this.#batches
    if (first !== undefined && same(first.after, head)) this.#batches.shift()
    const from = this.#batches[0]?.before ?? this.#end
    if (from !== null && same(from, head)) return
    this.#batches.length = 0
    this.#end = head
    this.#walk = new ChainWalk(head.digest)
  }

  /** As `follow`, where the head is the reply to the batch that was given out last: nothing reads its bytes any more. */
  replied(head: ChainHead): void {
    const [first] = this.#batches
    if (first?.given === true && same(first.after, head)) this.#spare = first.bytes
    this.follow(head)
  }

  /** Adds event number `n`, whose body is in these bytes; false where it is not the next one, or there is no room. */
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

  /** The lines of the first batch, which is closed with that; null where there is none. */
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
