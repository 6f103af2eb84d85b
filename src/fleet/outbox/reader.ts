/** Reads committed events of an outbox in order, for shipping. */
import { closeSync, openSync, readSync } from 'node:fs'
import { Failure } from '../../failure.ts'
import { decodeRecord, eventNumber, recordBytes, recordKinds } from './record.ts'
import type { Segment } from './segment.ts'

const chunkBytes = 256 * 1024
const damaged = 'The outbox is damaged'

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
  readonly #chunk = Buffer.allocUnsafe(chunkBytes)
  #fd: number | null = null
  #segment: Segment | null = null
  #offset = 0
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
    this.#offset = 0
    this.#n = segment.before
  }

  #readChunk(after: number, limit: number, events: CommittedEvent[]): void {
    const segment = this.#segment
    if (segment === null || this.#fd === null) throw new RangeError('The reader was closed')
    const available = Math.min(chunkBytes, segment.committed - this.#offset)
    const length = readSync(this.#fd, this.#chunk, 0, available, this.#offset)
    const bytes = this.#chunk.subarray(0, length)
    let at = 0
    while (events.length < limit) {
      const record = decodeRecord(bytes, at)
      if (record === 'unwritten' || record === 'bad') {
        const whole = at + recordBytes <= length
        if (record === 'bad' && whole) throw new Failure('dependency_unavailable', { message: damaged })
        break
      }
      at = record.end
      if (record.kind !== recordKinds.event) continue
      if (eventNumber(record.json) !== this.#n + 1) throw new Failure('dependency_unavailable', { message: damaged })
      this.#n++
      if (this.#n > after) events.push({ n: this.#n, record: record.json })
    }
    this.#offset += at
    if (at === 0) this.#next(segment)
  }

  #next(segment: Segment): void {
    const next = this.#segments[this.#segments.indexOf(segment) + 1]
    if (next === undefined) throw new Failure('dependency_unavailable', { message: damaged })
    this.#enter(next)
  }
}
