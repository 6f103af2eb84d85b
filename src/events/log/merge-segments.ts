/**
 * Merges small segments, which a quiet gateway or the control plane leaves, into larger ones. Segments have levels by
 * their size; sixteen neighbours of a level become one of the next, so that a record is compressed at most three times.
 * No record, position or chain changes: small blocks are joined, full ones are moved as they are.
 *
 * A merge is one transaction, guarded by the segments it replaces: of two control planes that merge the same ones, one
 * does, and a kill leaves either the old segments or the new one.
 *
 * SQL text: the guard, and the sizes of many segments.
 */
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import type { Database } from '../../store/open.ts'
import type { Statement } from '../../store/statement.ts'
import { brokenConstraint } from './append.ts'
import { bytesOfWords, mergeWords, wordsOfBytes } from './id-hashes.ts'
import {
  addFacet,
  blockRecords,
  type Facets,
  fullBlockBytes,
  joinBlocks,
  joinChains,
  joinRuns,
  mostBlocks,
} from './segment.ts'
import {
  decodeBlock,
  decodeHeader,
  encodeBlockForLong,
  encodeHeader,
  type Header,
  type StoredBlock,
  type StoredSegment,
} from './segment-codec.ts'
import { insertSegment, isLarge, readBlocks, readSegments, removeSegments } from './segment-rows.ts'

/** Segments, from the newest, among which neighbours are looked for. */
const mostScanned = 4096

export interface MergeSizes {
  /** Records of a full block. */
  full: number
  /** So many neighbours of one level are merged. */
  fanIn: number
}
const usualSizes: MergeSizes = { full: blockRecords, fanIn: 16 }

/** 0: less than 16 records; 1: less than 256; 2: fewer than a large segment has; 3: large enough. */
const levelOf = ({ records, blocks }: Small): number =>
  isLarge({ records, blocks }) ? 3 : Math.min(2, Math.floor(Math.log2(Math.max(1, records)) / 4))

const mergedLevels = [0, 1, 2]

interface Small {
  first: number
  records: number
  /** How many it has. */
  blocks: number
  receivedAt: number
}

/** Merges until nothing is left to merge; between two merges other work goes on. Stops when the signal fires. */
export async function mergeSegments(ledger: Database, signal?: AbortSignal): Promise<void> {
  while (signal?.aborted !== true && (await mergeOnce(ledger))) await yieldToEventLoop()
}

/** Merges one group of neighbours; false where there is none to merge. Other sizes are for tests. */
export async function mergeOnce(ledger: Database, sizes = usualSizes): Promise<boolean> {
  const rows = await ledger.read<{ first_position: number; records: number; received_at: number; blocks: number }>(
    `select first_position, records, received_at,
      (select count(*) from event_blocks where segment = event_segments.first_position) as blocks
      from event_segments order by first_position desc limit ?`,
    [mostScanned],
  )
  const segments = rows
    .map(({ first_position: first, received_at: receivedAt, ...counts }) => ({ first, receivedAt, ...counts }))
    .reverse()
  for (const group of groupsOf(segments, sizes)) {
    if (await mergeGroup(ledger, group, sizes)) return true
    await yieldToEventLoop()
  }
  return false
}

const dayOf = ({ receivedAt }: Small): number => Math.floor(receivedAt / 86_400_000)

/**
 * Neighbours that may be merged, those of the lowest level first; smaller ones between them count. All were received on
 * one day (UTC): retention removes whole segments, so no event is kept more than a day too long. What is left of a day
 * that is over is merged however few segments it is, so that days leave no trail of small ones.
 */
function* groupsOf(segments: readonly Small[], { fanIn, full }: MergeSizes): Generator<readonly Small[]> {
  for (const level of mergedLevels) {
    let group: Small[] = []
    let records = 0
    for (const segment of segments) {
      const last = group.at(-1)
      const isNext =
        last === undefined || (last.first + last.records === segment.first && dayOf(last) === dayOf(segment))
      const fits = levelOf(segment) <= level
      if (!isNext || !fits) {
        const isDayOver = last !== undefined && dayOf(last) !== dayOf(segment)
        if (level === mergedLevels.at(-1) && isDayOver && group.length > 1) yield group
        group = []
        records = 0
      }
      if (!fits) continue
      group.push(segment)
      records += segment.records
      if (group.length < fanIn && records < mostBlocks * full) continue
      if (group.length > 1) yield group
      group = []
      records = 0
    }
  }
}

const noFacets: Facets = new Map()

interface Part {
  first: number
  records: number
  receivedAt: number
  header: Header
  ids: Uint32Array
  blocks: readonly StoredBlock[]
}

