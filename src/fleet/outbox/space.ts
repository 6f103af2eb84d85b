/**
 * The space of an outbox: which segment is written, which are allocated ahead, which may be deleted.
 *
 * Space is reserved before it is used. An exchange is opened only if the space for its end is reserved in segments that
 * are already allocated, so running exchanges can always finish. Records are never split: the space of one may stay
 * unused at a segment's end, and does not count as free. Some space is reserved for revocations.
 * Acknowledged segments are kept for `keepMs` or up to the limit, packed (packed.ts), and the oldest go first.
 *
 * A nearly full disk may hold the ledger too, and what waits here must fit into the ledger before it can be deleted
 * here. So as much as waits stays free, and a little more. Below that, acknowledged segments go early, new ones are
 * smaller, and new work is refused.
 */
import { closeSync, openSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Failure } from '../../failure.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log/log.ts'
import { asOutboxFull, outboxFull } from './full.ts'
import { packFile } from './packed.ts'
import { mostRecordBytes, recordBytes } from './record.ts'
import { allocateEarly, allocateNow, nameSegment, type Segment, type Spare, syncData, type Write } from './segment.ts'

export interface SpaceOptions {
  directory: string
  segmentBytes: number
  limitBytes: number
  keepMs: number
  write: Write
  /** How much space the disk of a directory has. */
  freeBytes(directory: string): number
  clock: Clock
  /** Comparable across processes of one host (lib/host/host-time.ts). */
  hostTime(): number
  log: Log
}

/** May stay unused at a segment's end. */
const tailBytes = mostRecordBytes
/** Reserved for revocations and marks. */
const keptBytes = 64 * 1024
/**
 * Stays free besides what has to fit into the ledger: for its other tables, for logs, for a gateway's copy of the
 * state.
 */
const otherBytes = 4 * 1024 * 1024
/** The smallest segment, unless a smaller one is configured. */
const fewestBytes = 256 * 1024
/** With less free disk space than this no segment is made, whatever waits. */
export const minFreeBytes = otherBytes + fewestBytes
/** The largest part of the free disk space for one segment. */
const diskPart = 1 / 16
/** After a failed allocation no other is tried for this long, since each would fill the disk again. */
const retryMs = 500
const pruneEveryMs = 1000

export class OutboxSpace {
  readonly #options: SpaceOptions
  readonly #segmentBytes: number
  readonly segments: Segment[]
  #spares: Spare[] = []
  #allocating = false
  #made = 0
  #closed = false
  #retryAt = Number.NEGATIVE_INFINITY
  #prunedAt = Number.NEGATIVE_INFINITY
  /** Bytes reserved for open exchanges. */
  reserved = 0
  /** Segments with bytes that were not synced yet. */
  readonly #unsynced = new Set<Segment>()
  #syncing: Promise<void> | null = null
  #packing: Promise<void> | null = null

  constructor(options: SpaceOptions, segments: Segment[]) {
    this.#options = options
    this.#segmentBytes = Math.min(options.segmentBytes, Math.floor(options.limitBytes / 4))
    this.segments = segments
    for (const name of readdirSync(options.directory)) {
      if (name.endsWith('.new')) rmSync(join(options.directory, name))
    }
  }

  get current(): Segment | undefined {
    return this.segments.at(-1)
  }

  /** Bytes on disk, of segments and of allocated ones. */
  get bytes(): number {
    return sum(this.segments) + sum(this.#spares)
  }

  /** Whether unacknowledged events take more than half of the limit. */
  get halfFull(): boolean {
    return this.#waiting > this.#options.limitBytes / 2
  }

  /** Bytes of segments that the control plane does not have completely. */
  get #waiting(): number {
    return sum(this.segments.filter(({ last }) => last > this.acknowledged))
  }

