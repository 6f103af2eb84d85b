/**
 * A segment is a stretch of the event log: consecutive records, their index, and where they stand in their chains.
 *
 *   blocks   the records as they were shipped, one a line, in blocks of about 128; each block is compressed by itself, so
 *            that a query opens only the blocks that it needs
 *   facets   for each value of each facet, how many events have it and in which blocks (a bit for each block)
 *   ids      hashes of request, exchange and session ids (id-hashes.ts)
 *   runs     consecutive records of one chain, with the chain's digest after the last of them
 *
 * Everything here is data in memory; `segment-codec.ts` is its stored form.
 */
import { hashIds } from './id-hashes.ts'
import type { QuarantineReason } from './quarantine.ts'
import type { FacetName, IndexedRecord } from './record.ts'

/** Records of a full block. Larger blocks compress hardly better and take longer to open. */
export const blockRecords = 128
/** As many as a bitmap of 32 bits can name. */
export const mostBlocks = 32

/** Consecutive records of one chain. */
export interface Run {
  chain: string
  /** The number of its first record in the chain. */
  first: number
  records: number
  /** The chain's digest after the last record. */
  digest: string
}

/** What the log says of a record that it keeps without understanding it. */
export interface Aside {
  reason: QuarantineReason
  event_id: string
  gateway_id: string
}

export interface Block {
  /** When each record happened, in milliseconds since the epoch; never later than it was received. */
  times: readonly number[]
  /** Records that were put aside, by their place in the block. */
  aside: ReadonlyMap<number, Aside>
  /** The records as UTF-8, each followed by a line feed. */
  text: Buffer
}

/** A value of a facet: how many events have it, and in which blocks (bit n for block n). */
export interface FacetCount {
  events: number
  blocks: number
}
/** `chain` is a facet of the index only: it finds the segments of a chain. */
export type IndexedFacet = FacetName | 'chain'
export type Facets = Map<IndexedFacet, Map<string, FacetCount>>

export interface Segment {
  blocks: readonly Block[]
  runs: readonly Run[]
  facets: Facets
  ids: Uint32Array
  events: number
}

/** A record that is about to be written. */
export interface NewRecord {
  text: string
  at: number
  index: IndexedRecord
  aside?: Aside
}

/** A segment of new records of one chain; at most as many as `mostBlocks` full blocks hold. `full` is for tests. */
export function buildSegment(records: readonly NewRecord[], run: Omit<Run, 'records'>, full = blockRecords): Segment {
  if (records.length > mostBlocks * full) throw new RangeError('Too many records for one segment')
  const blocks: Block[] = []
  const facets: Facets = new Map()
  let events = 0
  for (let from = 0; from < records.length; from += full) {
    const some = records.slice(from, from + full)
    const bit = 1 << blocks.length
    for (const { index } of some) {
      events += index.events
      addFacet(facets, 'chain', run.chain, { events: index.events, blocks: bit })
      for (const { facet, value, events: count } of index.facets) addFacet(facets, facet, value, { events: count, blocks: bit })
    }
    blocks.push(blockOf(some))
  }
  const ids = hashIds(records.flatMap(({ index }) => index.ids))
  return { blocks, runs: [{ ...run, records: records.length }], facets, ids, events }
}

function blockOf(records: readonly NewRecord[]): Block {
  const aside = new Map<number, Aside>()
  for (const [place, record] of records.entries()) if (record.aside !== undefined) aside.set(place, record.aside)
  return { times: records.map(({ at }) => at), aside, text: Buffer.from(records.map(({ text }) => `${text}\n`).join('')) }
}

/** Several adjacent blocks as one. */
export function joinBlocks(blocks: readonly Block[]): Block {
  const aside = new Map<number, Aside>()
  const times: number[] = []
  for (const block of blocks) {
    for (const [place, note] of block.aside) aside.set(times.length + place, note)
    for (const at of block.times) times.push(at)
  }
  return { times, aside, text: Buffer.concat(blocks.map(({ text }) => text)) }
}

/** Adds to the counts of a value. */
export function addFacet(facets: Facets, facet: IndexedFacet, value: string, { events, blocks }: FacetCount): void {
  const values = facets.get(facet) ?? new Map<string, FacetCount>()
  facets.set(facet, values)
  const known = values.get(value)
  if (known === undefined) values.set(value, { events, blocks })
  else {
    known.events += events
    known.blocks |= blocks
  }
}

/** Runs in their order; those that follow each other in one chain become one. */
export function joinRuns(runs: readonly Run[]): Run[] {
  const joined: Run[] = []
  for (const run of runs) {
    const last = joined.at(-1)
    if (last === undefined || last.chain !== run.chain || last.first + last.records !== run.first) joined.push({ ...run })
    else {
      last.records += run.records
      last.digest = run.digest
    }
  }
  return joined
}

/** The records of a block, as texts, in their order. */
export function* recordTexts({ text }: Pick<Block, 'text'>): Generator<string> {
  for (let from = 0; from < text.length; ) {
    const end = text.indexOf(lineFeed, from)
    yield text.toString('utf8', from, end)
    from = end + 1
  }
}

export const lineFeed = 10
