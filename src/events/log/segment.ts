/**
 * A segment is a stretch of the event log: consecutive records, their index, and where they stand in their chains.
 *
 *   blocks   the records as they were shipped, one a line, in blocks of about 128; each block is compressed by itself, so
 *            that a query opens only the blocks that it needs
 *   facets   for each value of each facet, how many events have it and in which blocks (a bit for each block)
 *   ids      hashes of request, exchange and session ids, with their blocks (id-hashes.ts)
 *   runs     consecutive records of one chain, with the chain's digest after the last of them
 *   chains   for each chain in it, its first and last number here and the chain's digest before the first
 *
 * Everything here is data in memory; `segment-codec.ts` is its stored form.
 */
import { type BlockPlaces, joinTags, mostTags, type Tags, tagOf, tagsOfRecord } from './block-places.ts'
import { hashOfId, sortedWords, wordOf } from './id-hashes.ts'
import { type Quarantine, quarantinedEvent } from './quarantine.ts'
import { eventsOf, type FacetName, type LogRecord, visitFacets, visitIds } from './record.ts'

/** Records of a full block. Larger blocks compress hardly better and take longer to open. */
export const blockRecords = 128
/** As many as a bitmap of 32 bits can name. */
export const mostBlocks = 32
/** A block that has this many bytes of text is full, however few its records are. */
export const fullBlockBytes = 1024 * 1024

/** Consecutive records of one chain. */
export interface Run {
  chain: string
  /** The number of its first record in the chain. */
  first: number
  records: number
  /** The chain's digest after the last record. */
  digest: string
}

/** What a segment has of a chain. */
export interface ChainPart {
  chain: string
  first: number
  last: number
  /** The chain's digest before the first record. */
  digestBefore: string
}

export interface Block extends BlockPlaces {
  /** The records as UTF-8, each followed by a line feed. */
  text: Buffer
}

/** A value of a facet: how many events have it, and in which blocks (bit n for block n). */
export interface FacetCount {
  events: number
  blocks: number
  tag: number
}
export type Facets = Map<FacetName, Map<string, FacetCount>>

export interface Segment {
  blocks: readonly Block[]
  runs: readonly Run[]
  chains: readonly ChainPart[]
  facets: Facets
  ids: Uint32Array
  events: number
  /** When the newest of its records was received, in milliseconds since the epoch. */
  receivedAt: number
}

/** A record that is about to be written. */
export interface NewRecord {
  /** Its text as UTF-8, without a line feed. */
  bytes: Uint8Array
  at: number
  /** The record; null where it is quarantined. */
  record: LogRecord | null
  quarantine?: Quarantine
}

/** The part of a segment that its records imply. */
export interface SegmentIndex {
  facets: Facets
  ids: Uint32Array
  events: number
}

/** Collects the index of a segment, record by record. */
export class IndexBuilder {
  readonly #facets: Facets = new Map()
  readonly #ids: number[] = []
  #events = 0

