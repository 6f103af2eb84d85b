/**
 * Reads records of the log in the order of their positions, and those of one chain in the order of their numbers.
 * Merging segments moves no record, so reading goes on behind the last one whatever happens meanwhile.
 *
 * SQL text: ranges of positions that the primary key finds.
 */
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import type { Reader } from '../../store/open.ts'
import { ChainWalk } from './chain.ts'
import type { Quarantine } from './quarantine.ts'
import { blockRecords, recordBytes } from './segment.ts'
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
      next = Math.max(next, stored.first_position + stored.records)
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

/** A segment may be merged between two reads. */
const tries = 5

/** The segment that holds number `seq` of a chain; null if there is none, `damaged` if it cannot be read. */
export async function segmentOf(ledger: Reader, chain: string, seq: number): Promise<OpenSegment | 'damaged' | null> {
  for (let attempt = 1; attempt <= tries; attempt += 1) {
    const [found] = await readChainRows(ledger, chain, 'and first_seq <= ? order by first_seq desc limit 1', [seq])
    if (found === undefined || found.last < seq) return null
    const [row] = await readSegments(ledger, 'where first_position = ?', [found.segment])
    const blocks = await readBlocks(ledger, [found.segment])
    if (row === undefined || blocks.reduce((sum, { records }) => sum + records, 0) !== row.records) continue
    const header = decodeHeader(row.header)
    return header === null ? 'damaged' : { row, header, blocks }
  }
  return 'damaged'
}

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

function openBlock(stored: PlacedBlock, bodies: boolean) {
  if (!bodies) {
    const places = decodePlaces(stored)
    return places === null ? null : { ...places, bodies: [] }
  }
  const block = decodeBlock(stored)
  return block === null ? null : { ...block, bodies: recordBytes(block) }
}

/**
 * The records of a chain behind number `after`, up to `upTo`, in order. Ends early where a number is missing, and with
 * null where a record cannot be read.
 */
export async function* readChain(
  ledger: Reader,
  chain: string,
  { after, upTo, bodies }: { after: number; upTo: number; bodies: boolean },
): AsyncGenerator<ChainRecord | null, void, undefined> {
  let next = after + 1
  while (next <= upTo) {
    const segment = await segmentOf(ledger, chain, next)
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
export async function digestAt(ledger: Reader, chain: string, seq: number): Promise<string | null> {
  const [begins] = await readChainRows(ledger, chain, 'and first_seq = ?', [seq + 1])
  if (begins !== undefined) return begins.digestBefore
  const segment = await segmentOf(ledger, chain, seq)
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