  /**
   * Makes sure that `bytes` are available besides everything reserved, with `written` bytes already used of the
   * current segment. Throws `event_outbox_full` if the limit or the disk does not allow it. `beyondLimit` is for what
   * must be written in any case.
   */
  ensure(bytes: number, written: number, beyondLimit = false): void {
    const needed = bytes + (beyondLimit ? 0 : keptBytes)
    while (this.#free(written) < needed) this.#allocate(beyondLimit)
    this.#prepare(written)
  }

  /** Whether `ensure` would find this many bytes, as far as is known without an allocation. */
  has(bytes: number, written: number): boolean {
    if (this.#free(written) >= bytes + keptBytes) return true
    return this.#options.clock.monotonic() >= this.#retryAt && this.#hasRoom()
  }

  /** The failure to report when `has` is false. */
  fullFailure(): Failure {
    return outboxFull(this.bytes + this.#nextBytes() > this.#options.limitBytes ? 'limit' : 'disk')
  }

  /** Takes the next allocated segment. `begin` writes its first record before it counts. */
  rotate(begin: (fd: number) => number): Segment {
    if (this.#spares.length === 0) this.#allocate(true)
    const spare = this.#spares[0]
    if (spare === undefined) throw new RangeError('No segment was allocated')
    const former = this.current
    const committed = begin(spare.fd)
    this.#spares.shift()
    const index = (former?.index ?? 0) + 1
    const path = nameSegment(spare, this.#options.directory, index)
    const before = former?.last ?? 0
    const segment: Segment = {
      index,
      path,
      size: spare.size,
      packed: false,
      fd: spare.fd,
      committed,
      before,
      last: before,
      open: 0,
      revocations: [],
      coldAt: 0,
      writtenAt: this.#options.clock.now(),
    }
    this.segments.push(segment)
    // The former segment may be fully synced already. The next sync closes it.
    if (former !== undefined) this.#unsynced.add(former)
    this.#unsynced.add(segment)
    return segment
  }

  /** Opens the last segment of a recovered outbox for writing. */
  reopen(segment: Segment): void {
    segment.fd = openSync(segment.path, 'r+')
  }

  /** The oldest segment that a restart must read. */
  neededFrom(): number {
    const now = this.#options.hostTime()
    const needed = this.segments.find(
      ({ open, revocations, coldAt }) => open > 0 || revocations.length > 0 || coldAt > now,
    )
    return needed?.index ?? (this.current?.index ?? 0) + 1
  }

  written(segment: Segment): void {
    segment.writtenAt = this.#options.clock.now()
    this.#unsynced.add(segment)
  }

  /** Syncs everything written so far, off the thread. Then former segments are closed. */
  sync(): Promise<void> {
    this.#syncing ??= this.#syncAll().finally(() => {
      this.#syncing = null
    })
    return this.#syncing
  }

  async #syncAll(): Promise<void> {
    for (const segment of [...this.#unsynced]) {
      this.#unsynced.delete(segment)
      if (segment.fd === null) continue
      try {
        await syncData(segment.fd)
      } catch (error) {
        this.#unsynced.add(segment)
        throw error
      }
      // What was written meanwhile is not synced yet.
      if (segment !== this.current && segment.fd !== null && !this.#unsynced.has(segment)) {
        closeSync(segment.fd)
        segment.fd = null
      }
    }
  }

  /**
   * The control plane has all events up to number `n`. Free space is checked only at intervals here, since what needs
   * space checks it itself.
   */
  shipped(n: number): void {
    this.acknowledged = n
    const now = this.#options.clock.monotonic()
    if (now - this.#prunedAt < pruneEveryMs) return
    this.#prunedAt = now
    this.#prune(0)
    this.#packing ??= this.#packAll().finally(() => {
      this.#packing = null
    })
  }

  /** Packs the segments that are only kept, one after the other. */
  async #packAll(): Promise<void> {
    for (;;) {
      const segment = this.segments.find((each) => !each.packed && this.#isOnlyKept(each))
      if (segment === undefined || this.#closed) return
      try {
        // It may be deleted meanwhile.
        const mayReplace = () => !this.#closed && this.segments.includes(segment)
        const size = await packFile(segment.path, segment.committed, mayReplace)
        if (size === null) continue
        segment.packed = true
        segment.size = size
      } catch (error) {
        // It stays as it is, and the next acknowledgement tries again.
        if (!this.#closed) this.#options.log.warn({ error: String(error) }, 'An outbox segment could not be packed')
        return
      }
    }
  }

  /** Whether the control plane has all of a segment, and neither a restart nor a sync needs it. */
  #isOnlyKept(segment: Segment): boolean {
    const { last, open, revocations, coldAt, fd } = segment
    const isNeeded = last > this.acknowledged || open > 0 || revocations.length > 0
    return !isNeeded && coldAt <= this.#options.hostTime() && fd === null && segment !== this.current
  }

  /** Deletes acknowledged segments, the oldest first, if they are old or space is short. */
  #prune(roomFor: number): void {
    const oldest = this.#options.clock.now() - this.#options.keepMs
    for (;;) {
      const [first] = this.segments
      if (first === undefined || !this.#isOnlyKept(first)) return
      if (first.writtenAt > oldest && this.#fits(roomFor)) return
      rmSync(first.path)
      this.segments.shift()
    }
  }

  /** The number of the last event that the control plane has acknowledged. */
  acknowledged = 0

  async close(): Promise<void> {
    this.#closed = true
    await this.#packing
    for (const { fd, path } of this.#spares) {
      closeSync(fd)
      rmSync(path, { force: true })
    }
    this.#spares = []
    for (const segment of this.segments) {
      if (segment.fd !== null) closeSync(segment.fd)
      segment.fd = null
    }
  }

  #free(written: number): number {
    const current = this.current
    const rest = current === undefined ? 0 : Math.max(0, current.size - written - tailBytes)
    return (
      this.#spares.reduce((free, { size }) => free + Math.max(0, size - tailBytes - recordBytes), rest) - this.reserved
    )
  }

  /** Whether the limit and the disk allow this many bytes more. */
  #fits(bytes: number): boolean {
    const { limitBytes, freeBytes, directory } = this.#options
    return this.bytes + bytes <= limitBytes && freeBytes(directory) - bytes >= this.#waiting + otherBytes
  }

  /** Whether there is room for one more segment, besides one that is being allocated. */
  #hasRoom(): boolean {
    const wanted = this.#allocating ? 2 * this.#nextBytes() : this.#nextBytes()
    this.#prune(wanted)
    return this.#fits(wanted)
  }

  /** The size of the next segment. */
  #nextBytes(): number {
    const { freeBytes, directory } = this.#options
    return Math.min(this.#segmentBytes, Math.max(fewestBytes, Math.floor(freeBytes(directory) * diskPart)))
  }

  #allocate(beyondLimit: boolean): void {
    const notRetryable = this.#options.clock.monotonic() < this.#retryAt || !this.#hasRoom()
    if (notRetryable && !beyondLimit) throw this.fullFailure()
    try {
      this.#spares.push(allocateNow(this.#newPath(), this.#nextBytes(), this.#options.write))
    } catch (error) {
      this.#retryAt = this.#options.clock.monotonic() + retryMs
      throw asOutboxFull(error)
    }
  }

  /** Allocates the next segment early. If that fails, `ensure` notices when it needs the space. */
  #prepare(written: number): void {
    const low = this.#free(written) < (this.current?.size ?? 0) / 2
    if (this.#allocating || !(low || this.#spares.length === 0)) return
    if (this.#options.clock.monotonic() < this.#retryAt || !this.#hasRoom()) return
    this.#allocating = true
    allocateEarly(this.#newPath(), this.#nextBytes())
      .then((spare) => {
        this.#spares.push(spare)
        if (this.#closed) void this.close()
      })
      .catch((error: unknown) => {
        this.#retryAt = this.#options.clock.monotonic() + retryMs
        this.#options.log.warn({ error: String(error) }, 'No outbox segment could be allocated')
      })
      .finally(() => {
        this.#allocating = false
      })
  }

  #newPath(): string {
    return join(this.#options.directory, `${++this.#made}.new`)
  }
}

const sum = (files: readonly { size: number }[]): number => files.reduce((total, { size }) => total + size, 0)
