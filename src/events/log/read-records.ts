/**
 * Reads records of the log in the order of their positions, and those of one chain in the order of their numbers.
 * Merging segments moves no record, so reading goes on behind the last one whatever happens meanwhile.
 *
 * SQL text: ranges of positions that the primary key finds.
 */
import { LRUCache } from 'lru-cache'
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import type { Reader } from '../../store/open.ts'
import { ChainWalk } from './chain.ts'
import type { Quarantine } from './quarantine.ts'
import { type Block, blockRecords, type ChainPart, recordBytes } from './segment.ts'
import { decodeBlock, decodeHeader, decodePlaces, type Header } from './segment-codec.ts'
import {
  blockColumns,
  type PlacedBlock,
  placedBlock,
  readBlocks,
  readChainRows,
  readSegments,
  type SegmentRow,
} from './segment-rows.ts'

/** A record as it is stored. */
export interface ReadRecord {
  position: number
  /** In milliseconds since the epoch. */
  at: number
  text: string
  quarantine: Quarantine | undefined
  /** Those that cannot be read, for which it stands. */
  damaged?: { first_position: number; records: number }
}

const blocksAtOnce = 16

/** The records from position `from` on and below `before`; one for all of a block that cannot be read. */
export async function* readRecords(
  ledger: Reader,
  { from, before }: { from: number; before: number },
): AsyncGenerator<ReadRecord, void, undefined> {
  let next = from
  while (next < before) {
    const rows = await ledger.read(
      `select ${blockColumns} from event_blocks b
        where b.first_position >= coalesce((select max(first_position) from event_blocks where first_position <= ?), 0)
          and b.first_position < ? order by b.first_position limit ?`,
      [next, before, blocksAtOnce],
    )
    const blocks = rows.map(placedBlock)
    for (const stored of blocks) {
      const block = decodeBlock(stored)
      if (block === null) {
        const { first_position: position, last_at: at, records } = stored
        const damaged = { first_position: position, records }
        if (position >= next) yield { position, at, text: '', quarantine: undefined, damaged }
      } else {
        for (const [ordinal, bytes] of recordBytes(block).entries()) {
          const position = stored.first_position + ordinal
          if (position < next || position >= before) continue
          const quarantine = block.quarantined.get(ordinal)
          yield { position, at: block.times[ordinal] ?? 0, text: bytes.toString(), quarantine }
        }
      }
      next = Math.max(next + 1, stored.first_position + stored.records)
      await yieldToEventLoop()
    }
    if (blocks.length < blocksAtOnce) return
  }
}

/** A segment that holds records of a chain, decoded as far as it can be. */
export interface OpenSegment {
  row: SegmentRow
  header: Header
  blocks: readonly PlacedBlock[]
}

/** Segments that are read for many chains, one after another: a merged segment has records of all of them. */
export type OpenSegments = LRUCache<number, OpenSegment>
/** Each may have 8 MB of records. */
export const openSegments = (): OpenSegments => new LRUCache({ max: 4 })

/** A segment may be merged between two reads. */
const tries = 5

/** The segment that holds number `seq` of a chain; null if there is none, `damaged` if it cannot be read. */
export async function segmentOf(
  ledger: Reader,
  chain: string,
  seq: number,
  open = openSegments(),
): Promise<OpenSegment | 'damaged' | null> {
  for (let attempt = 1; attempt <= tries; attempt += 1) {
    const [found] = await readChainRows(ledger, chain, 'and first_seq <= ? order by first_seq desc limit 1', [seq])
    if (found === undefined || found.last < seq) return null
    const known = open.get(found.segment)
    if (known !== undefined && holdsPart(known, found)) return known
    const [row] = await readSegments(ledger, 'where first_position = ?', [found.segment])
    const blocks = await readBlocks(ledger, [found.segment])
    if (row === undefined || blocks.reduce((sum, { records }) => sum + records, 0) !== row.records) continue
    const header = decodeHeader(row.header)
    if (header === null) return 'damaged'
    const segment = { row, header, blocks }
    open.set(row.first, segment)
    return segment
  }
  return 'damaged'
}

/** Whether a segment is still as it was read: a merge changes what it has of a chain. */
const holdsPart = ({ header }: OpenSegment, { chain, first, last }: ChainPart): boolean =>
  header.chains.some((part) => part.chain === chain && part.first === first && part.last === last)

