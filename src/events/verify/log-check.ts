/**
 * Goes through the segments of the log in the order of their positions and compares everything that they say with their
 * records (events/proof/README.md). Its memory grows with the number of chains, and by a few numbers for each segment;
 * one block is open at a time.
 *
 * It compares with what the ledger named as its ends when the reading began, so that later records are left for the next
 * time. Merging moves no record: a segment that was merged meanwhile is read again for its index, and its records are
 * followed from where the reading stood. Where retention was faster, the reading goes on at the floors.
 */
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import type { Database } from '../../store/open.ts'
import type { OutsideRecords } from '../engine/event-log.ts'
import { logOf } from '../engine/log-of.ts'
import { chainStart } from '../log/chain.ts'
import { arrivalsStart } from '../proof/arrivals.ts'
import type { Floor } from '../retention/retention-floor.ts'
import { ChainCheck } from './chain-check.ts'
import { type Finding, Findings, finding } from './finding.ts'
import { followStored } from './outside-check.ts'
import { type SegmentReading, verifySegment } from './segment-check.ts'
import { readSignedFloors, type SignedRecord } from './signed-record.ts'
import {
  countRows,
  facetsToStore,
  hasSegmentsBeyond,
  isStillThere,
  type LogHeads,
  readFirstPosition,
  readHeads,
  readSegmentAt,
  readSegmentBehind,
  type SegmentRows,
  segmentBehind,
  tablesOfSegments,
} from './stored-log.ts'

/** Records outside of the ledger between two turns of other work. */
const recordsAtOnce = 256

interface LogOptions {
  ledger: Database
  signal: AbortSignal
}

/** What was seen of a segment. */
interface SeenSegment extends Pick<SegmentRows, 'first' | 'records'> {
  /** Rows of its facets; null where that is not known. */
  facets: number | null
}

export class LogCheck implements SegmentReading {
  readonly ledger: Database
  readonly signal: AbortSignal
  /** Of segments, and of what names no chain. */
  readonly findings = new Findings()
  readonly #signed: SignedRecord
  readonly #outside: OutsideRecords | null
  readonly #checks = new Map<string, ChainCheck>()
  readonly #seen = new Map<number, SeenSegment>()
  #floors = new Map<string, Floor>()
  #heads: LogHeads = { next: 1, removedUntil: 0, heads: new Map(), oddChains: [] }
  #begunLater = false
  #begin = 1
  /** The position of the next record to read. */
  next = 1
  /** Events that were read. */
  events = 0

  constructor({ ledger, signal }: LogOptions, signed: SignedRecord) {
    this.ledger = ledger
    this.#outside = logOf(ledger).outside
    this.signal = signal
    this.#signed = signed
  }

  get end(): number {
    return this.#heads.next
  }