  /** Returns the record's tags. */
  add(record: LogRecord, block: number): number[] {
    const bit = 1 << block
    const tags: number[] = []
    this.#events += eventsOf(record)
    visitFacets(record, (facet, value, events) => {
      const known = this.#facets.get(facet)?.get(value)
      const tag =
        known === undefined
          ? addFacet(this.#facets, facet, value.toWellFormed(), events, bit)
          : countFacet(known, events, bit)
      if (tags.length < mostTags && !tags.includes(tag)) tags.push(tag)
    })
    visitIds(record, (id) => this.#ids.push(wordOf(hashOfId(id), block)))
    return tags
  }

  /** Events that were added. */
  get events(): number {
    return this.#events
  }

  finish(): SegmentIndex {
    return { facets: this.#facets, ids: sortedWords(Uint32Array.from(this.#ids)), events: this.#events }
  }
}

/** What readers see of a record. */
export const recordOf = ({ record, quarantine, at }: Pick<NewRecord, 'record' | 'quarantine' | 'at'>): LogRecord => {
  if (record !== null) return record
  if (quarantine === undefined) throw new TypeError('A record that is not understood must be quarantined')
  return quarantinedEvent(quarantine, at)
}

/**
 * A segment of new records of one chain, the first of which has number `first`; at most as many as `mostBlocks` full
 * blocks hold. `full` is for tests.
 */
export function buildSegment(
  records: readonly NewRecord[],
  place: { chain: string; first: number; digestBefore: string; digest: string; receivedAt: number },
  full = blockRecords,
): Segment {
  const { chain, first, digestBefore, digest, receivedAt } = place
  const groups = blocksOf(records, full)
  if (groups.length > mostBlocks) throw new RangeError('Too many records for one segment')
  const index = new IndexBuilder()
  const blocks = groups.map((some, block) =>
    blockOf(some, joinTags(some.map((each) => tagsOfRecord(index.add(recordOf(each), block))))),
  )
  return {
    blocks,
    runs: [{ chain, first, records: records.length, digest }],
    chains: [{ chain, first, last: first + records.length - 1, digestBefore }],
    ...index.finish(),
    receivedAt,
  }
}

/** Groups of records that fill a block: so many, or so many bytes. */
function blocksOf(records: readonly NewRecord[], full: number): NewRecord[][] {
  const groups: NewRecord[][] = []
  let bytes = 0
  for (const record of records) {
    const last = groups.at(-1)
    if (last === undefined || last.length === full || bytes >= fullBlockBytes) {
      groups.push([record])
      bytes = record.bytes.length
    } else {
      last.push(record)
      bytes += record.bytes.length
    }
  }
  return groups
}

function blockOf(records: readonly NewRecord[], tags: Tags): Block {
  const quarantined = new Map<number, Quarantine>()
  for (const [place, { quarantine }] of records.entries()) {
    if (quarantine !== undefined) quarantined.set(place, quarantine)
  }
  return { times: records.map(({ at }) => at), quarantined, tags, text: linesOf(records) }
}

/** The records, each followed by a line feed. Those of one batch stand so in the batch, and are not copied. */
function linesOf(records: readonly NewRecord[]): Buffer {
  const shared = sharedLines(records)
  if (shared !== null) return shared
  const text = Buffer.allocUnsafe(records.reduce((sum, { bytes }) => sum + bytes.length + 1, 0))
  let at = 0
  for (const { bytes } of records) {
    text.set(bytes, at)
    at += bytes.length
    text[at++] = lineFeed
  }
  return text
}

/** The stretch of memory that has these records with the line feeds between them and after the last; null without one. */
function sharedLines(records: readonly NewRecord[]): Buffer | null {
  const [first] = records
  if (first === undefined) return null
  const { buffer, byteOffset } = first.bytes
  const memory = Buffer.from(buffer)
  let at = byteOffset
  for (const { bytes } of records) {
    if (bytes.buffer !== buffer || bytes.byteOffset !== at) return null
    at += bytes.length
    if (memory[at++] !== lineFeed) return null
  }
  return memory.subarray(byteOffset, at)
}

/** Several adjacent blocks as one. */
export function joinBlocks(blocks: readonly Block[]): Block {
  const quarantined = new Map<number, Quarantine>()
  const times: number[] = []
  for (const block of blocks) {
    for (const [place, note] of block.quarantined) quarantined.set(times.length + place, note)
    for (const at of block.times) times.push(at)
  }
  return {
    times,
    quarantined,
    tags: joinTags(blocks.map(({ tags }) => tags)),
    text: Buffer.concat(blocks.map(({ text }) => text)),
  }
}

/** Values of one facet that a segment names. Events with further values are counted under `otherValues`. */
const mostValues = 2048
/** Stands for any value: no event has it itself. */
export const otherValues = ''

/** Adds to the counts of a value, and returns its tag. */
export function addFacet(facets: Facets, facet: FacetName, value: string, events: number, blocks: number): number {
  let values = facets.get(facet)
  if (values === undefined) {
    values = new Map()
    facets.set(facet, values)
  }
  const named = values.size < mostValues || values.has(value) ? value : otherValues
  const known = values.get(named)
  if (known === undefined) {
    const tag = tagOf(facet, value)
    values.set(named, { events, blocks, tag })
    return tag
  }
  countFacet(known, events, blocks)
  return named === value ? known.tag : tagOf(facet, value)
}

function countFacet(count: FacetCount, events: number, blocks: number): number {
  count.events += events
  count.blocks |= blocks
  return count.tag
}

/** Runs in their order; those that follow each other in one chain become one. */
export function joinRuns(runs: readonly Run[]): Run[] {
  const joined: Run[] = []
  for (const run of runs) {
    const last = joined.at(-1)
    if (last === undefined || last.chain !== run.chain || last.first + last.records !== run.first) {
      joined.push({ ...run })
      continue
    }
    last.records += run.records
    last.digest = run.digest
  }
  return joined
}

/** The parts of each chain as one. */
export function joinChains(chains: readonly ChainPart[]): ChainPart[] {
  const parts = new Map<string, ChainPart>()
  for (const each of chains) {
    const known = parts.get(each.chain)
    if (known === undefined) parts.set(each.chain, { ...each })
    else known.last = each.last
  }
  return [...parts.values()]
}

/** The bytes of each record of a block, in their order, without copying them. */
export function recordBytes({ text }: Pick<Block, 'text'>): Buffer[] {
  const records: Buffer[] = []
  for (let from = 0; from < text.length; ) {
    const end = text.indexOf(lineFeed, from)
    records.push(text.subarray(from, end))
    from = end + 1
  }
  return records
}

export const lineFeed = 10
