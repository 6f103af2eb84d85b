/**
 * Builds the next batches of a worker's records (fleet/protocol/wire.ts) of their exact bytes. A newly committed record
 * is copied from memory, in the same tick. The outbox is read only for records that are not held here: after a start,
 * behind a backlog, or if the ledger names another head.
 *
 * A batch is compressed when it is handed out, off the thread. From then on it does not change, so that it can be sent
 * again. The memory is bounded.
 */
import { ChainWalk } from '../../events/log/chain.ts'
import { batchHead, type ChainHead, eventBatchLimit } from '../protocol/wire.ts'

/** Room for the longest first line. */
const headRoom = batchHead(Number.MAX_SAFE_INTEGER, eventBatchLimit, '0'.repeat(64)).length
const lineFeed = 0x0a

export interface BatchBounds {
  /** The most records of a batch, and its most bytes before compression, more than any record has. */
  events: number
  bytes: number
  /** How many batches are held at a time, two or more. */
  most: number
}

/** As many records as the control plane accepts at once. */
const usualBounds: BatchBounds = { events: eventBatchLimit, bytes: 1024 * 1024, most: 3 }

interface Batch {
  /** The chain's head before this batch. */
  readonly before: ChainHead
  /** The chain's head after it; null while it takes more records. */
  after: ChainHead | null
  /** The lines, behind the room for the first. */
  readonly bytes: Buffer
  length: number
  events: number
  /** What is sent, once it was handed out. */
  sent: Promise<Buffer<ArrayBuffer>> | null
}

export class ShipperBatches {
  readonly #bounds: BatchBounds
  readonly #batches: Batch[] = []
  /** The number of the last record that is held; null until the ledger's head is known. */
  #last: number | null = null
  /** The chain up to that record. */
  #walk = new ChainWalk('')
  /** The buffer of a batch that is compressed, for the next one. */
  #spare: Buffer | null = null

  constructor(bounds: BatchBounds = usualBounds) {
    this.#bounds = bounds
  }

  /** The number of the last event that is held or already in the ledger. */
  get last(): number {
    return this.#last ?? 0
  }

  /** Whether a batch is complete. */
  get full(): boolean {
    const [first] = this.#batches
    return this.#batches.length > 1 || (first !== undefined && first.events >= this.#bounds.events)
  }

  /** Whether the next batch to ship takes more events. */
  get open(): boolean {
    return !this.full && (this.#batches[0]?.sent ?? null) === null
  }

  /** Drops what the ledger has at this head, and everything if the head is not from here. */
  follow(head: ChainHead): void {
    const [first] = this.#batches
    if (first !== undefined && first.after !== null && same(first.after, head)) this.#batches.shift()
    const from = this.#batches[0]?.before ?? this.#end
    if (from !== null && same(from, head)) return
    this.#batches.length = 0
    this.#last = head.seq
    this.#walk = new ChainWalk(head.digest)
  }

  /** Adds record number `n` with this body. Returns false if it is not the next one or there is no room. */
  add(n: number, bytes: Buffer, start: number, end: number): boolean {
    if (n !== (this.#last ?? Number.NaN) + 1) return false
    const batch = this.#withRoom(end - start + 1)
    if (batch === null) return false
    this.#walk.step(n, bytes.subarray(start, end))
    batch.length += bytes.copy(batch.bytes, batch.length, start, end)
    batch.bytes[batch.length++] = lineFeed
    batch.events++
    this.#last = n
    return true
  }

  /** The first batch as it is sent, which is closed then; null if there is none. */
  async first(): Promise<Buffer<ArrayBuffer> | null> {
    const [first] = this.#batches
    if (first === undefined) return null
    if (first.after === null) this.#complete(first)
    first.sent ??= this.#compressed(first)
    return await first.sent
  }

  async #compressed(batch: Batch): Promise<Buffer<ArrayBuffer>> {
    const { bytes, before, after, events, length } = batch
    const head = batchHead(before.seq + 1, events, after?.digest ?? '')
    const start = headRoom - head.length
    bytes.write(head, start, 'latin1')
    try {
      // One call of the pool. A stream of node:zlib would come back to this thread for each 16 KB.
      const sent = Buffer.from(await Bun.zstdCompress(bytes.subarray(start, length), { level: 1 }))
      this.#spare = bytes
      return sent
    } catch (error) {
      batch.sent = null
      throw error
    }
  }

  /** The chain's head after everything that is held. Its digest is written once for each batch. */
  get #end(): ChainHead | null {
    return this.#last === null ? null : { seq: this.#last, digest: this.#walk.digest }
  }

  /** The last batch takes no more records. */
  #complete(batch: Batch): void {
    batch.after = this.#end
  }

  #withRoom(bytes: number): Batch | null {
    const { events: maxEvents, bytes: maxBytes, most } = this.#bounds
    const last = this.#batches.at(-1)
    if (
      last !== undefined &&
      last.after === null &&
      last.events < maxEvents &&
      last.length + bytes <= headRoom + maxBytes
    )
      return last
    if (this.#batches.length >= most) return null
    if (last?.after === null) this.#complete(last)
    const end = this.#end
    if (end === null) return null
    const room = this.#spare ?? Buffer.allocUnsafeSlow(headRoom + maxBytes)
    this.#spare = null
    const batch: Batch = { before: end, after: null, bytes: room, length: headRoom, events: 0, sent: null }
    this.#batches.push(batch)
    return batch
  }
}

const same = (one: ChainHead, other: ChainHead): boolean => one.seq === other.seq && one.digest === other.digest