/** False where the group cannot be merged: a part is damaged, or two of them are too large together. */
async function mergeGroup(ledger: Database, group: readonly Small[], { full }: MergeSizes): Promise<boolean> {
  const parts = await readParts(ledger, group)
  if (parts === null) return false
  const fitting = fit(parts, full)
  const [first] = fitting
  if (first === undefined || fitting.length < 2) return false
  const merged = await mergeParts(fitting, full)
  if (merged === null) return false
  const guard: Statement = {
    sql: `insert into guards (holds) select 0 where (select count(*) from event_segments
      where first_position in (select value from json_each(?))) <> ?`,
    args: [JSON.stringify(fitting.map((part) => part.first)), fitting.length],
  }
  try {
    await ledger.write(
      [
        guard,
        // None of them is large.
        ...removeSegments(fitting.map((part) => ({ first: part.first, facets: noFacets }))),
        ...insertSegment(merged, first.first),
        { sql: 'update event_log set merges = merges + 1', args: [] },
      ],
      {},
    )
  } catch (error) {
    // Otherwise another control plane, or retention, was first.
    if (brokenConstraint(error) !== 'check') throw error
  }
  return true
}

/** Whether a block can be joined to those before it. */
const hasRoom = (filled: { records: number; bytes: number }, block: StoredBlock, full: number): boolean =>
  filled.records + block.records <= full && filled.bytes + block.bytes <= fullBlockBytes

/** Blocks, in their order, that become one each. */
function groupBlocks(blocks: readonly StoredBlock[], full: number): StoredBlock[][] {
  const groups: StoredBlock[][] = []
  let filled = { records: 0, bytes: 0 }
  for (const block of blocks) {
    const last = groups.at(-1)
    if (last === undefined || !hasRoom(filled, block, full)) {
      groups.push([block])
      filled = { records: block.records, bytes: block.bytes }
      continue
    }
    last.push(block)
    filled = { records: filled.records + block.records, bytes: filled.bytes + block.bytes }
  }
  return groups
}

/** As many parts, from the first, as have room in one segment. */
function fit(parts: readonly Part[], full: number): readonly Part[] {
  for (let most = parts.length; most > 1; most -= 1) {
    const some = parts.slice(0, most)
    const blocks = some.flatMap((part) => part.blocks)
    if (groupBlocks(blocks, full).length <= mostBlocks) return some
  }
  return []
}

/** Null where a part is damaged: it stays as it is, for `verify` to name. */
async function mergeParts(parts: readonly Part[], full: number): Promise<StoredSegment | null> {
  const groups = groupBlocks(
    parts.flatMap((part) => part.blocks),
    full,
  )
  const placeOf = new Map(groups.flatMap((group, place) => group.map((block) => [block, place] as const)))
  const facets: Facets = new Map()
  const lists = parts.map(({ ids, blocks }) => ({ ids, blocks: blocks.map((block) => placeOf.get(block) ?? 0) }))
  for (const [index, part] of parts.entries()) {
    const places = lists[index]?.blocks ?? []
    for (const [facet, values] of part.header.facets) {
      for (const [value, { events, blocks }] of values) {
        addFacet(facets, facet, value, events, movedBits(blocks, places))
      }
    }
  }
  const blocks: StoredBlock[] = []
  for (const group of groups) {
    const block = await joined(group)
    if (block === null) return null
    blocks.push(block)
  }
  const receivedAt = Math.max(...parts.map((part) => part.receivedAt))
  const header: Header = {
    receivedAt,
    events: parts.reduce((sum, { header: { events } }) => sum + events, 0),
    runs: joinRuns(parts.flatMap(({ header: { runs } }) => runs)),
    chains: joinChains(parts.flatMap(({ header: { chains } }) => chains)),
    facets,
  }
  return {
    records: blocks.reduce((sum, { records }) => sum + records, 0),
    receivedAt,
    header: encodeHeader(header),
    ids: bytesOfWords(mergeWords(lists)),
    facets,
    chains: header.chains,
    blocks,
  }
}

async function joined(group: readonly StoredBlock[]): Promise<StoredBlock | null> {
  const [only] = group
  if (group.length === 1 && only !== undefined) return only
  const blocks = group.map(decodeBlock)
  const sound = blocks.filter((block) => block !== null)
  return sound.length === blocks.length ? await encodeBlockForLong(joinBlocks(sound)) : null
}

function movedBits(bits: number, places: readonly number[]): number {
  let moved = 0
  for (const [from, to] of places.entries()) if ((bits >>> from) & 1) moved |= 1 << to
  return moved
}

/** Null where a part is damaged, or is no longer there. */
async function readParts(ledger: Database, group: readonly Small[]): Promise<Part[] | null> {
  const firsts = group.map(({ first }) => first)
  const among = 'where first_position in (select value from json_each(?)) order by first_position'
  const segments = await readSegments(ledger, among, [JSON.stringify(firsts)])
  const blocks = Map.groupBy(await readBlocks(ledger, firsts), ({ segment }) => segment)
  const parts: Part[] = []
  for (const { first, records, receivedAt, header, ids } of segments) {
    const decoded = decodeHeader(header)
    const words = wordsOfBytes(ids)
    const own = blocks.get(first) ?? []
    const whole = own.reduce((sum, block) => sum + block.records, 0) === records
    if (decoded === null || words === null || !whole) return null
    parts.push({ first, records, receivedAt, header: decoded, ids: words, blocks: own })
  }
  return parts.length === group.length ? parts : null
}
