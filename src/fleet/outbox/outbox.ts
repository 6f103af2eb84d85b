/**
 * The journal of one worker (fleet/outbox/README.md): append-only segment files, from which events are shipped.
 *
 * All appends of one tick are one batch. At the end of the tick one synchronous write puts it into space allocated
 * before. Its promise resolves when write() has returned; the records then survive any kill of the process. For host
 * crashes, fdatasync runs off the thread every 100 ms while there are new records. A batch that cannot be written is
 * undone: numbers, offsets and open exchanges are restored, and all its appends fail.
 *
 * On start, recovery (recovery.ts) restores the chain's number, revocations and the acknowledged version. Exchanges
 * without an outcome get the one that their open record contains.
 *
 * Longer than most: appending, committing and undoing share one state.
 */
import { mkdirSync } from 'node:fs'
import type { Event } from '../../events/event.ts'
import type { LogRecord } from '../../events/log/record.ts'
import { Failure } from '../../failure.ts'
import { ShortLivedMap } from '../../lib/short-lived.ts'
import type { UsageJournal } from '../../usage/lease/worker/worker-usage.ts'
import { type RecordedUse, sumUses } from '../../usage/rate/rate.ts'
import type { RatePast } from '../../usage/rate/rates.ts'
import { UnwrittenOutcomes } from '../agent/unwritten-outcomes.ts'
import type { Journal, JsonOf } from '../protocol/worker.ts'
import { allCommitted, type Batch, type CommittedEvents, newBatch, type OpenExchange } from './batch.ts'
import { eventBytes, eventJson, fittedJson } from './event-size.ts'
import { asOutboxFull } from './full.ts'
import { OutboxReader } from './reader.ts'
import {
  type BootRecord,
  encodeAround,
  encodeRecord,
  eventHead,
  mostRecordBytes,
  openHead,
  type RecordKind,
  type RevocationRecord,
  recordBytes,
  recordBytesOf,
  recordKinds,
  revocationRecords,
  type StatePosition,
  unknownBoot,
  usesRecords,
} from './record.ts'
import { type RecoveredOutbox, recoverOutbox } from './recovery.ts'
import { UnknownCallers } from './refusals.ts'
import { type Segment, writeWhole, writeZeros } from './segment.ts'
import { OutboxSpace, type SpaceOptions } from './space.ts'

const batchBytes = 128 * 1024
const syncEveryMs = 100
/** One try and one retry, as most exchanges have at most. */
const usualInnerEvents = 2

export interface OutboxOptions extends SpaceOptions {
  /** Called with what was found, before anything is written that would hide it from the next start. */
  onRecovered?(recovered: Recovered): void
  /** Identifies the host's present boot, to tell a crash of the host from a kill of the process. */
  bootId: string
}

export interface Recovered extends Pick<RecoveredOutbox, 'dropped' | 'closed' | 'bootId'> {
  /** Exchanges that were running. */
  interrupted: number
  /** The number of the last event that was found. */
  events: number
}

export class Outbox implements Journal, UsageJournal {
  readonly #options: OutboxOptions
  readonly #space: OutboxSpace
  readonly #open = new ShortLivedMap<OpenExchange>()
  /** Exchanges whose outcome could not be written yet. */
  readonly #owed = new Set<string>()
  readonly #buffer = Buffer.allocUnsafe(batchBytes)
  #length = 0
  #batch: Batch | null = null
  #seq: number
  #n: number
  /** Numbers as of the last committed batch. */
  #committedSeq: number
  #committedN: number
  #acknowledged: StatePosition | null
  #revocations: RevocationRecord[]
  #syncTimer: Timer | null = null
  #closed = false
  readonly #listeners: ((news: CommittedEvents) => void)[] = []
  readonly #unknownCallers: UnknownCallers
  readonly #failedCloses = new UnwrittenOutcomes((exchangeId, body) => this.#closeOrRetry(exchangeId, body))
  /** What recovery found, for the log. */
  readonly recovered: Recovered
  /** Known uses of slots by earlier processes. */
  readonly past: RatePast