/** A record of a chain, without its text where only its place was read. */
export interface ChainRecord {
  seq: number
  position: number
  at: number
  quarantine: Quarantine | undefined
  body: Uint8Array
}

/** The records of a chain in a segment, in order; null for a block that cannot be read. `bodies`: with their texts. */
export function* recordsOfChain(
  { row, header, blocks }: OpenSegment,
  chain: string,
  { bodies }: { bodies: boolean },
): Generator<ChainRecord | null> {
  let runStart = row.first
  let block: ReturnType<typeof openBlock> = null
  let opened: PlacedBlock | undefined
  for (const run of header.runs) {
    for (let index = 0; run.chain === chain && index < run.records; index += 1) {
      const position = runStart + index
      if (opened === undefined || position >= opened.first_position + opened.records) {
        opened = blocks.find((each) => position < each.first_position + each.records)
        block = opened === undefined ? null : openBlock(opened, bodies)
      }
      if (opened === undefined || block === null) {
        yield null
        return
      }
      const ordinal = position - opened.first_position
      yield {
        seq: run.first + index,
        position,
        at: block.times[ordinal] ?? 0,
        quarantine: block.quarantined.get(ordinal),
        body: block.bodies[ordinal] ?? noBytes,
      }
    }
    runStart += run.records
  }
}

const noBytes = new Uint8Array()

type OpenBlock = Pick<Block, 'times' | 'quarantined'> & { bodies: readonly Buffer[] }
const withBodies = new WeakMap<PlacedBlock, OpenBlock | null>()
const withoutBodies = new WeakMap<PlacedBlock, OpenBlock | null>()

/** Decoded once for as long as its segment is held. */
function openBlock(stored: PlacedBlock, bodies: boolean): OpenBlock | null {
  const known = bodies ? withBodies : withoutBodies
  let block = known.get(stored)
  if (block === undefined) {
    block = bodies ? blockWithBodies(stored) : blockWithoutBodies(stored)
    known.set(stored, block)
  }
  return block
}

function blockWithBodies(stored: PlacedBlock): OpenBlock | null {
  const block = decodeBlock(stored)
  return block === null ? null : { ...block, bodies: recordBytes(block) }
}

function blockWithoutBodies(stored: PlacedBlock): OpenBlock | null {
  const places = decodePlaces(stored)
  return places === null ? null : { ...places, bodies: [] }
}

/**
 * The records of a chain behind number `after`, up to `upTo`, in order. Ends early where a number is missing, and with
 * null where a record cannot be read.
 */
export async function* readChain(
  ledger: Reader,
  chain: string,
  { after, upTo, bodies }: { after: number; upTo: number; bodies: boolean },
  open = openSegments(),
): AsyncGenerator<ChainRecord | null, void, undefined> {
  let next = after + 1
  while (next <= upTo) {
    const segment = await segmentOf(ledger, chain, next, open)
    if (segment === 'damaged') yield null
    if (segment === null || segment === 'damaged') return
    const from = next
    for (const record of recordsOfChain(segment, chain, { bodies })) {
      if (record === null) {
        yield null
        return
      }
      if (record.seq < next) continue
      if (record.seq > upTo || record.seq !== next) return
      yield record
      next = record.seq + 1
    }
    if (next === from) return
    await yieldToEventLoop()
  }
}

/** The digest of a chain after number `seq`, as the log says; null if it does not have it. */
export async function digestAt(
  ledger: Reader,
  chain: string,
  seq: number,
  open = openSegments(),
): Promise<string | null> {
  const [begins] = await readChainRows(ledger, chain, 'and first_seq = ?', [seq + 1])
  if (begins !== undefined) return begins.digestBefore
  const segment = await segmentOf(ledger, chain, seq, open)
  if (segment === null || segment === 'damaged') return null
  const { header } = segment
  let before = header.chains.find((each) => each.chain === chain)?.digestBefore ?? ''
  for (const run of header.runs) {
    if (run.chain !== chain) continue
    const last = run.first + run.records - 1
    if (last === seq) return run.digest
    if (last > seq) {
      const walk = new ChainWalk(before)
      for (const record of recordsOfChain(segment, chain, { bodies: true })) {
        if (record === null) return null
        if (record.seq < run.first) continue
        walk.step(record.seq, record.body)
        if (record.seq === seq) return walk.digest
        if (record.seq % blockRecords === 0) await yieldToEventLoop()
      }
      return null
    }
    before = run.digest
  }
  return null
}
