/** Reads committed events of an outbox in order, for shipping. */
import { closeSync, openSync, readSync } from 'node:fs'
import { Failure } from '../../failure.ts'
import { firstPiece, isPacked, pieceBytes, readPiece } from './packed.ts'
import { decodeRecord, eventNumber, recordKinds } from './record.ts'
import type { Segment } from './segment.ts'

const isDamaged = (): Failure => new Failure('dependency_unavailable', { message: 'The outbox is damaged' })

/** An event ready for shipping. */
export interface CommittedEvent {
  /** Its number in the worker's chain. */
  n: number
  /** Its record (`eventBody`, `parseEventRecord`), valid until the next read. */
  record: Buffer
}

export class OutboxReader {
  readonly #segments: readonly Segment[]
  readonly #last: () => number
  readonly #chunk = Buffer.allocUnsafe(pieceBytes)
  #fd: number | null = null
  #segment: Segment | null = null
  /** Whether the file that is open is packed. The segment may be packed meanwhile, into another file. */
  #packed = false
  /** The place in the file: of a record, or of a piece of a packed file. */
  #offset = 0
  /** The piece at the offset, and the place in it. */
  #piece: { records: Buffer; next: number } | null = null
  #at = 0
  /** The number of the last event before the offset. */
  #n = -1

  constructor(segments: readonly Segment[], last: () => number) {
    this.#segments = segments
    this.#last = last
  }

  /**
   * At most `limit` events from number `after` + 1 on: fewer, but at least one, if they are large; none if there are
   * no new ones. Throws `chain_lost` if that event is no longer kept.
   */
  read(after: number, limit: number): CommittedEvent[] {
    if (after >= this.#last()) return []
    if (this.#n !== after) this.#seek(after)
    const events: CommittedEvent[] = []
    while (events.length === 0 && this.#n < this.#last()) this.#readChunk(after, limit, events)
    return events
  }

  close(): void {
    if (this.#fd !== null) closeSync(this.#fd)
    this.#fd = null
    this.#segment = null
    this.#n = -1
  }

  #seek(after: number): void {
    this.close()
    const segment = this.#segments.find(({ before, last }) => before <= after && after < last)
    if (segment === undefined)
      throw new Failure('chain_lost', { message: `Event ${after + 1} of this chain is no longer kept` })
    this.#enter(segment)
  }

  #enter(segment: Segment): void {
    if (this.#fd !== null) closeSync(this.#fd)
    this.#fd = openSync(segment.path, 'r')
    this.#segment = segment
    this.#packed = isPacked(this.#fd)
    this.#offset = this.#packed ? firstPiece : 0
    this.#piece = null
    this.#at = 0
    this.#n = segment.before
  }

  #readChunk(after: number, limit: number, events: CommittedEvent[]): void {
    const segment = this.#segment
    if (segment === null || this.#fd === null) throw new RangeError('The reader was closed')
    if (!this.#packed) {
      const available = Math.min(pieceBytes, segment.committed - this.#offset)
      const length = readSync(this.#fd, this.#chunk, 0, available, this.#offset)
      const end = this.#take(this.#chunk.subarray(0, length), 0, { after, limit, events })
      this.#offset += end
      if (end === 0) this.#next(segment)
      return
    }
    if (this.#piece === null) {
      const piece = readPiece(this.#fd, this.#offset)
      if (piece === 'bad') throw isDamaged()
      if (piece === null) {
        this.#next(segment)
        return
      }
      this.#piece = piece
      this.#at = 0
    }
    this.#at = this.#take(this.#piece.records, this.#at, { after, limit, events })
    if (this.#at < this.#piece.records.length) return
    this.#offset = this.#piece.next
    this.#piece = null
  }

  /** Takes events from records, up to the limit. Returns the offset after the last record that was read. */
  #take(
    bytes: Buffer,
    from: number,
    { after, limit, events }: { after: number; limit: number; events: CommittedEvent[] },
  ): number {
    let at = from
    while (events.length < limit && at < bytes.length) {
      const record = decodeRecord(bytes, at)
      if (typeof record === 'string') {
        // The last record of a chunk may be cut off. It is the first one of the next chunk.
        if (this.#packed || (record === 'bad' && at === 0)) throw isDamaged()
        break
      }
      at = record.end
      if (record.kind !== recordKinds.event) continue
      if (eventNumber(record.json) !== this.#n + 1) throw isDamaged()
      this.#n++
      if (this.#n > after) events.push({ n: this.#n, record: record.json })
    }
    return at
  }

  #next(segment: Segment): void {
    const next = this.#segments[this.#segments.indexOf(segment) + 1]
    if (next === undefined) throw isDamaged()
    this.#enter(next)
  }
}