  /** Opens the outbox in a directory, or makes it, and recovers its content. */
  constructor(options: OutboxOptions) {
    this.#options = options
    this.#unknownCallers = new UnknownCallers(() => options.clock.monotonic())
    mkdirSync(options.directory, { recursive: true, mode: 0o700 })
    const found = recoverOutbox(options.directory, options.write)
    const { segments, seq, n, open, revocations, acknowledged, bootId, closed, dropped } = found
    this.#space = new OutboxSpace(options, segments)
    this.#seq = this.#committedSeq = seq
    this.#n = this.#committedN = n
    this.#acknowledged = acknowledged
    this.#revocations = revocations
    this.recovered = { dropped, closed, bootId, interrupted: open.size, events: n }
    this.past = pastOf(found, options)
    options.onRecovered?.(this.recovered)
    const last = segments.at(-1)
    if (last === undefined || last.packed) this.#rotate()
    else this.#space.reopen(last)
    const started = JSON.stringify(this.#writer)
    this.#makeRoom(recordBytes)
    this.#append(recordKinds.started, started)
    for (const [id, { interrupted, segment }] of open) {
      const body = interrupted.toString()
      const setAside = roomFor(body)
      this.#open.set(id, { id, segment, setAside })
      this.#space.reserved += setAside
      this.#close(id, body)
    }
    const failure = this.#commit()
    if (failure !== null) {
      this.#failedCloses.stop()
      throw failure
    }
    this.#space.ensure(0, this.#written, true)
  }

  /** The number of the last committed event in the worker's chain. */
  get lastEvent(): number {
    return this.#committedN
  }

  get openExchanges(): number {
    return this.#open.size
  }

  get bytes(): number {
    return this.#space.bytes
  }

  /** The number of the oldest event that is kept. */
  get oldestEvent(): number {
    return (this.#space.segments[0]?.before ?? 0) + 1
  }

  /** Number of the last event that the control plane is known to have. */
  get acknowledgedEvent(): number {
    return this.#space.acknowledged
  }

  /** Revocations up to this version are durable here. */
  get acknowledged(): StatePosition | null {
    return this.#acknowledged
  }

  /** Revocations that the state may not show yet. */
  get revocations(): readonly RevocationRecord[] {
    return this.#revocations
  }

  /** An outcome could not be written and will be retried. Until then the amounts that it frees must not be used. */
  get hasUnwrittenOutcomes(): boolean {
    return this.#owed.size > 0
  }

  /** No new exchange can be opened: there is no room for its events, or an ended one still waits for room. */
  get full(): boolean {
    return this.hasUnwrittenOutcomes || !this.#space.has(recordBytes + recordBytesOf(usualInnerEvents), this.#written)
  }

  /** The failure to report while it is full. */
  fullFailure(): Failure {
    return this.#space.fullFailure()
  }

  /** Resolves when everything appended so far is committed. */
  committed(): Promise<void> {
    return this.#batch?.committed ?? Promise.resolve()
  }

  /** Resolves when everything appended so far survives a crash of the host. */
  async durable(): Promise<void> {
    await this.committed()
    // The first sync may have been running already.
    await this.#space.sync()
    await this.#space.sync()
  }

  open(
    exchangeId: string,
    interrupted: JsonOf<Event>,
    innerEvents = usualInnerEvents,
    uses: readonly RecordedUse[] = [],
  ): Promise<void> {
    try {
      if (this.#closed) throw new Failure('draining')
      if (this.hasUnwrittenOutcomes) throw this.fullFailure()
      if (this.#open.has(exchangeId)) throw new Failure('internal', { message: 'An exchange was opened twice' })
      const json = fittedJson(interrupted, 0)
      const records = usesRecords(uses)
      const opening = Math.max(recordBytes, roomFor(json)) + records.length * recordBytes
      const closing = opening - recordBytes + recordBytesOf(innerEvents)
      this.#space.ensure(opening + closing, this.#written)
      this.#makeRoom(opening)
      const batch = this.#begun()
      this.#appendUses(uses, records)
      this.#appendAround(recordKinds.open, openHead(exchangeId), json)
      this.#opened(exchangeId, closing, batch)
      return batch.committed
    } catch (error) {
      return Promise.reject(asOutboxFull(error))
    }
  }

  close(
    exchangeId: string,
    record: JsonOf<LogRecord>,
    innerEvents: number,
    uses: readonly RecordedUse[] = [],
  ): Promise<void> {
    try {
      if (this.#closed) throw new Failure('draining')
      this.#failedCloses.forget(exchangeId)
      return this.#closeOrRetry(exchangeId, fittedJson(record, innerEvents), uses)
    } catch (error) {
      return Promise.reject(asOutboxFull(error))
    }
  }

  refuse(record: LogRecord): Promise<void> {
    return this.#unknownCallers.admit(record, () => this.#space.halfFull) ? this.add([record]) : Promise.resolve()
  }

  /** Records the refusals that `refuse` has skipped as one event `at` that time, at intervals and at the end. */
  sumRefusals(at: number, isEnd: boolean): Promise<void> {
    return this.#unknownCallers.sum(at, isEnd, (sum) => this.add([sum]))
  }

  /** Writes all these records, which close no exchange; otherwise like `refuse`. */
  add(records: readonly LogRecord[]): Promise<void> {
    try {
      if (this.#closed) throw new Failure('draining')
      const bodies = records.map((record) => eventJson(record))
      this.#space.ensure(
        bodies.reduce((sum, body) => sum + roomFor(body), 0),
        this.#written,
      )
      return allCommitted(bodies.map((body) => this.#appendEvent(null, body)))
    } catch (error) {
      return Promise.reject(asOutboxFull(error))
    }
  }

  /**
   * Records that tokens, changed after version `since`, are revoked as of a version, and that all revocations up to
   * `acknowledged` are durable. Resolves when committed. Only then may the version be acknowledged.
   */
  async recordRevocations(
    position: StatePosition,
    hashes: readonly string[],
    acknowledged: StatePosition | null,
    since = position.version - 1,
  ): Promise<void> {
    const records = revocationRecords({ position, since, hashes, acknowledged, before: this.#acknowledged })
    this.#space.ensure(records.length * recordBytes, this.#written, true)
    const batches = records.map((record) => {
      this.#makeRoom(recordBytes)
      return this.#append(recordKinds.revocation, JSON.stringify(record))
    })
    for (const record of records) {
      if (record.hashes.length === 0) continue
      this.#revocations.push(record)
      this.#space.current?.revocations.push(position)
    }
    await allCommitted(batches)
    this.#acknowledged = acknowledged
  }

  /**
   * Drops revocations that the state shows itself at this position, and those of another history once it `refuses`
   * each of their tokens.
   */
  applied({ history, version }: StatePosition, refuses: (hash: string) => boolean = () => false): void {
    if (this.#revocations.length === 0) return
    this.#revocations = this.#revocations.filter(({ position, hashes }) =>
      position.history === history ? position.version > version : !hashes.every(refuses),
    )
    const needed = new Set(this.#revocations.map(({ position }) => nameOf(position)))
    for (const segment of this.#space.segments) {
      segment.revocations = segment.revocations.filter((position) => needed.has(nameOf(position)))
    }
  }

  /** The control plane has all events up to number `n`, so their segments may go. */
  shipped(n: number): void {
    this.#space.shipped(n)
  }

  /** Reads committed events in order for shipping, from the one after `n` on. */
  reader(): OutboxReader {
    return new OutboxReader(this.#space.segments, () => this.#committedN)
  }

  /** Calls the listener after each committed batch that contains an event. */
  onReplicaAdvanced(listener: (news: CommittedEvents) => void): void {
    this.#listeners.push(listener)
  }

  /** Writes the end mark, syncs and closes the files. Open exchanges stay open. */
  async end(): Promise<void> {
    if (this.#closed) return
    this.#failedCloses.retry()
    this.#makeRoom(recordBytes)
    this.#append(recordKinds.closed, JSON.stringify(this.#writer))
    this.#closed = true
    const failure = this.#commit()
    this.#failedCloses.stop()
    if (this.#syncTimer !== null) clearTimeout(this.#syncTimer)
    await this.durable()
    await this.#space.close()
    if (failure !== null) throw failure
  }

  /** The used part of the current segment, including the uncommitted batch. */
  get #written(): number {
    return (this.#space.current?.committed ?? 0) + this.#length
  }

  #opened(id: string, setAside: number, batch: Batch): void {
    const segment = this.#space.current
    if (segment === undefined) throw new RangeError('There is no segment')
    const exchange = { id, segment, setAside }
    this.#setAside(exchange)
    batch.opened.push(exchange)
  }

  #setAside(exchange: OpenExchange): void {
    this.#open.set(exchange.id, exchange)
    this.#space.reserved += exchange.setAside
    exchange.segment.open++
  }

  #letGo({ id, segment, setAside }: OpenExchange): void {
    this.#open.delete(id)
    this.#space.reserved -= setAside
    segment.open--
  }

  /** Like `#close`, but retries an outcome that cannot be written, after the caller got the error. */
  #closeOrRetry(exchangeId: string, body: string, uses: readonly RecordedUse[] = []): Promise<void> {
    try {
      return this.#close(exchangeId, body, uses)
    } catch (error) {
      this.#retryLater(exchangeId, body)
      return Promise.reject(asOutboxFull(error))
    }
  }

  #retryLater(exchangeId: string, body: string): void {
    if (!this.#open.has(exchangeId) || this.#closed) return
    this.#owed.add(exchangeId)
    this.#failedCloses.add(exchangeId, body)
  }

  /** `body` is the JSON of the exchange's record. */
  #close(exchangeId: string, body: string, uses: readonly RecordedUse[] = []): Promise<void> {
    const exchange = this.#open.get(exchangeId)
    if (exchange === undefined) throw new Failure('internal', { message: 'An exchange was closed that is not open' })
    const records = usesRecords(uses)
    const wanted = roomFor(body) + records.length * recordBytes
    const beyond = wanted - exchange.setAside
    if (beyond > 0) this.#space.ensure(beyond, this.#written, true)
    // Make room for all of them first: a commit between them could fail alone.
    if (wanted <= mostRecordBytes) this.#makeRoom(wanted)
    this.#appendUses(uses, records)
    const batch = this.#appendEvent(exchangeId, body)
    this.#letGo(exchange)
    this.#owed.delete(exchangeId)
    batch.closed.push({ exchange, body })
    return batch.committed
  }

  #appendEvent(closes: string | null, body: string): Batch {
    // Make room first: that may commit, and a failed commit takes numbers back.
    this.#makeRoom(roomFor(body))
    const batch = this.#begun()
    const bodyStart = this.#appendAround(recordKinds.event, eventHead(++this.#n, closes), body)
    batch.bodies.push(bodyStart, this.#length - 1)
    return batch
  }

  /** Commits, or continues in the next segment, if the batch or the segment has no room for this many bytes. */
  #makeRoom(bytes: number): void {
    if (this.#length + bytes > this.#buffer.length) this.#commit()
    if (this.#written + bytes <= (this.#space.current?.size ?? 0)) return
    this.#commit()
    this.#rotate()
  }

  #appendUses(uses: readonly RecordedUse[], records: readonly string[]): void {
    for (const record of records) {
      this.#makeRoom(recordBytes)
      this.#append(recordKinds.uses, record)
      const segment = this.#space.current
      if (segment === undefined) continue
      for (const [, until] of uses) segment.coldAt = Math.max(segment.coldAt, until)
    }
  }

  /** Identifies the writer, in the first record of a process and of a segment. */
  get #writer(): BootRecord {
    return { boot_id: this.#options.bootId, run: this.past.run, known_from: this.past.knownFrom }
  }

  #append(kind: RecordKind, json: string): Batch {
    const batch = this.#begun()
    this.#length = encodeRecord(this.#buffer, this.#length, ++this.#seq, kind, json)
    return batch
  }

  /** Appends a record around an event. Returns where the body starts in the buffer; only a brace follows it. */
  #appendAround(kind: RecordKind, head: string, body: string): number {
    const record = { seq: ++this.#seq, kind, head, body }
    const { bodyStart, end } = encodeAround(this.#buffer, this.#length, record)
    this.#length = end
    return bodyStart
  }

  /** The batch of this tick. */
  #begun(): Batch {
    if (this.#batch === null) {
      this.#batch = newBatch()
      setImmediate(() => this.#commit())
    }
    return this.#batch
  }

  /** Writes the batch. If that fails, its appends fail and the memory is restored. */
  #commit(): Failure | null {
    const batch = this.#batch
    const segment = this.#space.current
    if (batch === null || segment === undefined || segment.fd === null) return null
    const length = this.#length
    this.#batch = null
    this.#length = 0
    try {
      writeWhole(this.#options.write, segment.fd, this.#buffer, length, segment.committed)
    } catch (error) {
      this.#seq = this.#committedSeq
      this.#n = this.#committedN
      for (const { exchange, body } of batch.closed) {
        this.#setAside(exchange)
        this.#retryLater(exchange.id, body)
      }
      for (const exchange of batch.opened) this.#letGo(exchange)
      this.#eraseTorn(segment, segment.fd, length)
      const failure = asOutboxFull(error)
      batch.reject(failure)
      return failure
    }
    const first = this.#committedN + 1
    segment.committed += length
    segment.last = this.#n
    this.#committedSeq = this.#seq
    this.#committedN = this.#n
    this.#space.written(segment)
    this.#syncSoon()
    batch.resolve()
    if (batch.bodies.length > 0) {
      for (const listener of this.#listeners) listener({ first, bytes: this.#buffer, bodies: batch.bodies })
    }
    return null
  }

  /** Erases what a failed write left behind, which could be read as the continuation of a shorter batch. */
  #eraseTorn(segment: Segment, fd: number, length: number): void {
    try {
      writeZeros(this.#options.write, fd, segment.committed, segment.committed + length)
    } catch (error) {
      // The disk accepts no writes now. The next batch overwrites it, and recovery stops at a record that does not
      // follow.
      this.#options.log.warn({ error: String(error) }, 'A torn batch could not be erased')
    }
  }

  /** Continues in the next segment, whose first record summarises what came before. */
  #rotate(): void {
    const head = {
      ...this.#writer,
      n: this.#n,
      needed_from: this.#space.neededFrom(),
      acknowledged: this.#acknowledged,
    }
    const bytes = Buffer.alloc(recordBytes)
    const end = encodeRecord(bytes, 0, this.#seq + 1, recordKinds.segment, JSON.stringify(head))
    this.#space.rotate((fd) => {
      writeWhole(this.#options.write, fd, bytes, end, 0)
      return end
    })
    this.#seq++
    this.#committedSeq = this.#seq
    this.#syncSoon()
  }

  #syncSoon(): void {
    if (this.#syncTimer !== null || this.#closed) return
    this.#syncTimer = setTimeout(() => {
      this.#syncTimer = null
      this.#space.sync().catch((error: unknown) => {
        this.#options.log.error({ error: String(error) }, 'The outbox could not be synced to the disk')
      })
    }, syncEveryMs)
  }
}

/**
 * A kill of the process leaves every record. After a host crash or damage it is unknown what was lost, and times of
 * another boot cannot be compared.
 */
function pastOf(
  { run: former, knownFrom, bootId, dropped, uses }: RecoveredOutbox,
  options: Pick<OutboxOptions, 'bootId' | 'clock' | 'hostTime'>,
): RatePast {
  const run = Math.max(former + 1, Math.floor(options.clock.now()))
  if (bootId !== options.bootId || bootId === unknownBoot || dropped !== null) {
    return { run, knownFrom: run, uses: new Map() }
  }
  const now = options.hostTime()
  return { run, knownFrom, uses: sumUses(uses.filter(([, until]) => until > now)) }
}

/** The bytes that are kept free for a record of the event log with this JSON. */
const roomFor = (body: string): number => Buffer.byteLength(body) + recordBytes - eventBytes(0)

const nameOf = ({ history, version }: StatePosition): string => `${history} ${version}`
