/** Compares one segment with its records: its index, its blocks, and where the records stand in their chains. */
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import type { Database } from '../../store/open.ts'
import { joinTags, type Tags, tagsOfRecord } from '../log/block-places.ts'
import type { Quarantine } from '../log/quarantine.ts'
import { quarantinedEvent } from '../log/quarantine.ts'
import type { LogRecord } from '../log/record.ts'
import {
  type ChainPart,
  type FacetCount,
  type Facets,
  IndexBuilder,
  lineFeed,
  otherValues,
  type Run,
  type SegmentIndex,
} from '../log/segment.ts'
import { decodeBlock, type Header } from '../log/segment-codec.ts'
import { arrivalText } from '../proof/arrivals.ts'
import type { ChainCheck } from './chain-check.ts'
import { type Finding, type Findings, finding } from './finding.ts'
import { deviationOf, type PlacedRecord, parseRecord } from './record-check.ts'
import { type BlockRow, facetsMissing, readBlock, type SegmentRows, sameParts } from './stored-log.ts'

/** A reading of the log, of which this is a part. */
export interface SegmentReading {
  readonly ledger: Database
  readonly signal: AbortSignal
  readonly findings: Findings
  /** The position of the next record to follow; those before are only read for the index. */
  next: number
  /** Records from this position on are left out. */
  readonly end: number
  check(chain: string): ChainCheck
  /** Whether a segment is still as it was read: nothing is wrong with one that was merged or removed meanwhile. */
  isStill(segment: SegmentRows): Promise<boolean>
}

/** A run, with the position of its first record. */
interface PlacedRun extends Run {
  start: number
  check: ChainCheck
}

/** Gives how many events the records are that were followed; null where the segment was merged or removed meanwhile. */
export async function verifySegment(reading: SegmentReading, segment: SegmentRows): Promise<number | null> {
  const { header } = segment
  if (header === null) {
    if (!(await reading.isStill(segment))) return null
    skip(reading, segment)
    return 0
  }
  const check = new SegmentCheck(reading, segment, header)
  return await check.run()
}

/** What cannot be read is one finding, whatever it has of each chain. */
function skip(reading: SegmentReading, { first, records, chains, blocks }: SegmentRows): void {
  const end = blocks.reduce((most, block) => Math.max(most, block.first + block.records), first + Math.max(1, records))
  reading.findings.add(finding('segment.damaged', { from: first, to: end - 1, column: 'header' }))
  for (const { chain, last } of chains) if (chain !== null) reading.check(chain).unreadable(last)
  reading.next = Math.max(reading.next, end)
}

class SegmentCheck {
  readonly #reading: SegmentReading
  readonly #segment: SegmentRows
  readonly #header: Header
  readonly #runs: readonly PlacedRun[]
  /** The position behind the last record. */
  readonly #end: number
  readonly #parts: Map<string, ChainPart>
  readonly #index = new IndexBuilder()
  /** Whether all records could be read for the index. */
  #whole = true
  readonly #altered = new Set<string>()
  #run = 0
  #events = 0

  constructor(reading: SegmentReading, segment: SegmentRows, header: Header) {
    this.#reading = reading
    this.#segment = segment
    this.#header = header
    const runs: PlacedRun[] = []
    let start = segment.first
    for (const run of header.runs) {
      runs.push({ ...run, start, check: reading.check(run.chain) })
      start += run.records
    }
    this.#runs = runs
    this.#end = start
    this.#parts = new Map(header.chains.map((part) => [part.chain, part]))
  }

