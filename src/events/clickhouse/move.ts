/**
 * Moves records that are some minutes old from the ledger to ClickHouse. The order keeps each of them through a kill at
 * any point:
 *
 *  1. segments of the ledger are read, and their records must lead to the digests that the segments name
 *  2. ClickHouse has their rows, and has said so
 *  3. the ledger removes the segments, in a transaction that fails if one of them has changed
 *
 * After a kill between 2 and 3 the same records are moved again: ClickHouse recognises the insert by its token, or has
 * the rows twice, which readers skip (archive.ts). Two control planes that move at once do the same.
 *
 * SQL text: the guard.
 */
import type { Log } from '../../lib/log/log.ts'
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import type { Database } from '../../store/open.ts'
import type { Statement } from '../../store/statement.ts'
import { brokenConstraint } from '../log/append.ts'
import { ChainWalk } from '../log/chain.ts'
import { recordBytes } from '../log/segment.ts'
import { decodeBlock, decodeHeader, type Header } from '../log/segment-codec.ts'
import {
  type PlacedBlock,
  readBlocks,
  readLogHead,
  readSegments,
  removeSegments,
  type SegmentRow,
} from '../log/segment-rows.ts'
import type { Archive } from './archive.ts'
import { type MovedRecord, type RecordRow, rowOf } from './record-row.ts'

interface MoveOptions {
  ledger: Database
  archive: Archive
  clock: { now(): number }
  log: Log
  /** Records that were received within this time stay in the ledger, where what reads the newest ones finds them. */
  keepMilliseconds: number
  /** Segments that the ledger removes at once, and characters of one insert; for tests. */
  segments?: number
  characters?: number
  /** Ends the work, and breaks an insert off. */
  signal?: AbortSignal
}

/** Segments that the ledger removes at once, and how many records are enough. */
const segmentsAtOnce = 256
const recordsAtOnce = 50_000
/** Characters of text in one insert: some thousand records, as ClickHouse likes them, and little memory here. */
const charactersAtOnce = 4 * 1024 * 1024
/** Rows between two turns of other work. */
const rowsAtOnce = 256

/** Moves everything that is old enough. Returns how many records were moved. */
export async function moveOldRecords(options: MoveOptions): Promise<number> {
  let moved = 0
  while (options.signal?.aborted !== true) {
    const some = await moveSome(options)
    if (some === null) return moved
    moved += some
    await yieldToEventLoop()
  }
  return moved
}

/** Null where nothing is left that can be moved; 0 where segments changed meanwhile. */
export async function moveSome({ ledger, archive, clock, log, ...options }: MoveOptions): Promise<number | null> {
  const before = clock.now() - options.keepMilliseconds
  const segments = await readOld(ledger, before, options.segments ?? segmentsAtOnce)
  const [first] = segments
  if (first === undefined) return null
  const { next } = await readLogHead(ledger)
  if (await archive.table.holdsFrom(next)) {
    log.error(
      { ledger: next, position: first.first },
      'ClickHouse has records that the ledger lacks: nothing is moved. See the handbook, events in ClickHouse',
    )
    return null
  }
  const blocks = Map.groupBy(
    await readBlocks(
      ledger,
      segments.map(({ first }) => first),
    ),
    ({ segment }) => segment,
  )
  let rows: RecordRow[] = []
  let [characters, moved] = [0, 0]
  const insert = async () => {
    await archive.table.insert(rows, options.signal)
    moved += rows.length
    rows = []
    characters = 0
  }
  const read: { first: number; records: number; header: Header }[] = []
  for (const segment of segments) {
    const opened = await recordsOf(segment, blocks.get(segment.first) ?? [])
    if (opened === null) {
      const isThere = (
        await readSegments(ledger, 'where first_position = ? and records = ?', [segment.first, segment.records])
      )[0]
      if (isThere === undefined) return 0
      log.error({ first_position: segment.first }, 'Old events do not verify: they and later ones are not moved')
      break
    }
    for (const record of opened.records) {
      rows.push(rowOf(record))
      if (rows.length % rowsAtOnce === 0) await yieldToEventLoop()
      characters += record.text.length
      if (characters >= (options.characters ?? charactersAtOnce)) await insert()
    }
    read.push({ first: segment.first, records: segment.records, header: opened.header })
  }
  if (read.length === 0) return null
  await insert()
  return (await remove(ledger, read)) ? moved : 0
}

/** The oldest segments, as far as all of them are old enough. */
async function readOld(ledger: Database, before: number, most: number): Promise<SegmentRow[]> {
  const segments = await readSegments(ledger, 'order by first_position limit ?', [most])
  const old: SegmentRow[] = []
  let records = 0
  for (const segment of segments) {
    if (segment.receivedAt >= before || records >= recordsAtOnce) break
    old.push(segment)
    records += segment.records
  }
  return old
}

/** The records of a segment; null where they do not lead to the digests that it names. */
async function recordsOf(
  { first, records, receivedAt, header: bytes }: SegmentRow,
  blocks: readonly PlacedBlock[],
): Promise<{ header: Header; records: MovedRecord[] } | null> {
  const header = decodeHeader(bytes)
  if (header === null) return null
  const parts = new Map(header.chains.map((part) => [part.chain, { ...part, walk: new ChainWalk(part.digestBefore) }]))
  const found: MovedRecord[] = []
  const runs = header.runs.values()
  let run = { chain: '', first: 1, records: 0, digest: '' }
  let followed = 0
  let position = first
  for (const stored of blocks) {
    const block = stored.first_position === position ? decodeBlock(stored) : null
    if (block === null) return null
    for (const [ordinal, body] of recordBytes(block).entries()) {
      if (followed === run.records) {
        const next = runs.next()
        if (next.done) return null
        run = next.value
        followed = 0
      }
      const seq = run.first + followed
      const part = parts.get(run.chain)
      if (part === undefined) return null
      part.walk.step(seq, body)
      followed += 1
      if (followed === run.records && part.walk.digest !== run.digest) return null
      found.push({
        ...{ position, receivedAt, seq, chain: run.chain, text: body.toString(), at: block.times[ordinal] ?? 0 },
        ...{ quarantine: block.quarantined.get(ordinal), digestBefore: seq === part.first ? part.digestBefore : '' },
        digestAfter: seq === part.last ? part.walk.digest : '',
      })
      position += 1
    }
    await yieldToEventLoop()
  }
  return found.length === records && followed === run.records && runs.next().done === true
    ? { header, records: found }
    : null
}

/** False where another control plane moved, merged or removed one of them. */
async function remove(
  ledger: Database,
  segments: readonly { first: number; records: number; header: Header }[],
): Promise<boolean> {
  const statements: Statement[] = [
    {
      sql: `insert into guards (holds) select 0 where (select count(*) from json_each(?) k join event_segments s
        on s.first_position = k.value ->> 0 and s.records = k.value ->> 1) <> ?`,
      args: [JSON.stringify(segments.map(({ first, records }) => [first, records])), segments.length],
    },
    ...removeSegments(segments.map(({ first, header: { facets } }) => ({ first, facets }))),
    { sql: 'update event_log set merges = merges + 1', args: [] },
  ]
  try {
    // If the host crashes, the segments are back, and are moved again.
    await ledger.write(statements, {})
    return true
  } catch (error) {
    if (brokenConstraint(error) === 'check') return false
    throw error
  }
}