  /** How many records were read, and how many there are to read. */
  get progress(): { done: number; of: number } {
    return { done: Math.min(this.next, this.end) - this.#begin, of: Math.max(0, this.end - this.#begin) }
  }

  get checks(): ReadonlyMap<string, ChainCheck> {
    return this.#checks
  }

  check(chain: string): ChainCheck {
    let check = this.#checks.get(chain)
    if (check === undefined) {
      const points = this.#signed.points.get(chain) ?? []
      check = new ChainCheck({ chain, from: this.#from(chain), points, begunLater: this.#begunLater })
      this.#checks.set(chain, check)
    }
    return check
  }

  /** Where the reading of a chain begins. */
  #from(chain: string) {
    const start = { seq: 0, digest: chainStart(chain), arrivals: arrivalsStart(chain) }
    const floor = this.#floors.get(chain) ?? start
    const base = this.#begunLater ? this.#signed.base.get(chain) : undefined
    return base !== undefined && base.seq > floor.seq ? base : floor
  }

  /** Begins at the checkpoint whose points are the base, or with the oldest record there is. */
  async begin(fromBase: boolean): Promise<void> {
    this.#heads = await readHeads(this.ledger)
    this.#begunLater = fromBase
    const { first, expected, removedUntil } = await this.#readFloors(true)
    for (const chain of this.#heads.oddChains) this.findings.add(finding('chain.head_altered', { chain }))
    if (removedUntil !== null && removedUntil > this.#heads.removedUntil) {
      // Retention may have removed between the two reads.
      const { removedUntil: now } = await readHeads(this.ledger)
      if (now < removedUntil) this.findings.add(finding('log.head_altered', { column: 'removed_until' }))
    } else if (removedUntil !== null && removedUntil !== this.#heads.removedUntil) {
      this.findings.add(finding('log.head_altered', { column: 'removed_until' }))
    }
    for (const chain of [...this.#heads.heads.keys(), ...this.#floors.keys(), ...this.#signed.points.keys()]) {
      this.check(chain)
    }
    if (expected !== null && first > expected) this.#missing(expected, first - 1)
    this.next = this.#begin = fromBase ? Math.max(first, await this.#firstBehindBase()) : first
  }

  #missing(from: number, to: number): void {
    this.findings.add(finding('segment.missing', { from, to }))
  }

  /**
   * The floors, and where the log begins with them; `expected` is where it must, since each floor says how many records
   * were removed. Null where a floor is not what was signed.
   */
  async #readFloors(tell: boolean): Promise<{ first: number; expected: number | null; removedUntil: number | null }> {
    for (;;) {
      const first = await this.#firstPosition()
      const floors = await readSignedFloors(this.ledger, this.#signed.keys)
      if ((await this.#firstPosition()) !== first) continue
      const sound = floors.filter((each): each is Floor => !('kind' in each))
      const altered = floors.filter((each): each is Finding => 'kind' in each)
      this.#floors = new Map(sound.map((floor) => [floor.chain, floor]))
      if (tell) for (const each of altered) this.check(each.chain ?? '').findings.add(each)
      if (altered.length > 0) return { first, expected: null, removedUntil: null }
      const expected = sound.reduce((sum, { seq }) => sum + seq, 1)
      return {
        // What is outside of the ledger is removed after the floors were raised.
        first: this.#outside === null ? first : Math.max(first, expected),
        expected,
        removedUntil: sound.reduce((most, { until }) => Math.max(most, until), 0),
      }
    }
  }

  async #firstPosition(): Promise<number> {
    return (await this.#outside?.oldest()) ?? (await readFirstPosition(this.ledger))
  }

  /** The position of the first segment with a record behind the base of its chain. */
  async #firstBehindBase(): Promise<number> {
    let least = this.end
    for (const [chain, check] of this.#checks) {
      const segment = await segmentBehind(this.ledger, chain, check.seq)
      if (segment !== null) least = Math.min(least, segment)
      const outside = (await this.#outside?.firstBehind(chain, check.seq)) ?? null
      if (outside !== null) least = Math.min(least, outside)
      await yieldToEventLoop()
    }
    return least
  }

  /** Reads segment after segment; other work goes on between two of their blocks. */
  async *segments(): AsyncGenerator<void, void, undefined> {
    let last: SegmentRows | null = null
    // Where the last one ended; behind it `next` moves on with each block.
    let reached = this.next
    while (this.next < this.end && !this.signal.aborted) {
      if (await this.#hasOutside()) yield* this.#recordsOutside()
      const segment = await this.#following(last)
      if (segment === null || segment.first >= this.end || segment.first > this.next) {
        // It may have left the ledger meanwhile.
        if (await this.#hasOutside()) continue
      }
      if (segment === null || segment.first >= this.end) break
      if (last !== null && segment.first > last.first && segment.first < reached) {
        if (await this.isStill(segment)) this.#overlapping(segment)
        last = segment
        continue
      }
      if (segment.first > this.next && (await this.#hasMoved(segment))) continue
      if (segment.first > this.next) {
        this.#missing(this.next, segment.first - 1)
        this.next = segment.first
      }
      const events = await verifySegment(this, segment)
      if (this.signal.aborted) return
      if (events === null) continue
      last = segment
      reached = this.next
      this.events += events
      this.#seen.set(segment.first, {
        ...{ first: segment.first, records: segment.records },
        facets: segment.header === null ? null : facetsToStore(segment).length,
      })
      yield
      await yieldToEventLoop()
    }
    if (this.signal.aborted || this.next >= this.end) return
    const { first } = await this.#resume()
    if (first > this.next) this.next = first
    if (this.next < this.end) this.#missing(this.next, this.end - 1)
  }

  /** The segment behind the last one; or, where that was merged meanwhile, the one that now holds the next record. */
  async #following(last: SegmentRows | null): Promise<SegmentRows | null> {
    if (last !== null) {
      const behind = await readSegmentBehind(this.ledger, last.first)
      if (behind !== null && behind.first <= this.next) return behind
    }
    const holding = await readSegmentAt(this.ledger, this.next)
    if (holding !== null && holding.first + holding.records > this.next && !isSame(holding, last)) return holding
    return await readSegmentBehind(this.ledger, last?.first ?? this.next)
  }

  /** Whether the next record is outside of the ledger. */
  async #hasOutside(): Promise<boolean> {
    if (this.#outside === null || this.signal.aborted) return false
    return this.next < Math.min(this.end, await this.#outside.boundary())
  }

  /** Follows the records that are outside of the ledger, up to where those of the ledger begin. */
  async *#recordsOutside(): AsyncGenerator<void, void, undefined> {
    if (this.#outside === null) return
    const before = Math.min(this.end, await this.#outside.boundary())
    for await (const record of this.#outside.stored({ from: this.next, before })) {
      if (this.signal.aborted) return
      const { position } = record
      if (position > this.next && (await this.#resume()).first <= this.next) this.#missing(this.next, position - 1)
      this.events += followStored(this, record)
      this.next = position + 1
      if (position % recordsAtOnce === 0) {
        yield
        await yieldToEventLoop()
      }
    }
    if (this.next >= before) return
    if ((await this.#resume()).first <= this.next) this.#missing(this.next, before - 1)
    this.next = before
  }

  #overlapping({ first, records }: SegmentRows): void {
    this.findings.add(
      finding('segment.unknown', { from: first, to: first + Math.max(1, records) - 1, column: 'event_segments' }),
    )
  }

  /** Whether retention removed what should be before a segment, or it is gone itself. */
  async #hasMoved(segment: SegmentRows): Promise<boolean> {
    const { first } = await this.#resume()
    if (first > this.next) {
      this.next = first
      return true
    }
    return !(await this.isStill(segment))
  }

  async isStill(segment: SegmentRows): Promise<boolean> {
    // No merge and no removal touches a segment at an impossible position.
    return segment.first < 1 || (await isStillThere(this.ledger, segment))
  }

  /** Goes on at the floors where retention was faster. */
  async #resume(): Promise<{ first: number }> {
    const { first } = await this.#readFloors(false)
    if (first > this.next) for (const [chain, floor] of this.#floors) this.check(chain).resume(floor)
    return { first }
  }

  /** Compares all chains with their ends, and looks for rows that belong to nothing. */
  async finish(): Promise<void> {
    for (const [chain, check] of this.#checks) check.end(this.#heads.heads.get(chain) ?? null)
    if (await hasSegmentsBeyond(this.ledger))
      this.findings.add(finding('log.head_altered', { column: 'next_position' }))
    for (const table of tablesOfSegments) {
      const facets = await this.#rowsWithoutSegment(table)
      if (table === 'segment_facets') await this.#compareFacetCounts(facets)
    }
  }

  async #rowsWithoutSegment(table: (typeof tablesOfSegments)[number]): Promise<Map<number, number>> {
    const counts = new Map<number, number>()
    let odd = false
    for await (const some of countRows(this.ledger, table)) {
      for (const { segment, rows, isThere } of some) {
        odd ||= !isThere
        counts.set(segment, (counts.get(segment) ?? 0) + rows)
      }
      if (this.signal.aborted) return counts
      await yieldToEventLoop()
    }
    if (odd) this.findings.add(finding('segment.unknown', { column: table }))
    return counts
  }

  /** The rows of a segment stay as they are for as long as it is there. */
  async #compareFacetCounts(counts: ReadonlyMap<number, number>): Promise<void> {
    for (const segment of this.#seen.values()) {
      const { first, records, facets } = segment
      if (facets === null || (counts.get(first) ?? 0) <= facets) continue
      if (await isStillThere(this.ledger, { first, records })) {
        this.findings.add(
          finding('segment.unknown', { from: first, to: first + records - 1, column: 'segment_facets' }),
        )
      }
    }
  }
}

const isSame = (one: SegmentRows, other: SegmentRows | null): boolean =>
  other !== null && one.first === other.first && one.records === other.records