  async run(): Promise<number | null> {
    const { first, blocks, records, receivedAt, chains, ids } = this.#segment
    const header = this.#header
    if (records !== this.#end - first) this.#altered.add('records')
    if (receivedAt !== header.receivedAt) this.#altered.add('received_at')
    if (!isOfRuns(header)) this.#altered.add('chains')
    if (!sameParts(chains, header.chains)) this.#altered.add('segment_chains')
    let position = first
    for (const [place, row] of blocks.entries()) {
      if (row.first < position || row.first + row.records > this.#end) {
        this.#altered.add('event_blocks')
        this.#whole = false
        continue
      }
      // Records between two blocks are missed by their chains.
      if (row.first > position) this.#whole = false
      if (this.#whole && row.ordinal !== place) this.#altered.add('ordinal')
      const until = Math.min(blocks[place + 1]?.first ?? this.#end, this.#end)
      const end = await this.#block(row, place, until)
      if (end === null || this.#reading.signal.aborted) return null
      position = end
      this.#reading.next = Math.max(this.#reading.next, position)
      await yieldToEventLoop()
    }
    if (position !== this.#end) this.#whole = false
    if (this.#whole) this.#compareIndex(this.#index.finish())
    if ((await facetsMissing(this.#reading.ledger, this.#segment)) > 0) this.#altered.add('segment_facets')
    if (this.#altered.size > 0 || ids === null) {
      if (!(await this.#reading.isStill(this.#segment))) return null
      const of = { from: first, to: this.#end - 1 }
      for (const column of this.#altered) this.#add(finding('segment.index_altered', { ...of, column }))
      if (ids === null) this.#add(finding('segment.damaged', { ...of, column: 'ids' }))
    }
    this.#reading.next = Math.max(this.#reading.next, this.#end)
    return this.#events
  }

  #add(found: Finding): void {
    this.#reading.findings.add(found)
  }

  #compareIndex({ events, facets, ids }: SegmentIndex): void {
    if (events !== this.#header.events) this.#altered.add('events')
    if (!sameFacets(facets, this.#header.facets)) this.#altered.add('facets')
    const stored = this.#segment.ids
    if (stored !== null && !sameIds(ids, stored)) this.#altered.add('ids')
  }

  /** The position behind the block; null where it is no longer there. */
  async #block(row: BlockRow, place: number, until: number): Promise<number | null> {
    const stored = await readBlock(this.#reading.ledger, this.#segment.first, row)
    const block = stored === null ? null : decodeBlock(stored)
    if (block === null) {
      if (!(await this.#reading.isStill(this.#segment))) return null
      this.#damaged(row.first, until)
      return until
    }
    const { times, quarantined, tags, text } = block
    const own: Tags[] = []
    let [least, most] = [Number.POSITIVE_INFINITY, 0]
    let from = 0
    for (const [ordinal, at] of times.entries()) {
      const end = text.indexOf(lineFeed, from)
      const note = quarantined.get(ordinal)
      own.push(this.#record(row.first + ordinal, place, { at, quarantine: note, body: text.subarray(from, end) }))
      from = end + 1
      if (at < least) least = at
      if (at > most) most = at
    }
    if (this.#whole && !sameTags(joinTags(own), tags)) this.#altered.add('tags')
    if (least !== row.firstAt || most !== row.lastAt) this.#altered.add('times')
    return row.first + row.records
  }

  /** Moves to the run that a position is in. */
  #runAt(position: number): PlacedRun | undefined {
    let run = this.#runs[this.#run]
    while (run !== undefined && position >= run.start + run.records) {
      this.#run += 1
      run = this.#runs[this.#run]
    }
    return run
  }

  /** Returns the tags that the record must have. */
  #record(
    position: number,
    block: number,
    stored: { at: number; quarantine: Quarantine | undefined; body: Uint8Array & { toString(): string } },
  ): Tags {
    const run = this.#runAt(position)
    if (run === undefined) return noTags
    const { chain, check } = run
    const seq = run.first + position - run.start
    const { receivedAt } = this.#header
    const placed: PlacedRecord = { chain, seq, position, receivedAt, ...stored }
    const { quarantine, at } = stored
    const record = quarantine === undefined ? parseRecord(stored.body.toString()) : null
    const before = this.#index.events
    const tags = this.#addToIndex(record, placed, block)
    const { next, end } = this.#reading
    if (position < next || position >= end) return tags ?? noTags
    const part = this.#parts.get(chain)
    if (part?.first === seq) check.before(seq, part.digestBefore)
    if (check.record(seq, stored.body, arrivalText(placed))) {
      this.#events += this.#index.events - before
      const deviation = tags === null ? 'event.not_valid' : deviationOf(placed, record)
      if (deviation !== null) check.found(deviation, seq, seq, record?.event_id ?? null)
      if (deviation !== 'event.time_altered') check.received(at, receivedAt)
    }
    if (position === run.start + run.records - 1) check.named(run.digest)
    return tags ?? noTags
  }

  /** Returns the record's tags; null where a part of it has another form than records have. */
  #addToIndex(record: LogRecord | null, { quarantine, at }: PlacedRecord, block: number): Tags | null {
    try {
      const shown = quarantine === undefined ? record : quarantinedEvent(quarantine, at)
      if (shown !== null) return tagsOfRecord(this.#index.add(shown, block))
      this.#whole = false
      return noTags
    } catch {
      this.#whole = false
      return null
    }
  }

  /** Names the records that cannot be read, by their chains. */
  #damaged(from: number, until: number): void {
    this.#whole = false
    for (const { start, records, first, digest, check } of this.#runs) {
      const [begin, end] = [Math.max(from, start, this.#reading.next), Math.min(until, start + records)]
      if (begin >= end) continue
      const last = first + end - 1 - start
      check.found('events.damaged', first + begin - start, last)
      check.unreadable(last)
      if (end === start + records) check.named(digest)
    }
  }
}

/** Whether the chains of a header are those of its runs. */
function isOfRuns({ runs, chains }: Header): boolean {
  const parts = new Map<string, { first: number; last: number }>()
  for (const { chain, first, records } of runs) {
    parts.set(chain, { first: parts.get(chain)?.first ?? first, last: first + records - 1 })
  }
  return (
    chains.length === parts.size &&
    chains.every(({ chain, first, last }) => parts.get(chain)?.first === first && parts.get(chain)?.last === last)
  )
}

function sameFacets(built: Facets, stored: Facets): boolean {
  if (built.size !== stored.size) return false
  for (const [facet, values] of built) if (!sameValues(values, stored.get(facet) ?? new Map())) return false
  return true
}

type Values = ReadonlyMap<string, FacetCount>

function sameValues(built: Values, stored: Values): boolean {
  const others = stored.get(otherValues)
  // Which of too many values are named depends on how segments were merged: each must be found.
  if (others !== undefined) {
    return built.entries().every(([value, { blocks }]) => {
      const found = (stored.get(value)?.blocks ?? 0) | others.blocks
      return (blocks & ~found) === 0
    })
  }
  if (stored.size !== built.size) return false
  for (const [value, { events, blocks }] of built) {
    const other = stored.get(value)
    if (other?.events !== events || other.blocks !== blocks) return false
  }
  return true
}

const noTags: Tags = tagsOfRecord([])

const sameTags = (built: Tags, stored: Tags): boolean =>
  built.all.length === stored.all.length &&
  built.ends.every((end, record) => end === stored.ends[record]) &&
  built.all.every((tag, index) => tag === stored.all[index])

const sameIds = (built: Uint32Array, stored: Uint32Array): boolean =>
  built.length === stored.length && built.every((hash, index) => hash === stored[index])
